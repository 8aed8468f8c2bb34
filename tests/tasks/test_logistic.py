"""What both settings share: contexts that are alike, against the covariance that they should have."""

import tracemalloc

import numpy as np
import pytest

from gents_gym import InputError
from gents_gym.tasks.news import News
from gents_gym.tasks.synthetic import Synthetic

both = pytest.mark.parametrize("setting", [Synthetic, News])


@both
@pytest.mark.parametrize("spread", [0, 0.4, 0.999])
def test_contexts_are_as_alike_as_their_spread_says(setting, spread):
    """Each is standard normal, and two of a task have the correlation 1 - s²; tasks have nothing in common."""
    distribution = setting(n_actions=2, horizon=4, context_spread=spread)
    tasks, rows = distribution.sample(0, range(8000)), distribution.sample_actions(0, range(8000), 4)
    alike = np.kron(np.full((4, 4), 1 - spread**2) + spread**2 * np.eye(4), np.eye(5))  # (step, dimension) by the same
    for contexts in (tasks.contexts, rows.contexts):
        flat = contexts.reshape(8000, 20).astype(np.float64)
        assert np.abs(np.cov(flat, rowvar=False) - alike).max() < 5 * np.sqrt(2 / 8000)
        assert np.abs(flat.mean(axis=0)).max() < 4.5 / np.sqrt(8000)
        between = np.cov(flat[:-1, 0], flat[1:, 0])[0, 1]
        assert abs(between) < 4 / np.sqrt(8000)


@both
def test_without_spread_a_task_has_one_context_and_fixed_chances(setting):
    tasks = setting(horizon=30, context_spread=0).sample(0, range(20))
    assert np.ptp(tasks.contexts, axis=1).max() == 0
    assert np.ptp(tasks.means, axis=1).max() < 1e-6
    assert np.ptp(tasks.outcomes, axis=1).max() == 1


@both
def test_spread_changes_the_contexts_alone(setting):
    plain, almost, same = (
        setting(horizon=3, context_spread=spread).sample(0, range(5)) for spread in (1, 1 - 1e-12, 0)
    )
    assert np.array_equal(plain.action_features, same.action_features)
    assert np.allclose(almost.contexts, plain.contexts, atol=1e-4)
    assert np.allclose(almost.means, plain.means, atol=1e-4)
    assert not np.allclose(same.contexts, plain.contexts, atol=0.1)


@both
@pytest.mark.parametrize(
    ("spread", "message"),
    [
        (1.5, r"context_spread must be at most 1, got 1\.5"),
        (-0.1, r"context_spread must be at least 0, got -0\.1"),
        ("wide", "context_spread must be a number, got 'wide'"),
    ],
)
def test_bad_spread(setting, spread, message):
    with pytest.raises(InputError, match=message):
        setting(context_spread=spread)


@pytest.mark.parametrize("options", [{}, {"outcomes": "gaussian"}, {"outcomes": "categorical"}])
def test_the_memory_of_tasks_is_counted_low(monkeypatch, options):
    """What fits is never refused: the count lies below the peak that was measured, and not far."""
    setting = Synthetic(**options)
    counted = 20 * setting._draw_bytes(setting.n_actions, setting.horizon)
    tracemalloc.start()
    setting.sample(0, range(20))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counted < peak < 20 * counted
    monkeypatch.setattr("gents_gym.checks.machine_memory", lambda: counted - 1)
    with pytest.raises(InputError, match="tasks=20, n_actions=10, horizon=500, context_dim=5 must fit into"):
        setting.sample(0, range(20))
    with pytest.raises(InputError, match="indices must be a list of whole numbers, got 5"):
        setting.sample(0, 5)
