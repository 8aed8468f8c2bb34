import numpy as np
import pytest

from gents_gym import InputError, Roles, RowSets, read_logs
from gents_gym.live.export import read_decisions
from gents_gym.live.live import Live
from gents_gym.logs.encoding import Column, Encoding
from gents_gym.models.filter import FilterConfig, FilterModel


def test_a_log_has_what_was_decided_and_what_came_of_it(tmp_path):
    rng = np.random.default_rng(0)
    features, contexts = rng.normal(size=(3, 2)).astype(np.float32), rng.normal(size=(6, 5)).astype(np.float32)
    path = tmp_path / "live.db"
    with Live(path, "greedy", "synthetic-filter") as live:
        for i, one in enumerate(features):
            live.add(f"item-{i}", one)
        with pytest.raises(InputError, match="store must have decisions with outcomes"):
            read_decisions(path)
        made = [live.decide(context) for context in contexts]
        for decision in made[4:0:-1]:
            live.outcome(decision.id, decision.id % 2)
        table = read_decisions(path)  # while it is in use
    assert table["decision"].to_pylist() == [decision.id for decision in made[1:5]]
    assert table["outcome"].to_pylist() == [decision.id % 2 for decision in made[1:5]]
    assert table["action"].to_pylist() == [decision.action for decision in made[1:5]]
    found = np.stack([table[f"x_{i}"].to_numpy() for i in range(5)], axis=1)
    np.testing.assert_array_equal(found, contexts[1:5])
    rows = [int(decision.action[-1]) for decision in made[1:5]]
    np.testing.assert_array_equal(np.stack([table[f"z_{i}"].to_numpy() for i in range(2)], axis=1), features[rows])
    assert read_decisions(path, pending=True)["outcome"].null_count == 2


def test_columns_have_the_names_of_the_model_s_log(tmp_path):
    encoding = Encoding(
        (Column("time"), Column("device", ("ios", "web")), Column("day", ("a", "b"))),
        (Column("kind", ("hat", "shoe")),),
    )
    model = FilterModel(FilterConfig(2, 5)).save_pretrained(tmp_path / "model", {"columns": encoding.to_json()})
    path = tmp_path / "live.db"
    with Live(path, "softmax", str(model)) as live:
        live.add("x", {"kind": "shoe"})
        for context in ({"time": 12, "device": "web", "day": "a"}, [13, 1, 0, 0.5, 0.5]):
            live.outcome(live.decide(context).id, 1)
    table = read_decisions(path)
    found = {name: table[name].to_pylist() for name in table.column_names[6:]}
    days = {"day=a": [1, 0.5], "day=b": [0, 0.5]}  # not a level in every row
    assert found == {"x_time": [12, 13], "device": ["web", "ios"], **days, "kind": ["shoe"] * 2}


ROLES = Roles("action", "outcome", ("x_*",), ("z_*",), "time", "propensity", "stream")


def test_the_circle_closes(tmp_path, run_command, capsys):
    """From decisions to a log, by a file and in memory, to rows that a model can be trained on."""
    rng, path, file = np.random.default_rng(0), tmp_path / "live.db", tmp_path / "log.parquet"
    with Live(path, "softmax", "synthetic-filter") as live:
        for stream in ("a", "b"):
            for i in range(3):
                live.add(f"item-{i}", rng.normal(size=2), stream=stream)
        made = [live.decide(rng.normal(size=5), stream="ab"[t % 2]) for t in range(20)]
        for decision in made:
            live.outcome(decision.id, decision.id % 2)
    assert run_command("live", "export", str(path), "--out", str(file)) == 0
    assert f"20 decisions in {file}" in capsys.readouterr().out
    logs, same = read_logs(file, ROLES), read_logs(read_decisions(path), ROLES)
    assert logs.content_hash == same.content_hash
    np.testing.assert_allclose(sorted(logs.propensities), sorted(decision.probability for decision in made), rtol=1e-6)
    rows = RowSets.from_logs(logs)
    assert len(rows.contexts) == 20
    assert rows.outcomes.sum() == sum(decision.id % 2 for decision in made)
    assert run_command("live", "export", str(path), "--out", str(file)) == 2
    assert "out must be a new file" in capsys.readouterr().err
    assert run_command("live", "export", str(tmp_path / "none.db"), "--out", str(tmp_path / "new.parquet")) == 2
    assert "none.db', which does not exist" in capsys.readouterr().err
    assert not (tmp_path / "new.parquet").exists()
