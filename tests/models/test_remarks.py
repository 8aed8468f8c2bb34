"""Remarks point out a bundled model chosen by its sizes alone, and one trained on shorter sequences."""

import logging
from dataclasses import replace

import numpy as np
import pytest

from gents_gym import BanditVectorEnv, InputError, Live, evaluate, load_results, rollout
from gents_gym.construct import make_tasks
from gents_gym.evaluation.grid import first_info
from gents_gym.models.remarks import model_remarks
from gents_gym.tasks.synthetic import Synthetic

BY_SIZE = "the bundled synthetic-filter plays because its sizes fit, but it was trained on gents_gym/Synthetic-v0"
LONG = "synthetic-filter was trained on sequences of 500 rows; these tasks have 501 decisions"

MODULE = """
import gents_gym
from gents_gym.tasks.synthetic import Synthetic

class Mine(Synthetic):
    oracle = "logistic"

    def sample(self, seed, indices, split="test"):
        tasks = super().sample(seed, indices, split)
        return gents_gym.Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, tasks.means, oracle=self.oracle)

class Wrong(Mine):
    oracle = "logistik"

gents_gym.register_tasks("remarks/Mine-v0", "{name}:Mine", horizon=6, n_actions=3)
gents_gym.register_tasks("remarks/Wrong-v0", "{name}:Wrong", horizon=6, n_actions=3)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The prefix of the ids of environments that are not ours, and have the sizes of a bundled model."""
    from gymnasium.envs.registration import registry

    name = "remarks_of_mine"
    (tmp_path / f"{name}.py").write_text(MODULE.replace("{name}", name))
    monkeypatch.syspath_prepend(tmp_path)
    yield f"{name}:remarks/"
    for env in ("remarks/Mine-v0", "remarks/Wrong-v0"):
        registry.pop(env, None)


def remarks(model, env, **options):
    info = first_info(env, "test", 0)
    name = env.partition("/")[2].partition("-")[0].lower()
    return model_remarks(model, replace(info, **options), make_tasks(name))


@pytest.mark.parametrize(
    ("model", "env", "options", "expected"),
    [
        ("filter", "gents_gym/Synthetic-v0", {}, []),
        ("filter", "gents_gym/Synthetic-v0", {"horizon": None}, []),
        ("filter", "gents_gym/Synthetic-v0", {"horizon": 501}, [LONG]),
        ("filter", "gents_gym/Imagined-v0", {}, []),
        ("filter", "gents_gym/Correlated-v0", {}, [BY_SIZE]),
        ("joint", "gents_gym/Correlated-v0", {}, []),
        ("filter", "gents_gym/Correlated-v0", {"horizon": 501}, [BY_SIZE, LONG]),
        ("synthetic-filter", "gents_gym/Correlated-v0", {}, []),  # the user named it
        ("synthetic-filter", "gents_gym/Correlated-v0", {"horizon": 501}, [LONG]),
        ("exact", "gents_gym/Correlated-v0", {"horizon": 501}, []),
        ("untrained", "gents_gym/Correlated-v0", {"horizon": 501}, []),
        ("an agent's own word", "gents_gym/Correlated-v0", {"horizon": 501}, []),
        (object(), "gents_gym/Correlated-v0", {"horizon": 501}, []),
    ],
)
def test_remarks(model, env, options, expected):
    found = remarks(model, env, **options)
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True))


def test_a_rollout_says_which_model_was_chosen(mine):
    (remark,) = rollout(f"{mine}Mine-v0", "greedy", tasks=2).remarks
    assert remark.startswith(BY_SIZE)
    assert remark in repr(rollout(f"{mine}Mine-v0", "greedy", tasks=2))
    assert rollout(f"{mine}Mine-v0", "greedy(model=synthetic-filter)", tasks=2).remarks == ()
    assert rollout(f"{mine}Mine-v0", "linucb", tasks=2).remarks == ()
    assert "synthetic-paper" in rollout(f"{mine}Mine-v0", "neural-linear-ts", tasks=2).remarks[0]
    assert rollout(BanditVectorEnv(Synthetic(3, 6), 2, autoreset_mode="Disabled"), "greedy").remarks == ()


def test_an_evaluation_keeps_remarks_and_shows_each_once(mine, tmp_path, run_command, capsys):
    env, out = f"{mine}Mine-v0", tmp_path / "out"
    words = ("evaluate", "--env", env, "gents_gym/Synthetic-v0(horizon=6)", "--tasks", 2, "--workers", 1, "--out", out)
    assert run_command(*words, "--agents", "greedy", "linucb") == 0
    assert capsys.readouterr().out.count(f"note: greedy: {BY_SIZE}") == 1
    assert run_command(*words, "--agents", "epsilon-greedy", "greedy") == 0
    assert capsys.readouterr().out.count(f"note: epsilon-greedy, greedy: {BY_SIZE}") == 1
    found = load_results(out)
    assert {agent: len(record.remarks) for agent, record in found.records[env].items()} == {
        "epsilon-greedy": 1,
        "greedy": 1,
        "linucb": 0,
    }
    assert list(found.manifest["remarks"]) == [env]
    assert BY_SIZE in found._repr_html_()
    assert run_command("report", out) == 0
    for name in ("report.html", "table.md"):
        text = (out / "report" / name).read_text().replace("\\", "")
        assert f"epsilon-greedy, greedy: {BY_SIZE}" in text


def test_a_wrong_oracle_is_found_before_anything_is_played(mine, tmp_path):
    rule = "cannot be measured against its own oracle: unknown policy class 'logistik'; did you mean 'logistic'?"
    with pytest.raises(InputError, match=rule.replace("?", r"\?")):
        evaluate(["linucb"], tmp_path / "out", env=f"{mine}Wrong-v0", tasks=2, workers=1)
    assert not (tmp_path / "out").exists()


def test_inspect_says_which_model_was_chosen(mine, tmp_path, run_command, capsys):
    assert run_command("inspect", "--env", f"{mine}Mine-v0", "--steps", 2, "--out", tmp_path / "page.html") == 0
    assert f"note: {BY_SIZE}" in capsys.readouterr().out
    assert BY_SIZE in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(("model", "said"), [("filter", 1), ("synthetic-filter", 0)])
def test_live_says_once_which_model_was_chosen(tmp_path, caplog, model, said):
    with Live(tmp_path / "live.db", model=model) as live:
        live.add("a", np.zeros(2))
        with caplog.at_level(logging.WARNING, "gents_gym"):
            for _ in range(2):
                live.decide(np.zeros(5))
        assert caplog.text.count(BY_SIZE) == said
        assert repr(live).count(BY_SIZE) == said
