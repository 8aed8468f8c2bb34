"""The compiled filter against the recursion in double precision, one action and row at a time."""

import numpy as np
import pytest

from gents_gym.models.filter_kernel import absorb_filter, impute_filter


def absorb(mean, covariance, x, outcome):
    """One step of the recursion; the outcome is a function of the chance."""
    direction = covariance @ x
    shrink = 1 / np.sqrt(1 + np.pi / 8 * (x @ direction))
    chance = 1 / (1 + np.exp(-shrink * (x @ mean)))
    y = outcome(chance)
    weight = shrink**2 * chance * (1 - chance)
    return mean + direction * shrink * (y - chance), covariance - weight * np.outer(direction, direction), y


def draw_states(rng, count, size):
    roots = rng.normal(size=(count, size, size)) / size
    return rng.normal(size=(count, size)), roots @ roots.swapaxes(1, 2) + 0.2 * np.eye(size)


def impute(rows, played, seen, mean, covariance, uniform):
    table = np.empty(uniform.shape)
    for b, a in np.ndindex(len(rows), uniform.shape[2]):
        m, p = mean[b * uniform.shape[2] + a], covariance[b * uniform.shape[2] + a]
        for t, x in enumerate(rows[b]):
            if played[b, t] == a:
                table[b, t, a] = seen[b, t]
            else:
                m, p, table[b, t, a] = absorb(m, p, x, lambda chance, u=uniform[b, t, a]: float(u < chance))
    return table


def as_floats(*arrays):
    return [np.asarray(array, np.float32) for array in arrays]


@pytest.mark.parametrize(("n_tasks", "n_actions", "size"), [(1, 10, 6), (3, 1, 3), (9, 2, 2), (2, 16, 1), (2, 37, 4)])
def test_tables_are_those_of_the_recursion(n_tasks, n_actions, size):
    rng = np.random.default_rng(n_actions)
    n_rows = 40
    rows, uniform = as_floats(rng.normal(size=(n_tasks, n_rows, size)), rng.random((n_tasks, n_rows, n_actions)))
    played = rng.integers(-1, n_actions, size=(n_tasks, n_rows))
    seen = rng.integers(2, size=(n_tasks, n_rows)).astype(np.float32)
    states = as_floats(*draw_states(rng, n_tasks * n_actions, size))
    given = (rows, played, seen, *states, uniform)
    found = impute_filter(*given)
    assert np.array_equal(found, impute(*given))
    for b in range(n_tasks):  # and to the bit the same alone
        own = slice(b * n_actions, (b + 1) * n_actions)
        alone = (part[b : b + 1] for part in (rows, played, seen))
        assert np.array_equal(
            impute_filter(*alone, *(part[own] for part in states), uniform[b : b + 1]), found[b : b + 1]
        )


def test_outcomes_are_absorbed_by_the_states_they_are_for():
    rng = np.random.default_rng(0)
    mean, covariance = draw_states(rng, 5, 4)
    rows, where, outcome = rng.normal(size=(3, 4)), np.array([4, 1, 4]), np.array([1.0, 0.0, 0.0])
    found = as_floats(mean, covariance)
    absorb_filter(*as_floats(rows), where, *as_floats(outcome), *found)
    for i in range(3):
        step = absorb(mean[where[i]], covariance[where[i]], rows[i], lambda _, y=outcome[i]: y)
        mean[where[i]], covariance[where[i]], _ = step
    assert np.allclose(found[0], mean, atol=1e-5)
    assert np.allclose(found[1], covariance, atol=1e-5)
