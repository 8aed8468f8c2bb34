"""Neural-linear Thompson sampling against slow, obvious versions; its features by hand from the models' weights."""

import functools

import gymnasium as gym
import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from gents_gym import ActionRows, InputError, TaskInfo, load_model, make_agent, make_tasks, rollout
from gents_gym.agents.neural_linear import NeuralLinearTS
from gents_gym.models.exact import ExactModel
from gents_gym.models.paper import PaperConfig, PaperModel
from gents_gym.randomness import stream
from gents_gym.tasks.synthetic import Synthetic

A, T = 4, 60
ROWS = Synthetic().sample_actions(0, range(120), 60)  # more than one block of actions, fewer rows than features


@functools.cache
def weights(name):
    return {key: tensor.numpy().astype(float) for key, tensor in load_model(name).state_dict().items()}


def by_hand(name, z, x):
    """Features of one action (F,) in one context (D,), with NumPy in float64."""
    w = weights(name)
    z, x = ((part - w[key][0]) * w[key][1] for part, key in ((z, "action_scaling"), (x, "context_scaling")))
    if name == "synthetic-filter":
        row = np.array([1, *x])
        return np.array([*row, row @ w["prior_mean"] @ [1, *z]])
    empty = np.concatenate([np.eye(5).ravel(), np.zeros(5)])  # (XᵀX + I)^-1 and β̂ of no rows
    h = np.maximum(w["plain"] @ [*z, *x] + w["folded"] @ empty + w["bias"], 0)
    for layer in (1, 3, 5):
        h = np.maximum(w[f"hidden.{layer}.weight"] @ h + w[f"hidden.{layer}.bias"], 0)
    return h


def slow_play(name, task, rng, prior):
    """One task: every posterior from all its rows, by explicit inverses."""
    mean, covariance, noise = prior
    start = np.linalg.inv(covariance)
    X, y = [np.zeros((0, len(mean)))] * A, [np.zeros(0)] * A
    for t in range(T):
        features = [by_hand(name, z, task.contexts[0, t]) for z in task.action_features[0]]
        scores = []
        for a, normal in enumerate(rng.standard_normal(A)):
            spread = np.linalg.inv(start + X[a].T @ X[a] / noise)
            center = spread @ (start @ mean + X[a].T @ y[a] / noise)
            scores.append(features[a] @ center + normal * np.sqrt(features[a] @ spread @ features[a]))
        action = int(np.argmax(scores))
        X[action] = np.vstack([X[action], features[action]])
        y[action] = np.append(y[action], task.outcomes[0, t, action])
        yield action


def slow_fit(name):
    """Mean, covariance and noise of the fitted prior, by scikit-learn."""
    coefficients, residuals = [], []
    for z, contexts, y in zip(ROWS.action_features, ROWS.contexts, ROWS.outcomes, strict=True):
        X = np.array([by_hand(name, z, x) for x in contexts])
        ridge = Ridge(alpha=0.1, fit_intercept=False).fit(X[:48], y[:48].astype(float))
        coefficients.append(ridge.coef_)
        residuals.append(y[48:] - ridge.predict(X[48:]))
    covariance = np.cov(coefficients, rowvar=False)
    return np.mean(coefficients, axis=0), covariance + 1e-4 * np.eye(len(covariance)), np.var(residuals, ddof=1)


@pytest.fixture(scope="module")
def fitted():
    return {name: slow_fit(name) for name in ("synthetic-paper", "synthetic-filter")}


@pytest.mark.parametrize("name", ["synthetic-paper", "synthetic-filter"])
def test_the_fitted_prior_is_scikit_learns_ridge(name, fitted):
    found = NeuralLinearTS(name, prior="fitted").fit(ROWS).fitted
    mean, covariance, noise = fitted[name]
    assert np.allclose(found.mean, mean, rtol=0, atol=3e-6)
    assert np.allclose(found.covariance, covariance, rtol=0, atol=3e-6)
    assert found.noise == pytest.approx(noise, rel=1e-5)


@pytest.mark.parametrize("prior", ["isotropic", "fitted"])
@pytest.mark.parametrize("name", ["synthetic-paper", "synthetic-filter"])
def test_it_is_the_slow_version_fed_the_same_normals(name, prior, fitted):
    size = len(fitted[name][0])
    start = fitted[name] if prior == "fitted" else (np.zeros(size), np.eye(size), 0.25)
    tasks = Synthetic(n_actions=A, horizon=T).sample(0, range(3))
    sizes = {"n_actions": A, "horizon": T, "autoreset_mode": "Disabled"}
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=3, **sizes)
    found = rollout(envs, NeuralLinearTS(name, prior).fit(ROWS)).actions
    for i in range(3):
        assert found[i].tolist() == list(slow_play(name, tasks[i], stream(0, "agent", i), start))


def test_it_plays_as_if_it_drew_whole_coefficient_vectors():
    """Action frequencies at one decision, against draws of β from N(m, P) by Cholesky factors."""
    rng = np.random.default_rng(3)
    B, n = 20_000, 3
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = PaperModel(PaperConfig(2, 5, hidden_layers=1, width=8)).eval()
    Z, X, query = rng.normal(size=(n, 2)), rng.normal(size=(12, 5)), rng.normal(size=5)
    arms, rewards = rng.integers(n, size=12), rng.integers(2, size=12)
    agent = NeuralLinearTS(model, noise=0.1)
    agent.reset(TaskInfo(np.tile(Z, (B, 1, 1)), n, 5), [np.random.default_rng(i) for i in range(B)])
    for x, a, r in zip(X, arms, rewards, strict=True):
        agent.observe(np.tile(x, (B, 1)), np.full(B, a), np.full(B, float(r)))
    found = np.bincount(agent.act(np.tile(query, (B, 1))), minlength=n) / B
    draws = np.empty((B, n))
    for a in range(n):
        rows = torch.tensor(np.vstack([X[arms == a], query]), dtype=torch.float32)
        with torch.no_grad():
            *seen, last = model.features(torch.tensor(Z[a], dtype=torch.float32).expand(len(rows), -1), rows).numpy()
        seen = np.array(seen, float)
        covariance = np.linalg.inv(np.eye(8) + seen.T @ seen / 0.1)
        mean = covariance @ seen.T @ rewards[arms == a] / 0.1
        draws[:, a] = (mean + rng.normal(size=(B, 8)) @ np.linalg.cholesky(covariance).T) @ last
    expected = np.bincount(draws.argmax(axis=1), minlength=n) / B
    assert (np.abs(found - expected) < 4 * np.sqrt(2 * expected * (1 - expected) / B)).all()
    assert (expected > 0.05).all()


def reset(agent, n_features=2, context_dim=5):
    agent.reset(TaskInfo(np.zeros((2, 3, n_features)), 3, context_dim), [np.random.default_rng(i) for i in range(2)])


@pytest.mark.parametrize(
    ("agent", "sizes", "message"),
    [
        (
            NeuralLinearTS(),
            (2, 8),
            "2 action features, contexts of 8 entries and bernoulli outcomes; synthetic-paper has 2 and 5",
        ),
        (
            NeuralLinearTS("synthetic-filter"),
            (3, 5),
            "with 3 action features, .*; synthetic-filter has 2 and 5",
        ),
        (
            NeuralLinearTS(ExactModel(make_tasks("synthetic").truth)),
            (2, 5),
            "model must have action_context_features for neural-linear-ts, got ExactModel",
        ),
        (NeuralLinearTS(prior="fitted"), (2, 5), r"neural-linear-ts\(prior='fitted'\) has no prior yet: call fit"),
    ],
)
def test_models_and_tasks_that_do_not_fit_each_other(agent, sizes, message):
    with pytest.raises(InputError, match=message):
        reset(agent, *sizes)


def test_an_unknown_model_is_told_at_once():
    with pytest.raises(InputError, match="did you mean 'synthetic-paper'"):
        NeuralLinearTS("synthetic-papr")


def test_a_prior_fitted_to_another_models_features():
    agent = NeuralLinearTS("synthetic-filter", prior="fitted").fit(ROWS)
    agent.model = "synthetic-paper"
    with pytest.raises(InputError, match="the prior must have 100 coefficients for these features, got 7"):
        reset(agent)


@pytest.mark.parametrize(
    ("n_actions", "n_rows", "message"),
    [
        (1, 50, "the number of actions in rows must be at least 2, got 1"),
        (2, 1, "rows must have at least 2 rows per action to fit 100 coefficients, got 1"),
    ],
)
def test_fitting_wants_enough_rows_and_actions(n_actions, n_rows, message):
    rows = ActionRows(np.zeros((n_actions, 2)), np.zeros((n_actions, n_rows, 5)), np.zeros((n_actions, n_rows)))
    with pytest.raises(InputError, match=message):
        NeuralLinearTS(prior="fitted").fit(rows)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("neural-linear-ts(prior=fited)", "unknown prior 'fited'; did you mean 'fitted'?"),
        ("neural-linear-ts(noise=0)", "noise must be above 0, got 0"),
    ],
)
def test_bad_options(spec, message):
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        make_agent(spec)
