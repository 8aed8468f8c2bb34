import numpy as np
import pytest

from gents_gym.numerics.rounds import is_rising, rounds


@pytest.mark.parametrize("seed", range(5))
def test_each_round_has_the_next_entry_of_every_task(seed):
    task = np.random.default_rng(seed).integers(4, size=30)
    parts = [task[part].tolist() for part in rounds(task)]
    assert all(len(set(part)) == len(part) for part in parts)
    places = np.concatenate([np.arange(30)[part] for part in rounds(task)])
    assert sorted(places) == list(range(30))
    for one in range(4):  # in the order in which a task's entries came
        assert [p for p in places if task[p] == one] == np.flatnonzero(task == one).tolist()
    assert len(parts) == np.bincount(task).max()


def test_rising_tasks_are_one_round_and_no_copy():
    assert list(rounds(np.array([0, 2, 5]))) == [slice(None)]
    assert is_rising(np.array([1, 2]))
    assert not is_rising(np.array([1, 1]))
