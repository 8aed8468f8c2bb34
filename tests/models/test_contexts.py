"""Context models: their picks' frequencies against the stated probabilities, and what they refuse."""

import numpy as np
import pytest
from scipy.stats import chisquare

from gents_gym import InputError
from gents_gym.models.contexts import (
    CONTEXT_MODELS,
    Sources,
    check_contexts,
    default_contexts,
    pick_bank,
    pick_given,
    pick_own,
    pick_seen,
)

MANY = 20_000


def rngs(n_tasks=2, seed=0):
    return [np.random.default_rng([seed, i]) for i in range(n_tasks)]


def assert_frequencies(picks, chances):
    """Check picks against the chances of every value, by a chi-square test."""
    values, counts = np.unique(picks, return_counts=True)
    assert set(values.tolist()) <= chances.keys()
    observed = [dict(zip(values.tolist(), counts.tolist(), strict=True)).get(value, 0) for value in chances]
    wanted = np.array(list(chances.values())) * picks.size
    assert chisquare(observed, wanted).pvalue > 1e-4


def test_the_bank_s_contexts_are_equally_likely():
    picks = pick_bank(Sources(7, 3, 0, 0.0), MANY // 4, 4, rngs())
    assert picks.shape == (2, 4, MANY // 4)
    assert_frequencies(picks, dict.fromkeys(range(7), 1 / 7))


@pytest.mark.parametrize(("alpha", "n_seen"), [(1.0, 1), (5.0, 3), (0.25, 2), (100.0, 4)])
def test_the_urn_holds_the_stated_share_of_the_task_s_own(alpha, n_seen):
    picks = pick_seen(Sources(4, n_seen, 0, alpha), MANY, 1, rngs())
    share = n_seen / (alpha + n_seen)
    own = {-1 - i: share / n_seen for i in range(n_seen)}
    assert_frequencies(picks, {**own, **dict.fromkeys(range(4), (1 - share) / 4)})


@pytest.mark.parametrize(
    ("sources", "chances"),
    [
        (Sources(0, 3, 0, 5.0), {-1: 1 / 3, -2: 1 / 3, -3: 1 / 3}),  # no bank
        (Sources(4, 2, 0, 0.0), {-1: 1 / 2, -2: 1 / 2}),  # nothing of it in the urn
        (Sources(2, 5, 0, np.inf), {0: 1 / 2, 1: 1 / 2}),  # nothing else
    ],
)
def test_the_ends_of_the_urn(sources, chances):
    assert_frequencies(pick_seen(sources, MANY, 1, rngs()), chances)


@pytest.mark.parametrize("alpha", [0.0, np.inf])
def test_own_contexts_outweigh_the_bank_whatever_its_mass(alpha):
    picks = pick_own(Sources(4, 24, 0, alpha), MANY, 1, rngs())
    own = {-1 - i: 1 / 32 for i in range(24)}
    assert_frequencies(picks, {**own, **dict.fromkeys(range(4), 1 / 16)})  # the bank's share is 8 of 32


def test_known_contexts_come_in_order_and_then_the_default():
    sources = Sources(3, 2, 5, 0.0)
    picks = pick_given(sources, 3, 2, rngs())
    assert picks.tolist() == [[[-3, -4, -5]] * 2] * 2
    longer = pick_given(sources, 6, 2, rngs())
    assert longer[:, :, :3].tolist() == picks.tolist()
    assert np.array_equal(longer[:, :, 3:], pick_bank(sources, 3, 2, rngs()))
    behind = pick_given(Sources(3, 6, 5, 0.0), 4, 2, rngs())  # all known ones are past
    assert np.array_equal(behind, pick_bank(sources, 4, 2, rngs()))
    without_bank = pick_given(Sources(0, 5, 5, 0.0), MANY, 1, rngs())
    assert_frequencies(without_bank, {-1 - i: 1 / 5 for i in range(5)})


@pytest.mark.parametrize("name", CONTEXT_MODELS)
def test_a_task_s_picks_come_from_its_own_generator(name):
    sources = Sources(9, 4, 5, 2.0)
    together = CONTEXT_MODELS[name](sources, 30, 2, rngs(3))
    for i in range(3):
        alone = CONTEXT_MODELS[name](sources, 30, 2, rngs(3)[i : i + 1])
        assert np.array_equal(together[i : i + 1], alone)
    assert CONTEXT_MODELS[name](sources, 0, 2, rngs(3)).shape == (3, 2, 0)


def test_the_default_is_the_bank_where_there_is_one():
    assert default_contexts(Sources(1, 1, 0, 0.0)) == "bank"
    assert default_contexts(Sources(0, 1, 9, 0.0)) == "seen"


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="contexts must be 'seen' or 'given' for a model without a bank, got 'bank'"):
        pick_bank(Sources(0, 1, 0, 0.0), 3, 1, rngs())
    with pytest.raises(InputError, match="'bank' or 'seen' for tasks without known contexts, got 'given'"):
        pick_given(Sources(3, 1, 0, 0.0), 3, 1, rngs())
    with pytest.raises(InputError, match="unknown context model 'sen'; did you mean 'seen'"):
        check_contexts("sen")
    assert check_contexts(None) is None
    assert [check_contexts(name) for name in CONTEXT_MODELS] == [None] * 4
