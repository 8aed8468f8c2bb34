import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gents_gym import InputError, PreviousStep, VectorPreviousStep, VectorRecordRegret, make_agent, rollout

sb3 = pytest.importorskip("stable_baselines3")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")

from gents_gym.envs.sb3 import SB3VecEnv  # noqa: E402  (needs the library at once)

ID, T, B = "gents_gym/Synthetic-v0", 6, 3
NETWORK = {"net_arch": [8]}


def native(num_envs=B, **config):
    return gym.make_vec(ID, num_envs=num_envs, horizon=T, split="train", **config)


def same(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(same(*pair) for pair in zip(left, right, strict=True))
    if isinstance(left, np.ndarray):
        return left.dtype == right.dtype and np.array_equal(left, right)
    return left == right


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("previous", [False, True])
def test_one_slot_is_stable_baselines3s_own_vec_env_to_the_bit(previous, mode):
    """Against DummyVecEnv of the single environment, through three episodes: all that an algorithm sees."""
    single = gym.make(ID, horizon=T, split="train")
    theirs = vec_env.DummyVecEnv([lambda: PreviousStep(single, time=True) if previous else single])
    envs = native(1, autoreset_mode=mode)
    ours = SB3VecEnv(VectorPreviousStep(envs, time=True) if previous else envs)
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    assert ours.seed(4) == theirs.seed(4)
    assert same(ours.reset(), dict(theirs.reset()))
    assert ours.reset_infos == theirs.reset_infos
    for t in range(3 * T):
        got, expected = ours.step(np.array([t % 10])), theirs.step(np.array([t % 10]))
        assert same(got[0], dict(expected[0]))
        assert same(got[1], expected[1])
        assert same(got[2], expected[2])
        assert same(got[3][0], expected[3][0])
        assert ours.reset_infos == theirs.reset_infos


def test_maskable_ppo_trains_and_plays_among_what_is_available(tmp_path):
    contrib = pytest.importorskip("sb3_contrib")
    pool = {"n_actions": 6, "turnover": {"live": 2, "rate": 0.2}}
    ours = SB3VecEnv(native(**pool))
    ours.reset()
    assert np.array_equal(ours.env_method("action_masks"), ours.envs.action_masks())
    assert len(ours.env_method("action_masks", indices=[1])) == 1
    model = contrib.MaskablePPO("MultiInputPolicy", ours, n_steps=4, batch_size=12, policy_kwargs=NETWORK, seed=0)
    model.learn(48)  # an action that is not available would raise
    contrib.MaskablePPO("MultiInputPolicy", gym.make(ID, horizon=T, **pool), n_steps=8, batch_size=8).learn(16)
    model.save(tmp_path / "model.zip")
    played = gym.make_vec(ID, num_envs=B, horizon=T, autoreset_mode="Disabled", **pool)
    found = rollout(played, make_agent("sb3", path=str(tmp_path / "model.zip"))).actions
    observation, _ = played.reset(seed=0)
    for t in range(T):
        shown = {key: np.array(array) for key, array in observation.items()}
        action, _ = model.predict(shown, action_masks=played.action_masks(), deterministic=True)
        assert np.array_equal(found[:, t], action)
        observation, *_ = played.step(action)
    drawn = rollout(played, make_agent("sb3", path=str(tmp_path / "model.zip"), deterministic=False)).actions
    assert np.take_along_axis(played.tasks.available, drawn[..., None], 2).all()


def test_maskable_ppo_learns_among_what_is_available(tmp_path):
    """8,192 steps of training halve a random player's regret."""
    contrib = pytest.importorskip("sb3_contrib")
    pool = {"n_actions": 6, "horizon": 20, "turnover": {"live": 3, "rate": 0.1}}
    envs = SB3VecEnv(gym.make_vec(ID, num_envs=32, split="train", **pool))
    sizes = {"n_steps": 32, "batch_size": 256, "n_epochs": 5, "policy_kwargs": {"net_arch": [32]}}
    model = contrib.MaskablePPO("MultiInputPolicy", envs, learning_rate=3e-3, gamma=0.0, seed=0, device="cpu", **sizes)
    model.learn(8192)
    model.save(tmp_path / "model.zip")
    played = gym.make_vec(ID, num_envs=100, **pool)
    agents = make_agent("sb3", path=str(tmp_path / "model.zip")), make_agent("random")
    mine, chance = (rollout(played, agent, seed=0).summary()["expected"]["mean"] for agent in agents)
    assert mine < chance / 2


@pytest.mark.parametrize("mode", AutoresetMode)
def test_slots_play_the_vector_environments_tasks(mode):
    ours, envs = SB3VecEnv(VectorRecordRegret(native(autoreset_mode=mode))), native(autoreset_mode="Disabled")
    ours.seed(7)
    shown, (expected, _) = ours.reset(), envs.reset(seed=7)
    assert [info["task"] for info in ours.reset_infos] == [0, 1, 2]
    for t in range(T):
        assert same(shown["context"], expected["context"])
        shown, reward, done, infos = ours.step(np.full(B, t))
        expected, their_reward, _, _, their_info = envs.step(np.full(B, t))
        assert np.array_equal(reward, their_reward)
        assert [info["outcome"] for info in infos] == their_info["outcome"].tolist()
    assert done.all()
    assert [info["task"] for info in ours.reset_infos] == [3, 4, 5]
    assert all(info["regret"].keys() == {"oracle", "expected", "best"} for info in infos)
    assert all(same(info["terminal_observation"]["context"], np.zeros(5, np.float32)) for info in infos)
    assert not any(info["TimeLimit.truncated"] for info in infos)
    ours.set_options({"task": [8, 9, 8]})
    ours.reset()
    assert [info["task"] for info in ours.reset_infos] == [8, 9, 8]


def test_an_episode_that_is_cut_off_says_so():
    class Cut(gym.vector.VectorWrapper):
        def step(self, actions):
            observation, reward, terminated, _, info = self.env.step(actions)
            return observation, reward, np.zeros_like(terminated), terminated, info

    envs = SB3VecEnv(Cut(native()))
    envs.reset()
    told = [envs.step(np.zeros(B, int))[3][0]["TimeLimit.truncated"] for _ in range(T)]
    assert told == [False] * (T - 1) + [True]


def test_wrappers_and_algorithms_of_the_library_take_it():
    envs = vec_env.VecNormalize(vec_env.VecMonitor(vec_env.VecCheckNan(SB3VecEnv(native()), raise_exception=True)))
    model = sb3.PPO("MultiInputPolicy", envs, n_steps=2 * T, batch_size=B * T, policy_kwargs=NETWORK, seed=0)
    model.learn(4 * T * B)
    assert len(model.ep_info_buffer) == 4 * B
    assert all(episode["l"] == T and 0 <= episode["r"] <= T for episode in model.ep_info_buffer)
    sb3.A2C("MultiInputPolicy", SB3VecEnv(native()), policy_kwargs=NETWORK).learn(30)
    sb3.DQN("MultiInputPolicy", SB3VecEnv(native()), buffer_size=50, learning_starts=9, policy_kwargs=NETWORK).learn(30)
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    mean, _ = evaluation.evaluate_policy(model, vec_env.VecMonitor(SB3VecEnv(native())), n_eval_episodes=4)
    assert 0 <= mean <= T


def test_a_seed_gives_the_same_training_again():
    def weights():
        model = sb3.PPO("MultiInputPolicy", SB3VecEnv(native()), n_steps=T, batch_size=T, policy_kwargs=NETWORK, seed=3)
        return [parameter.detach().numpy() for parameter in model.learn(2 * T * B).policy.parameters()]

    assert all(np.array_equal(a, b) for a, b in zip(weights(), weights(), strict=True))


def test_frames_and_attributes():
    envs = SB3VecEnv(native(render_mode="rgb_array"))
    envs.reset()
    assert len(envs.get_images()) == B
    assert envs.render().ndim == 3
    assert envs.get_attr("split", [0, 2]) == ["train", "train"]
    assert envs.has_attr("action_masks")
    assert not envs.has_attr("curriculum")
    assert envs.env_is_wrapped(gym.Wrapper) == [False] * B
    with pytest.raises(InputError, match="attributes of a slot cannot be set"):
        envs.set_attr("split", "test")
    with pytest.raises(InputError, match="methods of a slot cannot be called"):
        envs.env_method("render")
    envs.close()


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("wrapper", [lambda envs: envs, gym.wrappers.vector.RecordEpisodeStatistics])
def test_slots_that_end_one_by_one_begin_at_once(mode, wrapper):
    """Every mode gives an algorithm the same."""

    def play(ours):
        ours.seed(5)
        ours.reset()
        ours.envs.reset(options={"reset_mask": np.array([False, True, False])})  # slot 1 is behind
        for t in range(3 * T):
            if t == 2:
                ours.envs.reset(options={"reset_mask": np.array([False, True, False])})
            observation, reward, done, infos = ours.step(np.full(B, t % 10))
            last = [info.get("terminal_observation", ()) for info in infos]
            yield observation, reward, done, last, [info["outcome"] for info in infos]

    reference = SB3VecEnv(native(autoreset_mode="SameStep"))
    ours = SB3VecEnv(wrapper(native(autoreset_mode=mode)))
    for got, expected in zip(play(ours), play(reference), strict=True):
        assert same(got, expected)


def test_gymnasiums_observation_wrappers_go_between():
    envs = SB3VecEnv(gym.wrappers.vector.FlattenObservation(native()))
    envs.reset()
    for _ in range(T):
        observation, _, done, infos = envs.step(np.zeros(B, int))
    assert done.all()
    assert all(info["terminal_observation"].shape == observation[0].shape == (25,) for info in infos)


def test_gymnasiums_vectorizers_are_taken_and_other_native_environments_refused():
    sync = gym.make_vec(ID, num_envs=2, horizon=T, vectorization_mode="sync")
    envs = SB3VecEnv(sync)
    envs.reset()
    done = [envs.step(np.zeros(2, int))[2].all() for _ in range(2 * T)]
    assert done == ([False] * (T - 1) + [True]) * 2
    with pytest.raises(InputError, match="envs must have the autoreset mode SAME_STEP or know"):
        SB3VecEnv(gym.make_vec("CartPole-v1", num_envs=2))
    with pytest.raises(InputError, match="envs must be a vector environment"):
        SB3VecEnv(gym.make(ID))
