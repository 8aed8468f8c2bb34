"""Compiles the search for tilts of predicted rewards that satisfy a constraint and lose little reward."""

import numpy as np
from numba import njit

PENALTIES = (0.1, 1.0, 10.0)  # reward per unit of violation; low penalties first keep the most reward
DIRECTIONS = ((0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, -1.0))  # directions of a step in an action's (offset, slope)
MARGIN = 1e-6  # the shortest step between two choices that is used, far above rounding error
REACH = 4.0  # the longest step, in units of the rewards' range


@njit(cache=True, error_model="numpy")
def search(
    rewards: np.ndarray,  # (B, A, P) float64
    lean: np.ndarray,  # (B, P) float64
    group: np.ndarray,  # (P,) int64: 0 for a row of the table, 1 and 2 for the groups
    epsilon: float,
    limited: np.ndarray,  # (A,) bool: the actions under the constraint
    sweeps: int,  # passes over all tilts, for each penalty
    tilts: np.ndarray,  # (B, 2, A) float64: tilts of the best single action, and then better ones
) -> None:
    """Improve each task's tilts (c, d): its policy plays argmax_a rewards[a] + c[a] + d[a]·lean at every point.

    It ascends the rows' total reward minus a growing penalty for violation, one action and direction at a time. Every
    step is exact: along one direction the played actions change at finitely many points, and all are tried. The best
    tilts on the way that satisfy the constraint replace the given ones.
    """
    n_tasks, n_actions, _ = rewards.shape
    for b in range(n_tasks):
        scores, current = rewards[b].copy(), np.zeros((2, n_actions))
        reach = REACH * (scores.max() - scores.min() + MARGIN)
        best = (rewards[b] * (group == 0)).sum(axis=1).max()  # a single action satisfies every constraint
        for penalty in PENALTIES:
            before = -np.inf
            for _ in range(sweeps):
                merit, violation = before, 0.0
                for offset, slope in DIRECTIONS:
                    along = offset + slope * lean[b]
                    for a in range(n_actions):
                        step, merit, violation, valid_step, reward = _try_steps(
                            scores, rewards[b], along, a, group, epsilon, limited, penalty, reach
                        )
                        if reward > best:
                            best = reward
                            tilts[b] = current
                            tilts[b, 0, a] += valid_step * offset
                            tilts[b, 1, a] += valid_step * slope
                        current[0, a] += step * offset
                        current[1, a] += step * slope
                        scores[a] += step * along
                if merit <= before + 1e-9:
                    break
                before = merit
            if violation == 0:  # then a higher penalty would change nothing
                break


@njit(cache=True, error_model="numpy")
def _try_steps(
    scores: np.ndarray,  # (A, P)
    rewards: np.ndarray,  # (A, P)
    along: np.ndarray,  # (P,): what a unit step adds to the score of ``action``
    action: int,
    group: np.ndarray,
    epsilon: float,
    limited: np.ndarray,
    penalty: float,
    reach: float,
) -> tuple[float, float, float, float, float]:
    """Try all steps of an action's tilts along one direction.

    Returns the step with the highest merit, its merit and violation, and the best valid step with its reward.
    """
    n_actions, n_points = scores.shape
    first = 1 if action == 0 else 0
    rival, height = np.full(n_points, first), scores[first].copy()  # the best other action
    for a in range(first + 1, n_actions):
        if a != action:
            for p in range(n_points):
                rival[p] = a if scores[a, p] > height[p] else rival[p]
                height[p] = max(scores[a, p], height[p])
    counts, sizes = np.zeros((3, n_actions)), np.zeros(3)
    mine = np.empty(n_points, np.bool_)
    moving, breaks, n_moving, reward = np.empty(n_points, np.int64), np.empty(n_points), 0, 0.0
    for p in range(n_points):
        gap = height[p] - scores[action, p]
        mine[p] = gap < 0 or (gap == 0 and action < rival[p])
        if abs(gap) < reach * abs(along[p]):  # other points keep their action within the allowed steps
            moving[n_moving], breaks[n_moving] = p, gap / along[p]
            mine[p] = along[p] < 0  # at the lowest step
            n_moving += 1
        played = action if mine[p] else rival[p]
        counts[group[p], played] += 1
        sizes[group[p]] += 1
        if group[p] == 0:
            reward += rewards[played, p]
    excess = np.array([_excess(a, counts, sizes, epsilon, limited) for a in range(n_actions)])
    missed = excess.sum()
    order = np.argsort(breaks[:n_moving])
    step, merit, violation, valid_step, valid_reward = 0.0, -np.inf, 0.0, 0.0, -np.inf
    low, cost = -reach, penalty * sizes[0]
    for i in range(n_moving + 1):
        high = breaks[order[i]] if i < n_moving else reach
        if high - low > MARGIN:
            if reward - cost * missed > merit:
                merit, violation, step = reward - cost * missed, missed, (low + high) / 2
            if missed == 0 and reward > valid_reward:
                valid_reward, valid_step = reward, (low + high) / 2
        if i < n_moving:
            low, p = high, moving[order[i]]
            old, new = (action, rival[p]) if mine[p] else (rival[p], action)
            mine[p] = not mine[p]
            counts[group[p], old] -= 1
            counts[group[p], new] += 1
            if group[p] == 0:
                reward += rewards[new, p] - rewards[old, p]
            else:
                excess[old] = _excess(old, counts, sizes, epsilon, limited)
                excess[new] = _excess(new, counts, sizes, epsilon, limited)
                missed = excess.sum()  # summed again, so that it returns to exactly zero
    return step, merit, violation, valid_step, valid_reward


@njit(cache=True, error_model="numpy")
def _excess(action: int, counts: np.ndarray, sizes: np.ndarray, epsilon: float, limited: np.ndarray) -> float:
    """Return by how much the difference of an action's rates in the two groups exceeds the allowed one."""
    difference = abs(counts[1, action] / sizes[1] - counts[2, action] / sizes[2])
    return max(difference - epsilon, 0.0) if limited[action] else 0.0
