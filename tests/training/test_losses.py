"""Tests losses against the exact twin of the news setting, and the share of a gap that a model closes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gents_gym import ActionRows, ExactModel, InputError, load_model
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.paper import PaperConfig, PaperModel
from gents_gym.tasks.news import News, context_features
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.losses import Losses, exact_model, measure, order_spread


def test_the_news_twin_knows_both_maps():
    rows = News().sample_actions(0, range(30), 20, "test")
    found = measure({"exact": replace(exact_model(News()), n_weighted=32)}, rows)
    told = ActionRows(rows.hidden_features, context_features(rows.contexts), rows.outcomes)
    plain = measure({"exact": ExactModel(Synthetic(context_dim=4).truth, n_weighted=32)}, told)
    assert np.array_equal(found.sums["exact"], plain.sums["exact"])
    nature = Synthetic()
    assert exact_model(nature) == ExactModel(nature.truth)
    with pytest.raises(InputError, match=r"exact is p\* of settings that publish their truth, got int"):
        exact_model(3)


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian", "categorical"])
def test_the_error_of_the_reference_is_what_other_seeds_show(kind):
    """Their distance from what many more proposals give."""
    nature = Synthetic(outcomes=kind)
    rows = nature.sample_actions(0, range(30), 4, "test")
    rough, fine = (ExactModel(nature.truth, n_weighted=n) for n in (8, 3000))
    best = measure({"exact": fine}, rows, prefixes=(2,))
    found = [measure({"exact": rough}, rows, seed, prefixes=(2,)) for seed in range(60)]
    for prefix in (2, 4):
        away = [one.mean("exact", prefix)[0] - best.mean("exact", prefix)[0] for one in found]
        claimed = np.sqrt(np.mean([one.error("exact", prefix) ** 2 for one in found]))
        if kind == "gaussian":
            assert np.array_equal(away, np.zeros(60))
            assert claimed == 0
        else:
            assert best.error("exact", prefix) < claimed / 10
            assert np.sqrt(np.mean(np.square(away))) == pytest.approx(claimed, rel=0.3)


def test_a_share_of_a_distance_and_its_error():
    rng = np.random.default_rng(0)
    near, whole = rng.normal(size=(2, 400, 1))
    sums = {"near": near, "far": near + 2 + whole, "model": near + 0.5 + 0.3 * whole + 0.2 * rng.normal(size=(400, 1))}
    losses = Losses((10,), sums)
    share, error = losses.closed("model", "far", "near", 10)
    assert share == pytest.approx(1 - (sums["model"] - near).mean() / (sums["far"] - near).mean())
    assert losses.closed("far", "far", "near", 10) == (0, 0)
    assert losses.closed("near", "far", "near", 10) == (1, 0)
    again = []
    for _ in range(400):
        picked = rng.integers(400, size=400)
        again.append(Losses((10,), {k: v[picked] for k, v in sums.items()}).closed("model", "far", "near", 10)[0])
    assert error == pytest.approx(np.std(again), rel=0.2)


def test_embeddings_of_another_space_are_refused():
    rows = News().sample_actions(0, range(4), 5, "test")
    model = FilterModel(FilterConfig(64, 5))
    measure({"model": model}, rows)
    model.space = rows.space
    measure({"model": model}, rows)
    with pytest.raises(InputError, match=r"must come from the space .* got 'other': train a model on this corpus"):
        measure({"model": model}, replace(rows, space="other"))
    with pytest.raises(InputError, match=r"shape \(N, 64\) for this model, got \(4, 2\): choose a model of this env"):
        model.start(torch.zeros(4, 2))


def test_models_of_other_outcomes_are_refused():
    rows = Synthetic(outcomes="gaussian").sample_actions(0, range(4), 5, "test")
    with pytest.raises(InputError, match="models must be of gaussian outcomes for these rows, got bernoulli ones"):
        measure({"model": load_model("synthetic-filter")}, rows)


def test_the_spread_over_orders_is_nothing_for_sets_and_something_for_sequences():
    """The paper's statistics are sums over rows; forgetting reads the time of each row, and so its order."""
    rows = Synthetic().sample_actions(0, range(5), 12)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        as_set, as_sequence = PaperModel(PaperConfig(2, 5, width=8)), FilterModel(FilterConfig(2, 5, forgetting=1))
    assert order_spread(as_set, rows, 4).max() < 1e-5
    spread = order_spread(as_sequence, rows, 4)
    assert spread.shape == (5,)
    assert spread.min() > 1e-4
    np.testing.assert_array_equal(spread, order_spread(as_sequence, rows, 4))
