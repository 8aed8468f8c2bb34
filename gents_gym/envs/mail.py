"""The mail of a vector environment: keeps what came of decisions until it is shown."""

from collections.abc import Sequence

import numpy as np

from gents_gym.envs.delay import Delay
from gents_gym.envs.mail_kernel import exchange, sort_decisions

ROOM = 64  # decisions that an unknown horizon is prepared for at first
GROUP = 32  # slots whose delays are drawn at once: calls are few, and arrays stay in the cache


class Mail:
    """Actions, outcomes and rewards of B slots' decisions, kept until they are shown.

    When a decision is shown does not depend on what is played: it is drawn beforehand, and so the same for all agents.
    """

    def __init__(self, delay: Delay, n_slots: int, horizon: int | None = None) -> None:
        """Prepare for B slots; without a ``horizon``, room for decisions grows."""
        self._delay, self._grows = delay, horizon is None
        self._slots, self._time = np.arange(n_slots), np.zeros(n_slots, np.int64)  # _time: decisions so far
        self._rngs: list[np.random.Generator | None] = [None] * n_slots
        self._make_room(horizon or ROOM)

    @property
    def is_random(self) -> bool:
        """Whether ``begin`` needs generators."""
        return self._delay.is_random

    def begin(self, slots: np.ndarray, rngs: Sequence[np.random.Generator] = ()) -> None:
        """Forget what ``slots`` hold; ``rngs`` draw their delays, one for each."""
        self._time[slots] = 0
        if self.is_random:
            for slot, rng in zip(slots.tolist(), rngs, strict=True):
                self._rngs[slot] = rng
            self._draw(slots, 0)

    def exchange(
        self,
        action: np.ndarray,
        outcome: np.ndarray,
        reward: np.ndarray,
        playing: np.ndarray,
        ended: np.ndarray,
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Keep what came of the next decision, and return what is shown after it.

        Args:
            action: (B,) int64.
            outcome: (B,) float64.
            reward: (B,) float64.
            playing: The slots that have made a decision, (B,); others are left alone.
            ended: The slots that are now shown all that is not lost, (B,).

        Returns:
            Rewards (B,), and decisions, actions and outcomes (B, K), with pads of -1, -1 and 0.
        """
        if self._grows and self._time.max() == self._shown.shape[1]:
            self._grow()
        given = (action, outcome, reward, playing, ended)
        paid, decision, actions, outcomes = exchange(
            *given, self._time, self._order, self._starts, self._kept, self._letters
        )
        return paid, {"decision": decision, "action": actions, "outcome": outcomes}

    def _draw(self, slots: np.ndarray, first: int) -> None:
        """Draw when the decisions of ``slots`` are shown, from decision ``first`` on, and sort them."""
        count = self._shown.shape[1] - first
        for some in np.split(slots, range(GROUP, len(slots), GROUP)) if self.is_random else ():
            uniform = np.zeros((len(some), count, 2))
            for numbers, slot in zip(uniform, some.tolist(), strict=True):
                if (rng := self._rngs[slot]) is not None:  # a slot without one begins before it is played
                    rng.random(out=numbers)
            self._shown[some, first:] = self._delay.shown(uniform, first, count)
        if not self.is_random:
            self._shown[slots, first:] = self._delay.shown(None, first, count)
        sort_decisions(slots, self._shown, self._order, self._starts, self._kept)

    def _make_room(self, size: int, first: int = 0) -> None:
        n_slots = len(self._slots)
        self._shown = np.zeros((n_slots, size), np.int64)  # the step in which a decision is shown
        self._order = np.zeros((n_slots, size), np.int32)  # decisions, sorted by that step
        self._starts = np.zeros((n_slots, size + 1), np.int32)  # how many are shown before a step
        self._kept = np.zeros(n_slots, np.int64)  # how many are not lost
        self._letters = np.zeros((n_slots, size, 3))  # actions, outcomes and rewards
        if first == 0:
            self._draw(self._slots, 0)

    def _grow(self) -> None:
        """Double the room."""
        shown, letters = self._shown, self._letters
        size = shown.shape[1]
        self._make_room(2 * size, size)
        self._shown[:, :size], self._letters[:, :size] = shown, letters
        self._draw(self._slots, size)
