import math
from types import SimpleNamespace

import numpy as np
import pytest

from gents_gym.checks import InputError
from gents_gym.models.banks import Banks, Setting, context_law, read_banks
from gents_gym.tasks.synthetic import Synthetic

rng = np.random.default_rng(0)
ACTIONS, CONTEXTS = rng.normal(size=(20, 2)).astype(np.float32), rng.normal(2, 3, size=(500, 4)).astype(np.float32)
AT = (0, 0, "test")


def banks(law, alpha=math.inf):
    return Banks(ACTIONS, CONTEXTS, law, alpha, None)


def rows_of(found, bank):
    return [int(np.flatnonzero((bank == row).all(axis=1))[0]) for row in found]


def test_actions_are_distinct_and_contexts_of_the_bank():
    features, contexts = banks("bank").draw(AT, np.random.default_rng(1), 20, 300)
    assert sorted(rows_of(features, ACTIONS)) == list(range(20))
    assert len(set(rows_of(contexts, CONTEXTS))) > 150


@pytest.mark.parametrize("alpha", [0.0, 1.0, 30.0])
def test_an_urn_has_as_many_different_contexts_as_its_mass_promises(alpha):
    drawn = [banks("seen", alpha).draw(AT, np.random.default_rng(i), 2, 60)[1] for i in range(300)]
    counts = np.array([len(np.unique(one, axis=0)) for one in drawn])
    expected = 1 + sum(alpha / (alpha + t) for t in range(1, 60))  # but for those that the bank repeats
    error = counts.std() / np.sqrt(len(counts))
    assert abs(counts.mean() - expected) <= 4 * error + 0.06 * (alpha > 0) * expected


def test_earlier_contexts_are_drawn_alike():
    """Polya's urn is exchangeable: the first two contexts agree as often as the last two."""
    drawn = [banks("seen", 2.0).draw(AT, np.random.default_rng(i), 2, 30)[1] for i in range(3000)]
    first, last = (np.mean([(one[i] == one[j]).all() for one in drawn]) for i, j in ((0, 1), (28, 29)))
    error = np.sqrt(2 * first * (1 - first) / len(drawn))
    assert abs(first - 1 / 3) < 4 * error
    assert abs(first - last) < 4 * error


def test_a_number_says_how_much_the_contexts_of_a_task_differ():
    drawn = np.stack([banks(0.6).draw(AT, np.random.default_rng(i), 2, 40)[1] for i in range(1500)])  # (n, T, D)
    centred = (drawn - CONTEXTS.mean(axis=0)) / CONTEXTS.std(axis=0)
    assert np.abs(centred.mean(axis=(0, 1))).max() < 0.1
    assert np.allclose(centred.var(axis=(0, 1)), 1, atol=0.1)
    within = (centred[:, ::2] * centred[:, 1::2]).mean(axis=(0, 1))
    assert np.allclose(within, 1 - 0.6**2, atol=0.1)
    same = banks(0.0).draw(AT, np.random.default_rng(1), 2, 9)[1]
    assert (same == same[0]).all()
    assert np.allclose(same[0], CONTEXTS[rows_of(np.round(same[:1], 4), np.round(CONTEXTS, 4))[0]], atol=1e-5)


@pytest.mark.parametrize(
    ("contexts", "alpha", "law"),
    [
        (None, 3.0, "seen"),
        (None, math.inf, "bank"),
        ("seen", math.inf, "bank"),
        ("bank", 3.0, "bank"),
        (1, 3.0, "bank"),
        (0, 3.0, 0.0),
        (0.5, math.inf, 0.5),
    ],
)
def test_one_law_has_one_name(contexts, alpha, law):
    assert context_law(contexts, alpha) == law


@pytest.mark.parametrize(
    ("contexts", "message"),
    [
        ("sen", r"unknown law of contexts \(or a number in \[0, 1\]\) 'sen'; did you mean 'seen'\?"),
        (1.5, "contexts must be at most 1, got 1.5"),
        (-1, "contexts must be at least 0, got -1"),
        (True, "contexts must be a number, got True"),
        ([1], r"contexts must be a number, got \[1\]"),
    ],
)
def test_bad_laws(contexts, message):
    with pytest.raises(InputError, match=message):
        context_law(contexts, 1.0)


def test_a_models_banks():
    found = read_banks(SimpleNamespace(action_bank=ACTIONS, bank=CONTEXTS, urn=0.25, space="words"), "mine", None)
    assert (found.alpha, found.law, found.space, found.sizes) == (3.0, "seen", "words", (2, 4))


@pytest.mark.parametrize("lacking", ["action_bank", "bank"])
@pytest.mark.parametrize("value", [None, np.zeros((0, 3))])
def test_a_model_without_a_bank(lacking, value):
    model = SimpleNamespace(action_bank=ACTIONS, bank=CONTEXTS)
    delattr(model, lacking) if value is None else setattr(model, lacking, value)
    with pytest.raises(InputError, match=f"model must keep training data to draw from in its {lacking}, got none in "):
        read_banks(model, "mine", None)


def test_a_model_that_never_keeps_a_bank_is_not_to_be_trained_again():
    model = SimpleNamespace(action_bank=ACTIONS, banked=False)
    with pytest.raises(InputError, match="in its bank, got none in 'mine': name a setting to take actions"):
        read_banks(model, "mine", None)


def test_a_setting_draws_other_actions_and_contexts_for_every_task():
    source = Setting(Synthetic(), (2, 5), None)
    (z0, x0), (z1, x1) = (source.draw((0, i, "test"), rng, 3, 6) for i in (0, 1))
    assert z0.shape == (3, 2)
    assert x0.shape == (6, 5)
    assert not np.isin(z0, z1).any()
    assert not np.isin(x0, x1).any()
