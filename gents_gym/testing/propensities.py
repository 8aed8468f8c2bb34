"""Checks an agent's probabilities: requesting them changes nothing, and actions are played as often as stated."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gents_gym.testing.contract import breach
from gents_gym.testing.player import Player, check_same_actions
from gents_gym.types import Tasks
from gents_gym.words import count

ASKED = 8  # most decisions that are compared with and without a request
N_ALIKE, COPIES, STEPS = 4, 48, 3  # tasks that are played often, how often, and for how many decisions
LEVEL = 1e-6  # largest probability that one comparison fails for an agent with correct probabilities


def check_propensities(player: Player, tasks: Tasks, played: np.ndarray) -> None:
    """Raise if probabilities are not distributions, change what is played, or disagree with frequencies."""
    check_same_actions(
        f"{player.name} plays differently when probabilities are requested",
        played[:, :ASKED],
        replace(player, steps=ASKED).play(tasks, range(len(tasks)), told=[]),
        "the same tasks were played, and probabilities(context) was called before every act",
        "draw what act will play first, keep it for act, and draw everything else from children of the generators: "
        "rngs[i].spawn(1)[0] in reset",
    )
    _check_frequencies(replace(player, steps=STEPS), tasks)


def _check_frequencies(player: Player, tasks: Tasks) -> None:
    """Raise if the same tasks, with other generators each time, are not played as the probabilities say."""
    order = np.tile(np.arange(min(N_ALIKE, len(tasks))), COPIES)
    told: list[np.ndarray] = []
    actions = player.play(tasks, order.tolist(), streams=range(len(order)), told=told)  # (n, t)
    chances = np.stack(told, axis=1)  # (n, t, A)
    for what, expected, seen, variance in _comparisons(order, actions, chances):
        if _tail(seen - expected, variance) < LEVEL:
            raise breach(
                f"{player.name} plays actions with other frequencies than its probabilities",
                done=f"{count(len(np.unique(order)), 'task')} played {COPIES} times each with different generators, "
                f"{actions.shape[1]} decisions, and {what}",
                expected=f"{expected:.1f} ± {np.sqrt(variance):.1f} by the probabilities",
                seen=f"{seen:.1f}",
                advice="return the probabilities with which act picks, or the share of draws that vote for an action, "
                "with the played draw included",
            )


def _comparisons(
    order: np.ndarray, actions: np.ndarray, chances: np.ndarray
) -> Iterator[tuple[str, float, float, float]]:
    """Yield a description of a sum over decisions, its expectation by the probabilities, the sum seen, its variance."""
    played = actions[..., None] == np.arange(chances.shape[2])  # (n, t, A)
    for task in np.unique(order):
        mine = order == task
        for action in range(chances.shape[2]):
            p, count = chances[mine, :, action], float(played[mine, :, action].sum())
            yield f"task {task}'s plays of action {action} were counted", p.sum(), count, (p * (1 - p)).sum()
    # Detects too sharp or too flat distributions: large probabilities are played too rarely or too often.
    mean = (chances**2).sum(axis=2)  # (n, t)
    variance = ((chances**3).sum(axis=2) - mean**2).sum()
    yield "probabilities of played actions were summed", mean.sum(), chances[played].sum(), max(variance, 0.0)


def _tail(deviation: float, variance: float) -> float:
    """Return Freedman's bound on the probability of such a sum of martingale differences of at most 1, two-sided."""
    size = max(abs(deviation) - 1e-3, 0.0)  # probabilities may be in single precision
    return float(2 * np.exp(-(size**2) / (2 * (variance + size / 3)))) if size else 1.0
