import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_agent
from gents_gym.agents.available import Available
from gents_gym.agents.forgetting import ForgettingPosterior, make_posterior
from gents_gym.agents.linear import LinearPosterior, LinearPrior

B, A, K, T = 3, 4, 3, 30
PRIOR = LinearPrior(np.array([0.5, -1.0, 2.0]), np.array([[2.0, 0.3, 0], [0.3, 1.0, 0], [0, 0, 0.5]]), 0.3)


def info():
    return TaskInfo(np.zeros((B, A, 2)), A, K)


@pytest.fixture(scope="module")
def history():
    rng = np.random.default_rng(0)
    return rng.normal(size=(T, B, K)), rng.integers(A, size=(T, B)), rng.normal(size=(T, B))


def recompute(history, x, discount, window):
    """Mean and deviation of x·β, (B, A) each, from all rows again, one action at a time."""
    features, actions, rewards = history
    mean, deviation = np.zeros((2, B, A))
    for b in range(B):
        for a in range(A):
            precision = np.linalg.inv(PRIOR.covariance)
            shift = precision @ PRIOR.mean
            for t in range(T):
                if actions[t, b] == a and T - t <= window:
                    weight = discount ** (T - 1 - t) / PRIOR.noise
                    precision = precision + weight * np.outer(features[t, b], features[t, b])
                    shift = shift + weight * rewards[t, b] * features[t, b]
            mean[b, a] = x[b] @ np.linalg.solve(precision, shift)
            deviation[b, a] = np.sqrt(x[b] @ np.linalg.solve(precision, x[b]))
    return mean, deviation


@pytest.mark.parametrize(("discount", "window"), [(0.9, None), (1.0, 7), (0.95, 12), (1.0, 100)])
def test_posteriors_are_those_of_the_weighted_rows(history, discount, window):
    posterior = make_posterior(PRIOR, info(), discount, window)
    for row in zip(*history, strict=True):
        posterior.fade()
        posterior.update(*row)
    x = np.random.default_rng(1).normal(size=(B, K))
    expected = recompute(history, x, discount, np.inf if window is None else window)
    assert np.allclose(posterior.predict(x), expected, atol=1e-9)


def test_without_forgetting_it_is_the_plain_posterior(history):
    assert isinstance(make_posterior(PRIOR, info()), LinearPosterior)
    plain, kept = LinearPosterior(PRIOR, info()), ForgettingPosterior(PRIOR, info(), 1.0, None)
    for row in zip(*history, strict=True):
        plain.update(*row)
        kept.fade()
        kept.update(*row)
    assert np.allclose(plain.predict(history[0][0]), kept.predict(history[0][0]), atol=1e-9)


def test_some_tasks_and_live_actions_alone(history):
    """Rows of some tasks, as they arrive late, and predictions for some actions."""
    whole, parts = (ForgettingPosterior(PRIOR, info(), 0.9, 5) for _ in range(2))
    for x, action, reward in zip(*history, strict=True):
        whole.fade()
        whole.update(x, action, reward)
        parts.fade()
        for task in (np.array([2]), np.array([0, 1])):
            parts.update(x[task], action[task], reward[task], task)
    live = Available(np.array([[0, 2], [1, 3], [3, 0]]), np.array([2, 2, 2]), A)
    some, every = parts.predict(history[0][0], live), whole.predict(history[0][0])
    for few, all_of_them in zip(some, every, strict=True):
        assert np.allclose(few, np.take_along_axis(all_of_them, live.actions, axis=1), atol=1e-10)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("linucb(discount=0)", "discount must be above 0, got 0"),
        ("linucb(discount=1.5)", "discount must be at most 1, got 1.5"),
        ("lints(window=0)", "window must be at least 1, got 0"),
        ("lints(window=2.5)", "window must be a whole number, got 2.5"),
    ],
)
def test_bad_options(spec, message):
    with pytest.raises(InputError, match=message):
        make_agent(spec)
