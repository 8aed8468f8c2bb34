import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.randomness import ROLES, SPLITS, Draws, stream


def test_every_name_has_numbers_of_its_own():
    names = [(seed, role, index, split) for seed in (0, 1) for role in ROLES for index in (0, 1) for split in SPLITS]
    firsts = {stream(*name).integers(2**63) for name in names}
    assert len(firsts) == len(names)
    assert stream(3, "task", 5).integers(2**63) == stream(3, "task", 5).integers(2**63)


def test_streams_leave_the_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    stream(0, "task", 0).random(10)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, "task", 0), "seed must be at least 0, got -1"),
        ((0.5, "task", 0), "seed must be a whole number, got 0.5"),
        ((0, "task", -2), "index must be at least 0, got -2"),
        ((0, "task", 0, "tset"), "unknown split 'tset'; did you mean 'test'?"),
    ],
)
def test_bad_names(arguments, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        stream(*arguments)


@pytest.mark.parametrize("ahead", [1, 7, 64])
@pytest.mark.parametrize("method", ["random", "standard_normal"])
def test_draws_are_the_tasks_own_numbers_in_order(method, ahead):
    draws = Draws([stream(0, "agent", i) for i in range(3)], method, 2, ahead)
    got = np.stack([draws.next() for _ in range(10)])  # (10, 3, 2)
    for i in range(3):
        rng = stream(0, "agent", i)
        assert np.array_equal(got[:, i], [getattr(rng, method)(2) for _ in range(10)])


def test_tasks_may_use_different_numbers_of_draws():
    draws = Draws([stream(0, "agent", i) for i in range(3)], "random", 4, ahead=2)
    rngs = [stream(0, "agent", i) for i in range(3)]
    for counts in ([4, 4, 4], [1, 3, 0], None, [2, 2, 2], [0, 4, 1], None, None):
        found = draws.next(None if counts is None else np.array(counts))
        for i, rng in enumerate(rngs):
            count = 4 if counts is None else counts[i]
            assert np.array_equal(found[i, :count], rng.random(count))
