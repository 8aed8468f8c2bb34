"""Records in notebooks: data frames, texts and tables."""

import sys

import numpy as np
import pytest

from gents_gym import InputError, Rollout, rollout
from gents_gym.evaluation.frames import table_html
from gents_gym.evaluation.store import Evaluation

ENV = "gents_gym/Synthetic-v0(horizon=6, n_actions=3)"


@pytest.fixture(scope="module")
def record():
    return rollout(ENV, "random", tasks=4)


def results(records):
    names = [agent for each in records.values() for agent in each]
    return Evaluation({"agents": names, "env": list(records), "tasks": 4, "privileged": []}, records, {})


def test_a_row_for_each_task(record):
    frame = record.to_pandas()
    assert list(frame.columns) == ["task", "reward", "regret_oracle", "regret_expected", "regret_best"]
    assert frame["task"].tolist() == [0, 1, 2, 3]
    assert frame["reward"].tolist() == record.rewards.sum(axis=1).tolist()
    assert np.allclose(frame["regret_best"], record.cumulative("best")[:, -1])


def test_a_row_for_each_decision(record):
    frame = record.to_pandas(steps=True)
    assert len(frame) == 24
    table = frame.pivot_table(index="task", columns="step", values="action", aggfunc="sum")
    assert np.array_equal(table.to_numpy(), record.actions)
    assert list(table.columns) == [1, 2, 3, 4, 5, 6]
    ended = Rollout(np.array([[0, 1], [2, -1]]), np.array([[1.0, 0.0], [1.0, np.nan]]), indices=(5, 7))
    steps = ended.to_pandas(steps=True)
    assert steps[["task", "step", "action"]].to_numpy().tolist() == [[5, 1, 0], [5, 2, 1], [7, 1, 2]]
    assert ended.to_pandas()["reward"].tolist() == [1, 1]
    told = rollout(ENV, "random", tasks=2, propensities=True)
    assert told.to_pandas(steps=True)["propensity"].tolist() == [1 / 3] * 12


def test_all_records_in_one_frame(record):
    frame = results({"one": {"a": record, "b": record}, "two": {"a": record}}).to_pandas()
    assert len(frame) == 12
    assert list(frame.columns[:4]) == ["env", "agent", "privileged", "task"]
    assert frame.groupby(["env", "agent"])["reward"].sum().nunique() == 1
    assert len(results({}).to_pandas()) == 0


def test_pandas_is_optional(record, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"to_pandas needs the package 'pandas': pip install 'gents-gym\[notebook\]'"):
        record.to_pandas()


def test_texts_are_short(record):
    assert repr(record).startswith("Rollout(4 tasks of 6 decisions; per task: reward ")
    assert len(repr(record)) < 150
    found = results({ENV: {"a": record}})
    assert repr(found) == f"Evaluation({ENV}: 1 agent, 4 tasks)"
    assert repr(results({})) == "Evaluation(no agent is through, 4 tasks)"
    one = Rollout(record.actions[:1], record.rewards[:1])
    assert "nan" not in repr(one) + one._repr_html_()


def test_tables_are_html_and_escaped(record):
    total = record.rewards.sum(axis=1)
    error = total.std(ddof=1) / 2
    assert f"<td>{total.mean():.2f} ± {error:.2f}</td>" in record._repr_html_()
    shown = results({"<env>": {"<script>x</script>": record}})._repr_html_()
    assert "&lt;script&gt;x&lt;/script&gt;" in shown
    assert "<script" not in shown
    assert "&lt;env&gt;" in shown
    assert results({})._repr_html_() == "<p>Evaluation(no agent is through, 4 tasks)</p>"
    assert table_html("a", ["b"], [["c"]]).startswith("<table><caption>a</caption>")
