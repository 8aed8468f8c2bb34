"""Checks environments with tables: they show what ``unwrapped.tasks`` holds, and nothing else."""

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from gents_gym.evaluation.regret import oracle_actions
from gents_gym.testing.contract import breach, explained, find_difference
from gents_gym.testing.privilege import twin
from gents_gym.testing.watched import Episode, Watched, in_turn
from gents_gym.types import Tasks


def check_tables(name: str, make: Callable[[], Watched], first: Episode, seed: int) -> None:
    """Raise if observations, outcomes or rewards differ from the tables.

    Args:
        name: The environment's name, for the messages.
        make: Makes a new one.
        first: The first episode of ``seed``, with actions in turn.
        seed: The seed.
    """
    envs = make()
    _, info = envs.reset(seed=seed)
    tasks: Tasks = envs.envs.unwrapped.tasks  # type: ignore[attr-defined]

    def same(what: str, left: Any, right: Any, done: str, advice: str) -> None:
        if difference := find_difference(left, right, what):
            rule, expected = f"{name}: {what} is wrong", "the same in both"
            raise breach(rule, done=done, expected=expected, seen=difference, advice=advice)

    _check_end(name, envs, first, tasks)
    done = f"an episode of seed {seed} was compared with unwrapped.tasks"
    played = np.take_along_axis(tasks.outcomes, first.actions[..., None], 2)[..., 0].astype(np.float64)
    same("the action features", first.features, tasks.action_features, done, "show the tasks that are played")
    same("the context", first.contexts, tasks.contexts, done, "show row t of the contexts before decision t")
    what = "info['feedback']" if envs.is_late else "info['outcome']"
    same(what, first.told, True, f"{done}; whether steps contain it", "put it into info, with its mask")
    arrived = first.shown >= 0
    known = np.where(arrived, played, np.nan)
    same(what, first.outcomes, known, done, "return outcomes[i, t, action] of the table")
    earned = np.zeros_like(played)
    rewards = np.asarray(tasks.reward_fn(played), np.float64)
    np.add.at(earned, (np.nonzero(arrived)[0], first.shown[arrived]), rewards[arrived])
    paid = np.where(np.isclose(first.rewards, earned, rtol=1e-12, atol=1e-12), earned, first.rewards)  # sums may round
    same("the reward", paid, earned, done, "pay reward_fn of the outcomes that arrived")
    for t in range(tasks.horizon - 1):
        envs.step(in_turn(t, envs.slots, envs.n_actions))
    now = envs.envs.unwrapped.tasks  # type: ignore[attr-defined]
    advice = "leave the table unchanged: otherwise regret would be wrong"
    same("unwrapped.tasks", now.hashes, tasks.hashes, "the tasks were played to the last decision", advice)
    _check_next(name, envs, tasks)
    _check_oracle(name, tasks)
    _check_numbers(same, envs, tasks, info, seed)
    _check_secrets(same, make, tasks, first, seed)


def _check_end(name: str, envs: Watched, first: Episode, tasks: Tasks) -> None:
    steps = [answer[2] | answer[3] for answer in first.answers[1:]]
    ends = [int(np.argmax([step[i] for step in steps])) + 1 for i in envs.slots]
    observation, _, terminated, truncated, info = first.answers[-1]
    final = info["final_obs"] if envs.mode is AutoresetMode.SAME_STEP else None
    last = [observation["context"][i] if final is None else final[i]["context"] for i in envs.slots]
    for holds, expected, seen in (
        (set(ends) == {tasks.horizon}, f"an end after {tasks.horizon} decisions, the horizon", f"ends after {ends}"),
        (terminated.all() and not truncated.any(), "terminated, not truncated", f"truncated {truncated}"),
        (not np.any(last), "a last context of zeros, as there is no decision left", f"{last[0]}"),
    ):
        if not holds:
            advice = "end with terminated=True after the horizon, and show a context of zeros"
            rule, done = f"{name} ends wrongly", "one episode was played"
            raise breach(rule, done=done, expected=expected, seen=seen, advice=advice)


def _check_next(name: str, envs: Watched, tasks: Tasks) -> None:
    """Raise if slots that end continue with the tasks that they have just played."""
    if envs.mode is AutoresetMode.DISABLED:
        return
    for _ in range(2 if envs.mode is AutoresetMode.NEXT_STEP else 1):
        envs.step(0 * envs.slots)
    if envs.envs.unwrapped.tasks.hashes == tasks.hashes:  # type: ignore[attr-defined]
        raise breach(
            f"{name} plays the same task forever",
            done=f"every slot was played to its end and went on by itself, in the mode {envs.mode.value}",
            expected="other tasks",
            seen="the same in unwrapped.tasks",
            advice="continue the stream of the seed, as reset() does",
        )


def _check_oracle(name: str, tasks: Tasks) -> None:
    with explained(
        f"{name}: regret cannot be measured",
        done=f"the oracle, {tasks.oracle!r}, was fitted to the tables",
        expected="a policy for each task",
        advice="name a policy class in Tasks(oracle=...) that is made for these outcomes",
    ):
        oracle_actions(tasks)


def _check_numbers(same: Any, envs: Watched, tasks: Tasks, info: dict[str, Any], seed: int) -> None:
    """Raise unless tasks can be selected by number, which is how evaluations play blocks of them."""
    same("info['task']", info.get("task", np.zeros(0)), envs.slots, "reset with a seed", "number tasks from 0 on")
    order = envs.slots[::-1].tolist()
    envs.reset(seed=seed, options={"task": order})
    found = envs.envs.unwrapped.tasks.hashes  # type: ignore[attr-defined]
    advice = "play task i of the stream in the slot that selects it, whatever was played before"
    same("unwrapped.tasks", found, tasks[order].hashes, f"reset(seed={seed}, options={{'task': {order}}})", advice)


def _check_secrets(same: Any, make: Callable[[], Watched], tasks: Tasks, first: Episode, seed: int) -> None:
    """Raise if something shown depends on cells that were not played, on means or on the future."""
    envs = make()
    envs.reset(seed=seed + 1)
    others = envs.envs.unwrapped.tasks  # type: ignore[attr-defined]

    def answers(given: Tasks, steps: int) -> list[Any]:
        envs = make()
        start = envs.reset(seed=seed, options={"task": given})
        return [start, *(envs.step(in_turn(t, envs.slots, envs.n_actions)) for t in range(steps - 1))]

    for steps in ((tasks.horizon + 1) // 2, tasks.horizon):  # more follows after the first; the second is complete
        same(
            "what is shown",
            answers(tasks, steps),
            answers(twin(tasks, others, first.actions, steps), steps),
            "two batches of tasks were used that differ only in outcomes of actions that were not played, in "
            "means, in hidden features and in what is to come",
            "show nothing of the table: no means, best action, regret or other outcomes in observations or info",
        )
