import hashlib
import string
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import gents_gym
from gents_gym import EvaluationConfig, InputError, make_agent
from gents_gym.evaluation.grid import cells, plan, slug, weights_hash
from gents_gym.models.load import bundled_family

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"


FILES = ("config.json", "model.safetensors")


def config(*agents, **changes):
    return EvaluationConfig(agents, **{"env": (SMALL,), "tasks": 7, "block": 3, **changes})


def test_the_grid_covers_every_task_once_for_each_pair():
    other = "gents_gym/Synthetic-v0(horizon=5)"
    found = cells(plan(config("linucb", "oracle", env=(SMALL, other))))
    assert [(cell.first, cell.stop) for cell in found] == [(0, 3), (3, 6), (6, 7)] * 4
    pairs = [(cell.env, cell.agent) for cell in found[::3]]
    assert pairs == [(SMALL, "linucb"), (SMALL, "oracle"), (other, "linucb"), (other, "oracle")]


def test_names_are_safe_and_differ_with_all_that_a_result_depends_on():
    (cell,) = cells(plan(config("random", tasks=3)))
    others = [
        replace(cell, agent="random()"),
        replace(cell, env="gents_gym/Synthetic-v0(horizon=20,n_actions=3)"),
        replace(cell, first=1),
        replace(cell, stop=2),
        replace(cell, weights="0" * 64),
        replace(cell, code={"mine": "0" * 64}),
        replace(cell, resolved="logistic"),
        replace(cell, run={**cell.run, "seed": 1}),
        replace(cell, agent="a:B(x='../../é\n" + "y" * 500 + "')"),
        replace(cell, agent="."),
    ]
    names = {each.name for each in (cell, *others)}
    assert len(names) == 11
    for name in names:
        assert set(name) <= set(string.ascii_letters + string.digits + "_.-")
        assert not name.startswith(".")
        assert len(name) < 200
    assert slug("gents_gym/Synthetic-v0(horizon=20)") == "gents_gym-Synthetic-v0-horizon-20"


def test_a_manifest_tells_weights_and_privileged_agents(tmp_path):
    agents = ("ts-gen", "softmax(model=synthetic-paper)", "oracle", "ts-gen(model=exact)", "linucb")
    found = plan(config(*agents))
    weights = Path(gents_gym.__file__).parent / "models" / "weights"
    expected = [
        hashlib.sha256(b"".join((weights / name / file).read_bytes() for name in names for file in FILES)).hexdigest()
        for names in (bundled_family("filter"), ("synthetic-paper",))  # of a preset, all its models
    ]
    assert found["weights"] == dict(zip(agents, [*expected, None, None, None], strict=True))
    assert found["privileged"] == ["oracle"]
    (tmp_path / "model.safetensors").write_bytes(b"1")
    assert weights_hash(make_agent("greedy", model=str(tmp_path))) == hashlib.sha256(b"1").hexdigest()
    (tmp_path / "config.json").write_bytes(b"0")
    assert weights_hash(make_agent("greedy", model=str(tmp_path))) == hashlib.sha256(b"01").hexdigest()


def test_agents_tell_files_and_packages_that_they_act_on(tmp_path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    agent = make_agent("random")
    agent.weight_files, agent.packages = (tmp_path / "a", str(tmp_path / "b")), ("numpy",)
    assert weights_hash(agent) == f"{hashlib.sha256(b'12').hexdigest()} numpy=={version('numpy')}"
    agent.packages = ("no-such",)
    with pytest.raises(InputError, match="an agent's packages must be installed distributions, got 'no-such'"):
        weights_hash(agent)


def test_cells_tell_the_code_of_their_environment_agent_and_oracle(tmp_path, monkeypatch):
    for name in ("agent", "oracle", "rewards"):
        text = "from gents_gym.agents.linucb import LinUCB\nfrom gents_gym.policies.logistic import Logistic\n"
        (tmp_path / f"their_{name}.py").write_text(f"{text}from gents_gym.types import identity  # {name}\n")
    monkeypatch.syspath_prepend(tmp_path)
    agents = ("their_agent:LinUCB", "linucb")
    env = "gents_gym/Synthetic-v0(reward_fn=their_rewards:identity)"
    found = plan(config(*agents, env=(env, SMALL), oracle="their_oracle:Logistic", tasks=1))
    assert found["code"].keys() == {env, "their_agent:LinUCB", "their_oracle:Logistic"}
    names = [sorted(cell.code) for cell in cells(found)]
    assert names == [
        ["their_agent", "their_oracle", "their_rewards"],
        ["their_oracle", "their_rewards"],
        ["their_agent", "their_oracle"],
        ["their_oracle"],
    ]
    expected = hashlib.sha256((tmp_path / "their_oracle.py").read_bytes()).hexdigest()
    assert cells(found)[3].code == {"their_oracle": expected}


def test_a_cell_of_this_package_alone_has_no_code():
    (cell,) = cells(plan(config("random", tasks=3)))
    assert "code" not in cell.label


NEWS = "gents_gym/News-v0(horizon=5)"


def test_the_policy_class_that_an_agent_chooses_is_recorded_for_each_environment():
    agents = ("ts-gen", "ts-gen(policy=logistic)", "gen-ucb(m=3)", "greedy", "ts-gen(policy=None)")
    found = plan(config(*agents, env=(SMALL, NEWS), tasks=3))
    chosen = {SMALL: "logistic", NEWS: "features(base=logistic)"}
    left_open = ("ts-gen", "gen-ucb(m=3)", "ts-gen(policy=None)")
    assert found["resolved"] == {env: dict.fromkeys(left_open, text) for env, text in chosen.items()}
    for cell in cells(found):
        assert cell.resolved == (chosen[cell.env] if cell.agent in left_open else None)
        assert ("resolved" in cell.label) == (cell.agent in left_open)


def test_outcomes_other_than_0_and_1_are_fitted_by_least_squares():
    env = "gents_gym/Synthetic-v0(horizon=5, outcomes=gaussian)"
    found = plan(config("ts-gen(model=exact)", "linucb", env=(env,)))
    assert found["resolved"] == {env: {"ts-gen(model=exact)": "least-squares"}}


def test_a_manifest_without_resolved_policies_has_the_cells_of_its_version():
    found = plan(config("ts-gen", tasks=3))
    del found["resolved"]
    (cell,) = cells(found)
    assert cell.resolved is None
    assert "resolved" not in cell.label


@pytest.mark.parametrize(
    ("agent", "env", "message"),
    [
        ("ts-gen(model=news-filter)", SMALL, "model must be trained on tasks with 2 action features"),
        ("ts-gen(model=news-filter, policy=logistic)", SMALL, "model must be trained on tasks with 2 action features"),
        ("ts-gen(model=exact)", NEWS, "model 'exact' is p\\* of settings that publish it"),
        ("gen-ucb(policy=features)", SMALL, "policy must read contexts for a model without context features"),
        (
            "ts-gen(model=exact, policy=logistic)",
            "gents_gym/Synthetic-v0(outcomes=gaussian)",
            "policy must be a policy class for gaussian outcomes, such as least-squares, got 'logistic'",
        ),
    ],
)
def test_a_model_or_policy_class_that_does_not_fit_the_tasks_is_refused_before_anything_is_played(agent, env, message):
    with pytest.raises(InputError, match=message) as refused:
        plan(config("linucb", agent, env=(env,)))
    assert str(refused.value).startswith(f"agent {agent!r} cannot play {env!r}: ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
        ({"block": 0}, "block must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"training_actions": 1}, "training_actions must be at least 2, got 1"),
        ({"split": "tst"}, "unknown split 'tst'; did you mean 'test'"),
        ({"oracle": "mlpp"}, "unknown policy class 'mlpp'"),
        (
            {"oracle": "os:getcwd"},
            "cannot import policy class 'os:getcwd': it must be in a module outside the standard library",
        ),
        ({"env": ()}, "env must name at least one environment, got none"),
        ({"env": SMALL}, r"env must name at least one environment, got 'gents_gym/Synthetic-v0\("),
        ({"env": (SMALL, SMALL)}, "env must differ from each other"),
        ({"env": (SMALL, "nowhere:Env-v0")}, "env 'nowhere:Env-v0' cannot be made"),
        ({"agents": ()}, "agents must name at least one agent, got none"),
        ({"agents": ("linucb", "linucb")}, "agents must differ from each other, got linucb linucb"),
        ({"agents": ("linucb", "linucb()")}, r"agents must differ from each other, got linucb linucb\(\)"),
        (
            {"agents": ("lints(prior=fitted, intercept=True)", "lints(intercept=True,prior='fitted')")},
            "agents must differ from each other",
        ),
        ({"env": (SMALL, SMALL.replace(" ", ""))}, "env must differ from each other"),
        ({"tasks": 10**12}, "tasks must make at most 100000 cells .*, got 1000000000000 tasks in blocks of 3"),
        ({"tasks": 10**12, "block": 10**12}, "cells of at most 100000 tasks, got 1000000000000 tasks"),
        ({"agents": ("linucb", "linucbb")}, "unknown agent 'linucbb'"),
    ],
)
def test_bad_configurations(changes, message):
    with pytest.raises(InputError, match=message):
        plan(replace(config("linucb"), **changes))
