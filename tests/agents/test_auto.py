import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym.checks import InputError
from gents_gym.evaluation.grid import weights_hash
from gents_gym.models.load import WEIGHTS, load_model
from gents_gym.models.tuned import weights_sha256, write_tuned
from gents_gym.types import TaskInfo

ID, T = "gents_gym/Synthetic-v0", 12
NUMBERS = dict.fromkeys(("mean", "se", "quantile", "score", "behind", "behind_se"), 1.0)


def entry(agent, horizon=T, contexts="bank"):
    return {
        **{"horizon": horizon, "n_actions": 10, "contexts": contexts, "agent": agent, "risk": 0.0, "quantile": 0.95},
        **{"seed": 0, "env": "x", "rungs": [{"tasks": 2, "agents": {agent: NUMBERS}}], "versions": {}},
    }


@pytest.fixture
def tuned(tmp_path):
    """A folder for the bundled model, with one agent for short tasks and another for long ones."""
    sha256 = weights_sha256(WEIGHTS / "synthetic-filter")
    for one in (entry("softmax(temperature=0.5)"), entry("greedy", 5000), entry("ts-gen(m=4)", contexts=0.0)):
        write_tuned(tmp_path, "synthetic-filter", sha256, one)
    return tmp_path


def play(agent, **options):
    return gents_gym.rollout(gym.make_vec(ID, num_envs=3, horizon=T, **options), agent).actions


@pytest.mark.parametrize(
    ("option", "chosen"),
    [
        ("", "softmax(temperature=0.5)"),
        (", contexts=0", "ts-gen(m=4)"),
        (", model=synthetic-filter", "softmax(temperature=0.5)"),
    ],
)
def test_it_plays_what_was_chosen_for_such_tasks(tuned, option, chosen):
    assert np.array_equal(play(f"auto(tuned='{tuned}'{option})"), play(chosen))


@pytest.mark.parametrize(("option", "chosen"), [("", "softmax(temperature=0.5)"), (", contexts=0", "ts-gen(m=4)")])
def test_its_probabilities_are_those_of_what_was_chosen(tuned, option, chosen):
    env = f"{ID}(horizon={T})"
    own, other = (
        gents_gym.rollout(env, spec, tasks=3, propensities=True) for spec in (f"auto(tuned='{tuned}'{option})", chosen)
    )
    assert np.array_equal(own.propensities, other.propensities)
    assert (own.propensities < 1).any()


def test_a_chosen_agent_without_probabilities(tuned):
    agent = gents_gym.make_agent("auto", tuned=tuned)
    agent._agent = object()  # such as one of another distribution
    with pytest.raises(InputError, match=r"the tuned agent must have probabilities\(context\), got object"):
        agent.probabilities(np.zeros((1, 5)))


def test_a_folder_of_tune_is_as_good_as_a_model(tuned):
    assert np.array_equal(play(f"auto(model='{tuned}')"), play("softmax(temperature=0.5)"))


def test_a_model_with_a_tuned_file_of_its_own(tmp_path):
    folder = load_model("synthetic-filter").save_pretrained(tmp_path / "mine")
    before = weights_hash(gents_gym.make_agent("auto", model=str(folder)))
    write_tuned(folder, str(folder), weights_sha256(folder), entry("greedy"))
    agent = gents_gym.make_agent("auto", model=str(folder))
    assert np.array_equal(play(agent), play("greedy"))
    assert weights_hash(agent) != before  # results of another choice are others


def test_results_record_what_was_chosen(tuned, tmp_path):
    config = gents_gym.EvaluationConfig((f"auto(tuned='{tuned}')",), (f"{ID}(horizon={T})",), tasks=2)
    found = gents_gym.evaluate(config, tmp_path / "out", workers=1)
    assert list(found.manifest["resolved"][config.env[0]].values()) == ["softmax(temperature=0.5)"]


def test_tasks_that_do_not_tell_their_horizon(tuned):
    info = TaskInfo(np.zeros((1, 10, 2), np.float32), 10, 5)
    rngs = [np.random.default_rng(0)]
    with pytest.raises(InputError, match=r"horizon must be known or given, as auto\(horizon=500\), got None"):
        gents_gym.make_agent("auto", tuned=tuned).reset(info, rngs)
    agent = gents_gym.make_agent("auto", tuned=tuned, horizon=4000)
    assert agent.resolve(info) == "greedy"
    agent.reset(info, rngs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"model": "synthetic-paper-layers1"},
            "no agent is tuned in '.*-layers1.*': run `gents-gym tune --model synthetic-pap",
        ),
        ({"model": "exact"}, "model must be a trained one, whose tuned file says which agent to play, got 'exact'"),
        ({"model": "synthetic-filtr"}, "did you mean 'synthetic-filter'"),
        ({"tuned": "nowhere"}, "no agent is tuned in 'nowhere'"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"contexts": "sen"}, "did you mean 'seen'"),
        ({"contexts": 2}, "contexts must be at most 1, got 2"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        play(gents_gym.make_agent("auto", **options))


def test_a_file_of_another_model(tuned):
    message = r"tuned.json' must be tuned for the model in '.*synthetic-filter-100', got one for other weights, 'synth"
    with pytest.raises(InputError, match=message):
        play(f"auto(model=synthetic-filter-100, tuned='{tuned}')")


@pytest.mark.parametrize("agent", ["os:getcwd", "nobody", "greedy(model=mine:Model)"])
def test_a_file_brings_no_code(tmp_path, agent):
    write_tuned(tmp_path, "synthetic-filter", weights_sha256(WEIGHTS / "synthetic-filter"), entry(agent))
    with pytest.raises(InputError, match=r"agent in a file must use registered ids|unknown agent 'nobody'"):
        play(f"auto(tuned='{tmp_path}')")
