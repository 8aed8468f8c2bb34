import hashlib

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import EvaluationConfig, InputError, PreviousStep, TaskInfo, VectorPreviousStep, make_agent, rollout
from gents_gym.agents.adapters.sb3 import SB3, load
from gents_gym.evaluation.cell import play
from gents_gym.evaluation.grid import cells, plan, weights_hash

sb3 = pytest.importorskip("stable_baselines3")
contrib = pytest.importorskip("sb3_contrib")
torch = pytest.importorskip("torch")

ID, T, B = "gents_gym/Synthetic-v0", 12, 3
NETWORK = {"net_arch": [8]}
LSTM = {"net_arch": [8], "lstm_hidden_size": 8}


def envs(**config):
    return gym.make_vec(ID, num_envs=B, horizon=T, autoreset_mode="Disabled", **config)


def train_env(previous=False):
    env = gym.make(ID, split="train", horizon=T)
    return PreviousStep(env, time=True) if previous else env


def make_model(name, previous=False):
    """A tiny model, trained a little so that its last layer is not near zero."""
    recurrent = name == "RecurrentPPO"
    kind = getattr(sb3, name, None) or getattr(contrib, name)
    policy = "MultiInputLstmPolicy" if recurrent else "MultiInputPolicy"
    options = {"policy_kwargs": LSTM if recurrent else NETWORK, "device": "cpu", "seed": 0, "learning_rate": 0.05}
    if "DQN" in name:
        options |= {"buffer_size": 100, "learning_starts": 10}
    else:
        options |= {"n_steps": 32} | ({} if name == "A2C" else {"batch_size": 32})
    masks = {"use_masking": False} if name == "MaskablePPO" else {}
    return kind(policy, train_env(previous), **options).learn(64, **masks)


def predicted(model, previous, deterministic=True):
    """What the model itself plays: its own predict, beside the vector environment that it knows from training."""
    played = envs()
    played = VectorPreviousStep(played, time=True) if previous else played
    observation, _ = played.reset(seed=0, options={"task": list(range(B))})
    state, start, actions = None, np.ones(B, bool), []
    for _ in range(T):
        observation = {key: np.array(array) for key, array in observation.items()}
        action, state = model.predict(observation, state, start, deterministic=deterministic)
        observation, _, _, _, _ = played.step(action)
        start = np.zeros(B, bool)
        actions.append(action)
    return np.stack(actions, axis=1)


@pytest.mark.parametrize("previous", [False, True])
@pytest.mark.parametrize("name", ["PPO", "A2C", "DQN", "RecurrentPPO", "TRPO", "QRDQN", "MaskablePPO"])
def test_a_model_plays_what_its_own_predict_says(name, previous, tmp_path):
    model = make_model(name, previous)
    model.save(tmp_path / "model.zip")
    found = rollout(envs(), make_agent(f"sb3(path='{tmp_path}/model.zip')")).actions
    assert np.array_equal(found, predicted(model, previous))
    assert len(np.unique(found)) > 1
    assert type(load(tmp_path / "model.zip")) is type(model)


@pytest.mark.parametrize("name", ["PPO", "RecurrentPPO", "MaskablePPO"])
def test_drawn_actions_have_the_policys_chances(name, tmp_path):
    """2,000 copies of one task's first two steps: frequencies against the policy's own probabilities."""
    model, n = make_model(name, previous=True), 2000
    model.save(tmp_path / "model.zip")
    agent = SB3(str(tmp_path / "model.zip"), deterministic=False)
    features, context = np.random.default_rng(0).normal(size=(10, 2)), np.random.default_rng(1).normal(size=(2, 5))
    agent.reset(TaskInfo(np.tile(features, (n, 1, 1)), 10, 5, T), [np.random.default_rng(i) for i in range(n)])
    zeros = {"previous_action": np.zeros((1, 10)), "previous_reward": np.zeros((1, 1)), "time": np.zeros((1, 1))}
    second = {"previous_action": np.eye(10)[[4]], "previous_reward": np.ones((1, 1)), "time": np.log([[2.0]])}
    state = (torch.zeros(1, 1, 8),) * 2
    for t, shown in enumerate((zeros, second)):
        x = context[t : t + 1]
        seen = {"context": x, "action_features": features[None], **shown}
        tensors = {key: torch.as_tensor(value, dtype=torch.float32) for key, value in seen.items()}
        if name != "RecurrentPPO":
            found = model.policy.get_distribution(tensors)
        else:
            found, state = model.policy.get_distribution(tensors, state, torch.tensor([float(t == 0)]))
        chances = found.distribution.probs.detach().numpy()[0]
        drawn = agent.act(np.tile(x, (n, 1)).astype(np.float32))
        share = np.bincount(drawn, minlength=10) / n
        assert np.all(np.abs(share - chances) < 4 * np.sqrt(chances * (1 - chances) / n) + 1e-9)
        agent.observe(np.tile(x, (n, 1)), np.full(n, 4), np.ones(n))


def test_a_dqn_explores_at_the_rate_it_was_saved_with(tmp_path):
    model = make_model("DQN")
    model.exploration_rate = 0.5
    model.save(tmp_path / "model.zip")
    n = 2000
    agent = SB3(str(tmp_path / "model.zip"), deterministic=False)
    agent.reset(TaskInfo(np.zeros((n, 10, 2)), 10, 5), [np.random.default_rng(i) for i in range(n)])
    shown = {"context": np.zeros((1, 5)), "action_features": np.zeros((1, 10, 2))}
    best = int(model.predict(shown, deterministic=True)[0][0])
    share = np.bincount(agent.act(np.zeros((n, 5))), minlength=10) / n
    assert share[best] == pytest.approx(0.55, abs=0.05)
    assert np.delete(share, best) == pytest.approx(np.full(9, 0.05), abs=0.025)


def test_drawn_actions_do_not_depend_on_the_tasks_beside(tmp_path):
    make_model("PPO").save(tmp_path / "model.zip")
    spec = f"sb3(path='{tmp_path}/model.zip', deterministic=False)"
    alone = rollout(gym.make_vec(ID, num_envs=1, horizon=T), make_agent(spec), indices=[2]).actions
    assert np.array_equal(alone[0], rollout(envs(), make_agent(spec)).actions[2])


def test_normalized_observations_are_normalized_alike(tmp_path):
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    normalized = vec_env.VecNormalize(vec_env.DummyVecEnv([train_env]))
    model = sb3.PPO("MultiInputPolicy", normalized, n_steps=32, batch_size=32, seed=0, policy_kwargs=NETWORK).learn(64)
    model.save(tmp_path / "model.zip")
    normalized.save(tmp_path / "statistics.pkl")
    agent = SB3(str(tmp_path / "model.zip"), normalize=str(tmp_path / "statistics.pkl"))
    observation, _ = envs().reset(seed=0)
    agent.reset(TaskInfo(observation["action_features"], 10, 5), [np.random.default_rng(i) for i in range(B)])
    expected, _ = model.predict(normalized.normalize_obs(observation), deterministic=True)
    assert np.array_equal(agent.act(observation["context"]), expected)
    assert agent.weight_files == (agent.path, agent.normalize)
    assert weights_hash(agent) != weights_hash(SB3(agent.path))


def test_the_harness_plays_a_model_and_knows_its_file(tmp_path):
    path = tmp_path / "model.zip"
    make_model("PPO").save(path)
    agent, small = f"sb3(path='{path}')", f"{ID}(horizon={T})"
    manifest = plan(EvaluationConfig((agent, "linucb"), env=(small,), tasks=2))
    digest, *pins = manifest["weights"][agent].split()
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [pin.split("==")[0] for pin in pins] == ["stable-baselines3"]
    cell = cells(manifest)[0]
    assert play(cell).error is None
    make_model("A2C").save(path)
    assert "a worker must have the run's weights" in play(cell).error


def test_loading_leaves_the_global_generators_alone(tmp_path):
    make_model("PPO").save(tmp_path / "model.zip")
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    make_agent("sb3", path=str(tmp_path / "model.zip"))
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


def test_other_tasks_than_the_models_are_refused(tmp_path):
    make_model("PPO").save(tmp_path / "model.zip")
    agent = make_agent("sb3", path=str(tmp_path / "model.zip"))
    with pytest.raises(
        InputError, match=r"the observations that the model was trained on, .*'context': .* \(5,\).*, got .* \(8,\)"
    ):
        rollout(envs(context_dim=8), agent)
    sb3.PPO("MlpPolicy", gym.make("CartPole-v1"), n_steps=8, batch_size=8).save(tmp_path / "box.zip")
    with pytest.raises(InputError, match="path must be a model of Dict observations, got Box"):
        make_agent("sb3", path=str(tmp_path / "box.zip"))
    wrapped = gym.wrappers.TimeAwareObservation(
        gym.wrappers.TimeLimit(train_env(), T), flatten=False, dict_time_key="clock"
    )
    sb3.PPO("MultiInputPolicy", wrapped, n_steps=8, batch_size=8).save(tmp_path / "clock.zip")
    with pytest.raises(InputError, match="unknown observation of the model: 'clock'"):
        make_agent("sb3", path=str(tmp_path / "clock.zip"))


class Signs(gym.ObservationWrapper):
    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Dict({**env.observation_space.spaces, "context": gym.spaces.MultiBinary(5)})


def test_observations_of_other_wrappers_are_refused_though_they_have_our_names(tmp_path):
    clock = gym.wrappers.TimeAwareObservation(gym.wrappers.TimeLimit(train_env(), T), flatten=False)
    for env, message in ((clock, r"'time': Box\(0, 12, \(1,\), int32\)"), (Signs(train_env()), "MultiBinary")):
        sb3.PPO("MultiInputPolicy", env, n_steps=8, batch_size=8).save(tmp_path / "model.zip")
        with pytest.raises(
            InputError, match=f"must have the observations that the model was trained on, .*{message}.*, got .*"
        ):
            rollout(envs(), make_agent("sb3", path=str(tmp_path / "model.zip")))


def test_bad_contexts_and_observations(tmp_path):
    make_model("PPO", previous=True).save(tmp_path / "model.zip")
    agent = make_agent("sb3", path=str(tmp_path / "model.zip"))
    agent.reset(TaskInfo(np.zeros((2, 10, 2)), 10, 5), [np.random.default_rng(i) for i in range(2)])
    with pytest.raises(InputError, match=r"context must have shape \(B, D\)=\(2, 5\), got \(2, 4\)"):
        agent.act(np.zeros((2, 4)))
    with pytest.raises(InputError, match=r"context must be finite, got nan"):
        agent.observe(np.full((2, 5), np.nan), np.zeros(2, int), np.zeros(2))
    with pytest.raises(InputError, match=r"action must lie in \[0, 10\), got 10"):
        agent.observe(np.zeros((2, 5)), np.array([0, 10]), np.zeros(2))
    with pytest.raises(InputError, match=r"outcome must have shape \(B,\)=\(2,\), got \(1,\)"):
        agent.observe(np.zeros((2, 5)), np.zeros(2, int), np.zeros(1))


def test_bad_files_and_options(tmp_path):
    bad = tmp_path / "bad.zip"
    bad.write_bytes(b"no zip")
    with pytest.raises(
        InputError, match=r"path must be a file that a model's save wrote, got 'nowhere.zip' \(.*No such"
    ):
        SB3("nowhere.zip")
    with pytest.raises(InputError, match=r"path must be a file that a model's save wrote, got .*not a zip file"):
        SB3(str(bad))
    with pytest.raises(InputError, match=r"path must be a model that PPO.load reads, got"):
        SB3(str(bad), algorithm="ppo")
    with pytest.raises(InputError, match="unknown algorithm 'pppo'; did you mean 'ppo'"):
        SB3(str(bad), algorithm="pppo")
    with pytest.raises(InputError, match="deterministic must be True or False, got 1"):
        SB3(str(bad), deterministic=1)
    make_model("PPO").save(tmp_path / "model.zip")
    with pytest.raises(InputError, match=r"normalize must be a file that VecNormalize.save wrote"):
        SB3(str(tmp_path / "model.zip"), normalize=str(bad))
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    vec_env.VecNormalize(vec_env.DummyVecEnv([lambda: train_env(True)])).save(tmp_path / "statistics.pkl")
    with pytest.raises(InputError, match=r"normalize must fit the model's observations, .*, got '.*' for .*'time'"):
        SB3(str(tmp_path / "model.zip"), normalize=str(tmp_path / "statistics.pkl"))
    with pytest.raises(InputError, match=r"path and normalize must be names of files, got \(3,\)"):
        SB3(3)


def test_a_missing_library_names_the_extra(tmp_path, monkeypatch):
    make_model("PPO").save(tmp_path / "model.zip")
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3", None)
    with pytest.raises(InputError, match=r"needs the package 'stable_baselines3': pip install 'gents-gym\[sb3\]'"):
        SB3(str(tmp_path / "model.zip"))
