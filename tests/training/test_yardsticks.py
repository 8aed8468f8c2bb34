"""The yardsticks against closed forms, scipy's conjugate distributions and scikit-learn."""

import math
import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import betabinom, dirichlet_multinomial, multivariate_normal
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gents_gym import RowSets, preset_config
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.training import yardsticks
from gents_gym.training.untrained import _scaling
from gents_gym.training.yardsticks import fit_base_rate, fit_constant, judge, measure_yardsticks

HORIZON = 20


def draw(likelihood, seed, n_actions=80, same=False):
    """Actions with 5 to 40 rows each, or 20; levels of their own, and slopes on Z and X that all share."""
    rng = np.random.default_rng(seed)
    counts = np.full(n_actions, HORIZON) if same else rng.integers(5, 40, size=n_actions)
    owners = np.repeat(np.arange(n_actions), counts)
    z, x = rng.normal(3, 2, size=(n_actions, 2)), rng.normal(-1, 5, size=(len(owners), 3))
    n_logits = likelihood.n_outcomes - 1 if isinstance(likelihood, Categorical) else 1
    levels = rng.normal(size=(n_actions, n_logits))
    slopes = np.random.default_rng(9).normal(size=(5, n_logits)) * [[0.3], [0.3], [0.1], [0.1], [0.1]]
    logits = levels[owners] + np.concatenate([z[owners], x], axis=1) @ slopes
    if likelihood == GAUSSIAN:
        outcomes = logits[:, 0] + 0.7 * rng.normal(size=len(owners))
    else:
        odds = np.exp(np.concatenate([np.zeros((len(owners), 1)), logits], axis=1))
        ceilings = np.cumsum(odds, axis=1) / odds.sum(axis=1, keepdims=True)
        outcomes = (rng.random((len(owners), 1)) > ceilings).sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return RowSets(z, x, outcomes.astype(np.float32), offsets, likelihood=likelihood)


def model_of(rows, blind=False):
    model = FilterModel(FilterConfig(rows.action_features.shape[1], rows.contexts.shape[1]))
    model.context_scaling, model.action_scaling = _scaling(rows.contexts), _scaling(rows.action_features)
    if blind:
        model.action_scaling[1] = 0
    return model


def first_rows(rows):
    """Return the numbers of each action's first 20 rows, and the actions that they are of."""
    picked = [np.arange(a, min(b, a + HORIZON)) for a, b in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)]
    return np.concatenate(picked), np.repeat(np.arange(len(rows)), [len(part) for part in picked])


likelihoods = pytest.mark.parametrize("likelihood", [BERNOULLI, Categorical(3), GAUSSIAN], ids=str)


@likelihoods
def test_constant_and_regression_are_scikit_learns(likelihood):
    rows, held_out = draw(likelihood, 0), draw(likelihood, 1)
    found = measure_yardsticks(model_of(rows), rows, held_out, HORIZON)
    owners = np.repeat(np.arange(len(rows)), np.diff(rows.offsets))
    inputs = np.concatenate([rows.action_features[owners], rows.contexts], axis=1).astype(float)
    picked, of = first_rows(held_out)
    others = np.concatenate([held_out.action_features[of], held_out.contexts[picked]], axis=1).astype(float)
    y, outcomes = rows.outcomes.astype(float), held_out.outcomes[picked]
    if likelihood == GAUSSIAN:
        fit = make_pipeline(StandardScaler(), LinearRegression()).fit(inputs, y)
        expected = {}
        for name, mean, noise in (
            ("constant", y.mean(), y.var()),
            ("regression", fit.predict(others), ((y - fit.predict(inputs)) ** 2).mean()),
        ):
            expected[name] = (0.5 * np.log(2 * np.pi * noise) + (outcomes - mean) ** 2 / (2 * noise)).mean()
    else:
        fit = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8)).fit(inputs, y)
        chances = fit.predict_proba(others)[np.arange(len(others)), outcomes.astype(int)]
        frequencies = np.bincount(y.astype(int)) / len(y)
        expected = {
            "constant": -np.log(frequencies[outcomes.astype(int)]).mean(),
            "regression": -np.log(chances).mean(),
        }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-3)  # half a row of each outcome is added
    assert found["regression"] < found["constant"] - 0.03


@pytest.mark.parametrize("likelihood", [BERNOULLI, Categorical(3)], ids=str)
def test_the_prior_of_base_rates_is_the_conjugate_one_of_the_largest_likelihood(likelihood):
    rows = draw(likelihood, 2, 200, same=True)
    center, _ = fit_constant(likelihood, rows.outcomes)
    strength, _ = fit_base_rate(likelihood, center, rows.sequences(np.arange(200), HORIZON))
    counts = np.stack([(rows.outcomes.reshape(200, -1) == k).sum(axis=1) for k in range(len(center))], axis=1)

    def loss(log_strength):
        prior = math.exp(log_strength[0]) * center
        if likelihood == BERNOULLI:
            return -betabinom.logpmf(counts[:, 1], HORIZON, prior[1], prior[0]).sum()
        return -dirichlet_multinomial.logpmf(counts, prior, np.full(200, HORIZON)).sum()

    assert math.log(strength) == pytest.approx(minimize(loss, [0.0], method="Nelder-Mead").x[0], abs=1e-3)


def test_the_prior_of_gaussian_base_rates_has_the_largest_marginal_likelihood():
    rows = draw(GAUSSIAN, 2, 200, same=True)
    center, _ = fit_constant(GAUSSIAN, rows.outcomes)
    strength, noise = fit_base_rate(GAUSSIAN, center, rows.sequences(np.arange(200), HORIZON))

    def loss(logs):
        covariance = math.exp(logs[1]) * (np.eye(HORIZON) + np.ones((HORIZON, HORIZON)) / math.exp(logs[0]))
        return -multivariate_normal.logpdf(rows.outcomes.reshape(200, -1), [center[0]] * HORIZON, covariance).sum()

    expected = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-6}).x
    assert [math.log(strength), math.log(noise)] == pytest.approx(expected, abs=1e-3)


@likelihoods
def test_base_rates_are_running_means_smoothed(likelihood):
    rows, held_out = draw(likelihood, 3), draw(likelihood, 4)
    found = measure_yardsticks(model_of(rows), rows, held_out, HORIZON)["base rate"]
    center, _ = fit_constant(likelihood, rows.outcomes)
    strength, noise = fit_base_rate(likelihood, center, rows.sequences(np.arange(len(rows)), HORIZON))
    losses = []
    for i in range(len(held_out)):
        own = held_out.outcomes[held_out.offsets[i] : held_out.offsets[i + 1]][:HORIZON]
        for t, y in enumerate(own):
            if likelihood == GAUSSIAN:
                mean = (strength * center[0] + own[:t].sum()) / (strength + t)
                variance = noise * (1 + 1 / (strength + t))
                losses.append(0.5 * math.log(2 * math.pi * variance) + (y - mean) ** 2 / (2 * variance))
            else:
                chance = (strength * center[int(y)] + (own[:t] == y).sum()) / (strength + t)
                losses.append(-math.log(chance))
    assert found == pytest.approx(np.mean(losses), abs=1e-6)
    constant = measure_yardsticks(model_of(rows), rows, held_out, HORIZON)["constant"]
    assert found < constant


def test_a_model_that_sees_no_action_features_has_a_yardstick_that_sees_none():
    rows, held_out = draw(BERNOULLI, 0), draw(BERNOULLI, 1)
    seeing, blind = (
        measure_yardsticks(model_of(rows, b), rows, held_out, HORIZON)["regression"] for b in (False, True)
    )
    nothing = RowSets(np.zeros((len(rows), 1)), rows.contexts, rows.outcomes, rows.offsets)
    others = RowSets(np.zeros((len(held_out), 1)), held_out.contexts, held_out.outcomes, held_out.offsets)
    assert blind == pytest.approx(measure_yardsticks(model_of(nothing), nothing, others, HORIZON)["regression"])
    assert abs(seeing - blind) > 0.01


def test_outcomes_that_never_came_have_a_finite_loss():
    rows, held_out = draw(Categorical(3), 0), draw(Categorical(3), 1)
    for kept in ([0.0, 1.0], [1.0]):
        outcomes = np.where(np.isin(rows.outcomes, kept), rows.outcomes, np.float32(1))
        narrow = RowSets(rows.action_features, rows.contexts, outcomes, rows.offsets, likelihood=Categorical(3))
        found = measure_yardsticks(model_of(rows), narrow, held_out, HORIZON)
        assert all(1 < loss < 10 for loss in found.values())


def test_many_rows_are_sampled(monkeypatch):
    rows, held_out = draw(BERNOULLI, 0), draw(BERNOULLI, 1)
    whole = measure_yardsticks(model_of(rows), rows, held_out, HORIZON)
    monkeypatch.setattr(yardsticks, "ROWS", 500)
    monkeypatch.setattr(yardsticks, "ACTIONS", 30)
    monkeypatch.setattr(yardsticks, "BLOCK", 7)
    fewer = measure_yardsticks(model_of(rows), rows, held_out, HORIZON)
    assert fewer == measure_yardsticks(model_of(rows), rows, held_out, HORIZON)
    assert fewer["constant"] == pytest.approx(whole["constant"])
    for name in ("base rate", "regression"):
        assert fewer[name] != whole[name]
        assert fewer[name] == pytest.approx(whole[name], abs=0.05)


@pytest.mark.parametrize(
    ("likelihood", "loss", "expected"),
    [
        (BERNOULLI, 0.56, None),
        (BERNOULLI, 0.57, None),
        (BERNOULLI, 0.58, r"hardly beats the base rate: its loss is only 3.3% lower \(0.5800 against 0.6000"),
        (BERNOULLI, 0.61, "does not beat the base rate"),
        (GAUSSIAN, 0.57, None),
        (GAUSSIAN, 0.58, "its variance is only 3.9% lower"),
    ],
)
def test_a_model_that_hardly_beats_them_says_so(likelihood, loss, expected):
    verdict = judge(likelihood, loss, {"constant": 0.69, "base rate": 0.6, "regression": 0.65})
    if expected is None:
        assert verdict is None
    else:
        assert re.search(expected, verdict)
        assert "more actions, more rows or more epochs" in verdict


def test_losses_may_be_below_zero():
    assert judge(GAUSSIAN, -1.2, {"constant": -1.0}) is None
    assert "hardly" in judge(GAUSSIAN, -1.01, {"constant": -1.0})
    assert "does not beat" in judge(BERNOULLI, 0.0, {"constant": 0.0})


def test_presets_of_the_advice_exist():
    preset_config("filter", model={"context_features": 8, "prior_width": 64})
