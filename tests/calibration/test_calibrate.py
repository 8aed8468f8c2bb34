"""Calibration is right for nature's own posterior, shows a posterior that is too sure, and takes any model."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import betaln

from gents_gym import ActionRows, CalibrationConfig, ExactModel, InputError, Tasks, calibrate, load_model
from gents_gym.calibration import calibrate as module
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic

SMALL = CalibrationConfig(actions=12, tasks=4, draws=5, steps=(0, 3), rows=6, group=2)


def halved(model):
    """A copy of p* whose prior variances are halved."""
    prior = model.truth.prior

    def narrow(features):
        mean, variance = prior(features)
        return mean, variance / 2

    return replace(model, truth=replace(model.truth, prior=narrow))


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])
def test_the_joint_test_passes_p_star_and_fails_a_copy_with_half_the_variance(outcomes):
    nature = Synthetic(n_actions=3, horizon=30, outcomes=outcomes)
    exact = ExactModel(nature.truth, n_weighted=16)  # for predictions alone, which are not looked at
    config = CalibrationConfig(actions=2000, tasks=40, draws=9, steps=(0, 10), rows=40, group=1)
    right, wrong = (calibrate(model, nature, config) for model in (exact, halved(exact)))
    assert right.joint_p > 0.01
    assert wrong.joint_p < 1e-6
    for at in range(2):
        for level, (share, low, high) in right.coverage("mean reward", at).items():
            assert low - 0.01 < level < high + 0.01
            assert wrong.coverage("mean reward", at)[level][0] < share
    assert "not refuted" in right.verdict
    assert "refuted at 1 %" in wrong.verdict


@dataclass(frozen=True)
class Coins:
    """Nature without contexts and without a published p*: rates are Beta(2, 3)."""

    horizon: int = 25

    def sample(self, seed, indices, split="test"):
        rngs = [np.random.default_rng([seed, 1, i]) for i in indices]
        rates = np.stack([rng.beta(2, 3, 3) for rng in rngs])[:, None]  # (B, 1, A)
        outcomes = np.stack([rng.random((self.horizon, 3)) for rng in rngs]) < rates
        contexts = np.stack([rng.normal(size=(self.horizon, 2)) for rng in rngs])
        return Tasks(np.zeros((len(rngs), 3, 1)), contexts, outcomes.astype(np.float32))

    def sample_actions(self, seed, indices, n_rows, split="train"):
        rngs = [np.random.default_rng([seed, 2, i]) for i in indices]
        rates = np.array([rng.beta(2, 3) for rng in rngs])[:, None]
        outcomes = np.stack([rng.random(n_rows) for rng in rngs]) < rates
        contexts = np.stack([rng.normal(size=(n_rows, 2)) for rng in rngs])
        return ActionRows(np.zeros((len(rngs), 1)), contexts, outcomes.astype(np.float32))


@dataclass
class Counting:
    """A user's model, which is right about :class:`Coins` if it begins with 2 and 3."""

    ones: float = 2
    zeros: float = 3

    def start(self, action_features):
        return np.tile([self.ones, self.zeros], (len(action_features), 1))

    def predict(self, state, context):
        return state[:, 0] / state.sum(axis=1)

    def append(self, state, context, outcome, where=None):
        where = np.ones(len(outcome), bool) if where is None else where
        return state + np.where(where[:, None], np.stack([outcome, 1 - outcome], axis=1), 0)


def test_a_model_of_ones_own_and_a_nature_without_p_star():
    config = CalibrationConfig(actions=600, tasks=60, draws=9, steps=(0, 8), rows=12, group=5)
    right = calibrate(Counting(), Coins(), config)
    assert right.joint_p is None
    assert "p* is not known" in right.verdict
    for name in ("mean reward", "policy value"):
        assert right.p_values(name).min() > 0.01
    rows = Coins().sample_actions(0, range(600), 20, "test").outcomes
    seen, group = rows[:, :8].sum(axis=1), rows[:, 8:13].sum(axis=1)
    joint = betaln(2 + seen + group, 16 - seen - group) - betaln(2 + seen, 11 - seen)  # a group's log-probability
    assert right.losses["joint"][:, 1] == pytest.approx(-joint / 5, abs=1e-4)
    sure = calibrate(Counting(20, 30), Coins(), config)
    assert sure.coverage("mean reward", 0)[0.8][0] < 0.7
    assert sure.widths["mean reward"][0] < right.widths["mean reward"][0]
    assert sure.p_values("mean reward").max() < 1e-6


def test_more_actions_and_other_blocks_leave_the_first_as_they_are(monkeypatch):
    model, nature = load_model("synthetic-filter"), Synthetic(horizon=10)
    whole = calibrate(model, nature, SMALL)
    monkeypatch.setattr(module, "ACTIONS", 5)
    monkeypatch.setattr(module, "TASKS", 3)
    blocks = []
    fewer = calibrate(model, nature, replace(SMALL, actions=7), lambda over, total: blocks.append((over, total)))
    for name, count in (("mean reward", 7), ("policy value", 4)):
        assert np.array_equal(fewer.positions[name], whole.positions[name][:count])
    assert blocks == [(i, 4) for i in range(1, 5)]


@pytest.mark.parametrize(
    ("nature", "model"),
    [
        (Synthetic(horizon=10, outcomes="categorical"), "synthetic-filter-categorical"),
        (Synthetic(horizon=10, outcomes="categorical"), "exact"),
        (Synthetic(horizon=10, outcomes="gaussian"), "filter"),
        (Synthetic(horizon=10), "synthetic-paper"),
        (News(horizon=10), "news-filter"),
        (News(horizon=10), "exact"),
    ],
)
@pytest.mark.parametrize("contexts", [None, "given"])
def test_every_kind_of_model_and_outcome(nature, model, contexts):
    found = calibrate(model, nature, replace(SMALL, contexts=contexts))
    assert found.tested
    numbers = found.numbers()
    assert [step["observed"] for step in numbers["steps"]] == [0, 3]
    assert all(np.isfinite(found.losses[name]).all() for name in ("marginal", "joint"))
    assert (found.losses["joint"] != found.losses["marginal"]).any()


def test_outcomes_that_a_model_held_impossible_cost_an_infinite_loss():
    found = calibrate(Counting(0, 1e-9), Coins(), SMALL)
    assert found.loss("joint", 0)[0] == np.inf
    assert found.numbers()["steps"][0]["loss"]["joint"][0] == "inf"


@pytest.mark.parametrize(
    ("model", "nature", "options", "message"),
    [
        (Counting(), Coins(), {"sbc": "yes"}, r"sbc \(simulation-based calibration\) needs a setting that publishes"),
        ("exact", Coins(), {}, r"model 'exact' is p\* of settings that publish it"),
        ("news-filter", Synthetic(), {}, "must be trained on tasks with 2 action features"),
        (load_model("news-filter"), Synthetic(), {}, r"action_features must have shape \(N, 64\)"),
        ("synthetic-filter", Synthetic(outcomes="gaussian"), {}, "gaussian outcomes; synthetic-filter has"),
        ("synthetic-filter", Synthetic(horizon=50), {"steps": (0, 50)}, "steps must lie below the horizon, 50, got 50"),
        ("synthetic-filter", Synthetic(), {"policy": "features"}, "policy must be fitted to contexts"),
        ("synthetic-filter", Synthetic(), {"policy": "logistc"}, "did you mean 'logistic'?"),
        ("synthetic-filter", Synthetic(), {"contexts": "bnk"}, "unknown context model 'bnk'"),
        (Counting(), Coins(), {"contexts": "bank"}, "for a model without a bank"),
        (3, Synthetic(), {}, "model must be a model's id"),
        (
            "synthetic-transformer",
            Synthetic(),
            {"rows": 900},
            r"at most 1024 .* got 1100 \(calibration reads 1100 rows of an action: the last of steps",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_first(model, nature, options, message):
    with pytest.raises(InputError, match=message):
        calibrate(model, nature, CalibrationConfig(actions=10**9, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"actions": 1}, "actions must be at least 2, got 1"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"steps": (10, 3)}, r"steps must rise, and be at least one, got \(10, 3\)"),
        ({"steps": ()}, "steps must rise, and be at least one"),
        ({"steps": (-1,)}, "steps must be at least 0, got -1"),
        ({"sbc": "maybe"}, "unknown answer to sbc: 'maybe'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        CalibrationConfig(**options)
