"""Checks the contract of agents and raises at the first violation."""

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gents_gym.checks import check_integer
from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import get_distribution
from gents_gym.testing.contract import breach, explained, global_generators_left_alone
from gents_gym.testing.player import RNG_ADVICE, Player, check_same_actions, unless_refused
from gents_gym.testing.privilege import check_unprivileged
from gents_gym.testing.propensities import ASKED, check_propensities
from gents_gym.types import ActionRows, Agent, Fittable, LateAgent, Privileged, RandomisedAgent, TaskDistribution, Tasks

N_TASKS = 17  # tasks side by side; not a multiple of vector widths, because results for the remainder may differ
BATCHES = ([0], [16], [5, 9, 7], [*range(16, -1, -1)])  # batches that are played besides all tasks in order
FIT_ACTIONS, FIT_ROWS = 50, 100  # historical rows that a fitted agent is fitted to
DEFAULT_TASKS = "synthetic(n_actions=4, horizon=30)"


def check_agent(
    agent: Agent | str | Callable[[], Agent],
    tasks: str | TaskDistribution = DEFAULT_TASKS,
    *,
    steps: int = 24,
    may_part: int = 0,
) -> None:
    """Play an agent in every way that an evaluation relies on, and raise at the first that goes wrong.

    Its regret is not judged. An agent need not play tasks of other sizes, an unknown horizon or another reward
    function, but then it must raise :class:`InputError`.

    Args:
        agent: A class or function that makes an agent without arguments, an agent's id, optionally with options, or an
            agent, of which copies are played. An agent made here that has ``fit`` is fitted first.
        tasks: The tasks that it plays: a task distribution, or the id of one or of one of our environments, optionally
            with options.
        steps: Decisions played in each task.
        may_part: How many of the compared tasks may be played differently in another batch. It is above 0 only for
            agents that use a library's matrix products, which round differently for another number of rows.

    Raises:
        ContractError: It says what was done, expected and seen, and what to do about it.
    """
    check_integer("steps", steps, 4)
    check_integer("may_part", may_part, 0)
    distribution = get_distribution(tasks)
    rows = distribution.sample_actions(0, range(FIT_ACTIONS), FIT_ROWS, "train")
    player = Player(_name(agent), _maker(agent, rows), steps)
    drawn = distribution.sample(0, range(N_TASKS), "train")
    others = distribution.sample(1, range(N_TASKS), "train")
    played = player.play(drawn, range(N_TASKS))
    _check_repeatable(player, drawn, played)
    _check_forgetful(player, drawn, others, played)
    _check_batches(player, drawn, played, may_part)
    _check_buffers(player, drawn, played)
    if not isinstance(player.fresh(), Privileged):
        check_unprivileged(player, drawn, others)
    if isinstance(player.fresh(), RandomisedAgent):
        check_propensities(player, drawn, played)
    if isinstance(player.fresh(), LateAgent):
        _check_late(player, drawn, played, may_part)
    if "available" in inspect.signature(player.fresh().act).parameters:
        _check_available(player, drawn, played, may_part)
    _check_sizes(player, drawn, played)
    _check_reward(player, drawn, played)


def _name(agent: Any) -> str:
    name = agent if isinstance(agent, str) else getattr(agent, "__name__", type(agent).__name__)
    return "the agent" if name == "<lambda>" else name


def _maker(agent: Any, rows: ActionRows) -> Callable[[], Agent]:
    """Return a function that makes agents that are ready to play."""
    name = _name(agent)
    if isinstance(agent, str):
        make: Callable[[], Agent] = functools.partial(make_agent, agent)
    elif callable(agent) and (isinstance(agent, type) or not hasattr(agent, "reset")):
        advice = "for a class with arguments, pass lambda: MyAgent(...)"
        done = "it was called without arguments"
        make = explained(f"{name} cannot be made", done=done, expected="an agent", advice=advice)(agent)
    else:
        return functools.partial(_copy, agent)
    made = make()
    if not isinstance(made, Fittable):
        return make
    done, advice = "fit was called with historical rows", "use a generator with a fixed seed in fit"
    with (
        explained(f"{name} cannot be fitted", done=done, expected="a fitted agent", advice="see gents_gym.ActionRows"),
        global_generators_left_alone(name, done, advice),
    ):
        made.fit(rows)
    return functools.partial(_copy, made)


def _copy(agent: Agent) -> Agent:
    return explained(
        f"{type(agent).__name__} cannot be copied",
        done="copy.deepcopy(agent), as an evaluation does with a fitted agent for every block of tasks",
        expected="an independent copy",
        advice="hold no open files, locks, threads or Python generators before reset",
    )(copy.deepcopy)(agent)


def _check_repeatable(player: Player, tasks: Tasks, played: np.ndarray) -> None:
    check_same_actions(
        f"{player.name} is not reproducible",
        played,
        player.play(tasks, range(N_TASKS)),
        "two new agents played the same tasks with the same generators",
        f"{RNG_ADVICE}; no other generator, clock, hash() or class attribute may show in the actions",
    )


def _check_forgetful(player: Player, tasks: Tasks, others: Tasks, played: np.ndarray) -> None:
    agent = player.fresh()
    player.play(others, range(N_TASKS), agent)
    player.play(others, range(N_TASKS), agent, abandon=True)
    check_same_actions(
        f"{player.name} does not forget: something of earlier tasks is left after reset",
        played,
        player.play(tasks, range(N_TASKS), agent),
        "an agent played other tasks, the last ones not to the end, was reset, and played the first tasks",
        "in reset, set every attribute that act or observe changes",
    )


def _check_batches(player: Player, tasks: Tasks, played: np.ndarray, may_part: int) -> None:
    parted = 0
    for batch in BATCHES:
        again = player.play(tasks, batch)
        parted += int((again != played[batch]).any(axis=1).sum())
        if parted > may_part:
            check_same_actions(
                f"{player.name} plays differently next to other tasks",
                played[batch],
                again,
                f"tasks {batch} of {N_TASKS} were played side by side in this order, each with its own generator",
                f"reduce over actions and features only, never over tasks (axis=0); {RNG_ADVICE}; in matrix products "
                "of a library, rounding may differ with the number of rows: may_part=1 admits a task that parts",
            )


def _check_buffers(player: Player, tasks: Tasks, played: np.ndarray) -> None:
    check_same_actions(
        f"{player.name} keeps an array that belongs to its caller",
        played,
        player.play(tasks, range(N_TASKS), scribble=True),
        "contexts, actions and outcomes were overwritten after each call that they were passed to",
        "keep copies: np.array(context), not context or a view of it",
    )


def _check_late(player: Player, tasks: Tasks, played: np.ndarray, may_part: int) -> None:
    """Raise unless outcomes without a delay are learned as in ``observe``, and late ones equally in any batch."""
    everyone = range(N_TASKS)
    in_time = np.zeros((N_TASKS, tasks.horizon), np.int64)
    again = unless_refused(lambda: player.play(tasks, everyone, delays=in_time))
    if again is None:
        return
    done = "every outcome was passed to observe_late right after its decision, instead of observe"
    advice = "keep context and action of every act until observe_late, and learn there as in observe"
    check_same_actions(f"{player.name} learns differently in observe_late", played, again, done, advice)
    delays = np.random.default_rng(0).integers(-1, 5, size=in_time.shape)
    late = player.play(tasks, everyone, delays=delays)
    batch = BATCHES[2]
    apart = player.play(tasks, batch, delays=delays, scribble=True)
    if int((apart != late[batch]).any(axis=1).sum()) > may_part:
        done = f"tasks {batch} of {N_TASKS} were played side by side, with outcomes that arrive late or never; arrays "
        done += "were overwritten after each call that they were passed to"
        advice = "find an outcome's task and decision by its numbers in feedback, and keep copies of arrays"
        check_same_actions(f"{player.name} plays differently next to other tasks", late[batch], apart, done, advice)


def _check_available(player: Player, tasks: Tasks, played: np.ndarray, may_part: int) -> None:
    """Raise unless the agent plays available actions only, equally in any batch, and as usual if all are available."""
    everyone, shape = range(N_TASKS), (N_TASKS, tasks.horizon, tasks.n_actions)
    again = unless_refused(lambda: player.play(tasks, everyone, available=np.ones(shape, np.bool_)))
    if again is None:
        return
    done, advice = "every action was available, in act(context, available)", "available=None is the same as all True"
    check_same_actions(f"{player.name} plays differently if everything is available", played, again, done, advice)
    order = np.argsort(np.random.default_rng(0).random(shape), axis=2)
    available = order < max(1, tasks.n_actions // 2)  # the same number in every task, other ones at every decision
    some = unless_refused(lambda: player.play(tasks, everyone, available=available))
    if some is None:  # an adapter for agents that ignore masks refuses what they play
        return
    asked = player.fresh()
    if isinstance(asked, RandomisedAgent) and "available" in inspect.signature(asked.probabilities).parameters:
        again = replace(player, steps=ASKED).play(tasks, everyone, available=available, told=[])
        done, advice = (
            "probabilities(context, available) was called before every act",
            "see gents_gym.types.MaskedAgent",
        )
        rule = f"{player.name} plays differently when probabilities are requested"
        check_same_actions(rule, some[:, :ASKED], again, done, advice)
    batch = BATCHES[2]
    apart = player.play(tasks, batch, available=available, scribble=True)
    if int((apart != some[batch]).any(axis=1).sum()) > may_part:
        done = f"tasks {batch} of {N_TASKS} were played side by side, with half of the actions available; arrays were "
        done += "overwritten after each call that they were passed to"
        advice = "use each task's own row of available, and keep copies of arrays"
        check_same_actions(f"{player.name} plays differently next to other tasks", some[batch], apart, done, advice)


def _check_sizes(player: Player, tasks: Tasks, played: np.ndarray) -> None:
    """Raise if an agent, reset for other sizes, neither plays nor refuses."""
    agent = player.fresh()
    player.play(tasks, range(2), agent)
    _, n_actions, n_features = tasks.action_features.shape
    shapes = [(n_actions + 1, tasks.context_dim, n_features), (n_actions, tasks.context_dim + 2, n_features)]
    for a, d, f in (*shapes, (n_actions, tasks.context_dim, n_features + 1)):
        other = _random_tasks(a, d, f, tasks)
        unless_refused(lambda other=other: player.play(other, range(3), agent))  # type: ignore[misc]
    unless_refused(lambda: player.play(tasks, range(2), agent, know_horizon=False))
    check_same_actions(
        f"{player.name} does not forget the sizes of earlier tasks",
        played,
        player.play(tasks, range(N_TASKS), agent),
        "an agent was reset for other numbers of tasks, actions and features, and then for the first tasks again",
        "in reset, set everything that depends on info before raising anything",
    )


def _random_tasks(n_actions: int, context_dim: int, n_features: int, like: Tasks) -> Tasks:
    rng = np.random.default_rng(0)
    features, contexts = rng.normal(size=(3, n_actions, n_features)), rng.normal(size=(3, like.horizon, context_dim))
    outcomes = rng.choice(np.unique(like.outcomes), size=(3, like.horizon, n_actions))
    texts = None if like.texts is None else np.resize(like.texts, (3, n_actions))
    same = {"oracle": like.oracle, "reward_fn": like.reward_fn, "likelihood": like.likelihood}
    return Tasks(features, contexts, outcomes, texts=texts, **same)  # type: ignore[arg-type]


def _check_reward(player: Player, tasks: Tasks, played: np.ndarray) -> None:
    """Raise if the agent learns from outcomes but ignores the reward function."""
    everyone = range(N_TASKS)
    turned = replace(tasks, outcomes=tasks.outcomes[..., ::-1])
    if np.array_equal(player.play(turned, everyone), played):
        return  # it does not learn from outcomes at all
    for reward_fn in (lambda outcome: 1 - tasks.reward_fn(outcome), lambda outcome: 0 * tasks.reward_fn(outcome)):
        other = replace(tasks, reward_fn=reward_fn)
        again = unless_refused(lambda other=other: player.play(other, everyone))  # type: ignore[misc]
        if again is None or not np.array_equal(again, played):
            return
    raise breach(
        f"{player.name} ignores the reward function",
        done="the same tasks were played with the rewards R(y) reversed to 1 - R(y), and with rewards of 0",
        expected="other actions, because the agent does learn from outcomes",
        seen="the same actions throughout",
        advice="learn from info.reward_fn(outcome), or raise gents_gym.InputError in reset if it must be another one",
    )
