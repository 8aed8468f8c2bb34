import pytest

from gents_gym import registry
from gents_gym.checks import InputError
from gents_gym.construct import agent_ids
from gents_gym.specs import parse_spec
from gents_gym.tuning.config import TuneConfig, choose_candidates, tasks_to_come


def test_the_grid_is_of_those_that_are_registered():
    found = choose_candidates(TuneConfig(), "synthetic-filter")
    assert {parse_spec(spec)[0] for spec in found} <= agent_ids().keys()
    assert {"greedy", "ts-gen", "gen-ucb"} <= found.keys()
    assert {*found} <= {*registry.TUNED}
    assert found["ts-gen(samples=8, m=64)"] == "ts-gen(samples=8, m=64, model='synthetic-filter')"


def test_an_environment_tells_sizes_and_contexts_and_draws_nothing(monkeypatch):
    from gents_gym.tasks.synthetic import Synthetic

    monkeypatch.setattr(Synthetic, "sample", lambda *_: pytest.fail("a task was looked at"))
    env = "gents_gym/Synthetic-v0(horizon=70, context_spread=0.5)"
    assert tasks_to_come(TuneConfig(env=env)) == {"horizon": 70, "n_actions": 10, "contexts": 0.5}
    config = TuneConfig(env=env, horizon=9, n_actions=3, contexts="bank")
    assert tasks_to_come(config) == {"horizon": 9, "n_actions": 3, "contexts": "bank"}
    assert tasks_to_come(TuneConfig(horizon=9, n_actions=3)) == {"horizon": 9, "n_actions": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"horizon must be given \(--horizon\), or known from an environment \(--env\), got none"),
        ({"horizon": 9}, r"n_actions must be given \(--n-actions\), or known from an environment \(--env\), got none"),
        ({"env": "CartPole-v1", "n_actions": 3}, r"horizon must be given \(--horizon\)"),
        ({"env": "gents_gym/Syntetic-v0"}, "env 'gents_gym/Syntetic-v0' cannot be made"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"tasks": 1}, "tasks must be at least 2, got 1"),
        ({"risk": 1.5}, "risk must be at most 1, got 1.5"),
        ({"quantile": -1}, "quantile must be at least 0, got -1"),
    ],
)
def test_bad_sizes(options, message):
    with pytest.raises(InputError, match=message):
        tasks_to_come(TuneConfig(**options))


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        (("gredy",), "unknown candidate 'gredy'; did you mean 'greedy'"),
        (
            ("mine:Agent",),
            "candidate in a file must use registered ids, never package.module:Class, got ",
        ),
        (("greedy(model=news-filter)",), "candidates must not name a model, which is the tuned one, got 'greedy"),
        (("linucb",), "candidates must be agents on a model, got 'linucb'"),
        (("softmax(temperature=0)",), "temperature must be above 0, got 0"),
        (("greedy", "greedy"), "candidates must differ from each other, got greedy greedy"),
    ],
)
def test_bad_candidates(candidates, message):
    with pytest.raises(InputError, match=message):
        choose_candidates(TuneConfig(candidates=candidates), "synthetic-filter")
