import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.live.export import read_decisions
from gents_gym.live.live import Live


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
