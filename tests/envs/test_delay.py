import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.envs.delay import NEVER, make_delay


def lateness(delay, n=200_000, batch=1):
    """How much later decisions are shown, and which never."""
    rule = make_delay(delay, batch)
    shown = rule.shown(np.random.default_rng(0).random((n, 2)) if rule.is_random else None, 0, n)
    return (shown - np.arange(n))[shown < NEVER], shown == NEVER


@pytest.mark.parametrize("delay", [0, {"constant": 0}, {"geometric": 1}, {"values": [0], "probabilities": [1]}])
def test_no_delay_is_none(delay):
    assert make_delay(delay) is None


def test_geometric_delays_have_their_probabilities():
    late, lost = lateness({"geometric": 0.25, "lost": 0.1})
    for d in range(6):
        assert abs((late == d).mean() - 0.25 * 0.75**d) < 0.005
    assert abs(lost.mean() - 0.1) < 0.003


def test_listed_delays_have_their_probabilities():
    late, lost = lateness({"values": [7, 0, 2], "probabilities": [0.5, 0.2, 0.3]})
    assert [round(float((late == d).mean()), 2) for d in (7, 0, 2)] == [0.5, 0.2, 0.3]
    assert not lost.any()


def test_a_probability_of_zero_is_never_drawn():
    late, _ = lateness({"values": [9, 1, 5], "probabilities": [0.0, 1.0, 0.0]}, 10)
    assert late.tolist() == [1] * 10


def test_a_rate_next_to_zero_and_huge_numbers_are_later_than_any_end():
    for delay in ({"geometric": 1e-320}, 10**30, {"values": [10**30], "probabilities": [1]}):
        assert lateness(delay, 10)[0].min() >= 10**9
    assert lateness(0, 10, batch=10**30)[0].min() > 10**8


def test_outcomes_may_only_be_lost():
    late, lost = lateness({"lost": 0.5})
    assert not late.any()
    assert abs(lost.mean() - 0.5) < 0.01


def test_a_batch_is_shown_at_its_end():
    late, _ = lateness(0, 7, batch=3)
    assert (late + np.arange(7)).tolist() == [2, 2, 2, 5, 5, 5, 8]
    late, _ = lateness(1, 4, batch=3)  # decision 2's outcome arrives in the second batch
    assert (late + np.arange(4)).tolist() == [2, 2, 5, 5]


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        (-1, "delay must be at least 0, got -1"),
        (float("inf"), r"delay must be finite \(\{'lost': p\} is for outcomes that never arrive\), got inf"),
        (1.5, "delay must be a whole number, or a dict such as .*, got 1.5"),
        ("10", "delay must be a whole number, or a dict .*, got '10'"),
        (True, "delay must be a whole number, .*, got True"),
        ({}, "delay must be a whole number, or a dict .*, got {}"),
        ({"geometric": 0}, "delay's 'geometric' must be above 0, got 0"),
        ({"geometric": 1.5}, "delay's 'geometric' must be a probability, at most 1, got 1.5"),
        ({"geometric": 0.5, "constant": 3}, "delay must .*: one of constant, geometric, or values"),
        ({"lost": 1.1}, "delay's 'lost' must be a probability, at most 1, got 1.1"),
        ({"lost": -0.1}, "delay's 'lost' must be at least 0, got -0.1"),
        ({"values": [1, 2], "probabilities": [0.5, 0.4]}, "delay's 'probabilities' must sum to 1, got 0.9"),
        ({"values": [1, 2], "probabilities": [1.5, -0.5]}, "delay's 'probabilities' must be at least 0, got -0.5"),
        ({"values": [1], "probabilities": [0.5, 0.5]}, "must be lists of the same length, at least 1, got"),
        ({"values": [-1, 2], "probabilities": [0.5, 0.5]}, "delay must be at least 0, got -1"),
        ({"values": [1, 2]}, "delay must .* values with probabilities, got"),
        ({"gaussian": 1}, "unknown option of delay: unexpected keyword argument 'gaussian'"),
    ],
)
def test_bad_delays(delay, message):
    with pytest.raises(InputError, match=message) as raised:
        make_delay(delay)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("batch", [0, 1.5])
def test_bad_batches(batch):
    with pytest.raises(InputError, match="batch must be"):
        make_delay(0, batch)
