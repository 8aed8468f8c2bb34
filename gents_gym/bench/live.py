"""Measures the cost of live use: the time of ``decide`` compared with the bare agent, the commit and votes."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gents_gym.bench.timing import Sizes
from gents_gym.construct import make_agent, make_tasks
from gents_gym.live.live import Live
from gents_gym.types import TaskInfo, Tasks

AGENTS = {"ts_gen": "ts-gen(m=64)", "gen_kg": "gen-kg(discount=0.999)", "greedy": "greedy"}
MODEL, N_ACTIONS = "synthetic-filter", 20
TRIED = 10  # decisions with votes that are timed


def measure_live(sizes: Sizes) -> dict[str, float]:
    """Return 99 % quantiles by name, after each of the numbers of decisions in ``sizes.live``.

    The ratio ``live_x_n_vs_bare`` is the processor time of ``decide``, without the commit, divided by that of ``act``
    of the bare agent; ``live_x_n_committed_vs_bare`` includes the commit. The two take turns on the same contexts. The
    times in milliseconds are wall-clock times, including waiting for the disk.
    """
    return {name: value for agent in AGENTS for name, value in _measure(agent, sizes).items()}


def _measure(name: str, sizes: Sizes) -> dict[str, float]:
    n_all = max(sizes.live) + len(sizes.live) * sizes.timed
    tasks = make_tasks("synthetic", horizon=n_all, n_actions=N_ACTIONS).sample(0, range(1), "validation")
    found, done = dict[str, float](), 0
    with tempfile.TemporaryDirectory() as folder, Live(Path(folder) / "live.db", AGENTS[name], MODEL) as live:
        for i, features in enumerate(tasks.action_features[0]):
            live.add(str(i), features)
        steps = _play(live, make_agent(AGENTS[name], model=MODEL), tasks)
        for n in sorted(sizes.live):
            _sync(live, False)  # steps that are not timed need not wait for the disk
            for _ in range(done, n):
                next(steps)
            _sync(live, True)
            times = [next(steps) for _ in range(sizes.timed)]
            done = n + sizes.timed
            own, others = f"live_{name}_{n}", {clock: [each[clock] for each in times] for clock in times[0]}
            quantiles = {clock: float(np.quantile(seconds, 0.99)) for clock, seconds in others.items()}
            found[f"{own}_vs_bare"] = quantiles["own work"] / quantiles["work of bare"]
            found[f"{own}_committed_vs_bare"] = quantiles["work of decide"] / quantiles["work of bare"]
            if name == "ts_gen":
                found[f"{own}_votes_vs_bare"] = _votes(live, tasks) / float(np.median(others["work of bare"]))
            found |= {f"{own}_{clock}_milliseconds": 1000 * quantiles[clock] for clock in ("bare", "decide", "commit")}
    return found


def _play(live: Live, agent: Any, tasks: Tasks) -> Iterator[dict[str, float]]:
    """Play the agent bare and live in turn, and yield the wall-clock seconds of each decision."""
    times: dict[str, float] = {}
    setattr(live._store, "write", _timed("commit", live._store.write, times))  # noqa: B010
    act, decide = _timed("bare", agent.act, times), _timed("decide", live.decide, times)
    agent.reset(TaskInfo(tasks.action_features, N_ACTIONS, tasks.context_dim), [np.random.default_rng(0)])
    for t in range(tasks.horizon):
        context = tasks.contexts[:, t]
        action = act(context)
        agent.observe(context, action, tasks.outcomes[[0], t, action])
        made = decide(context[0])
        found = {**times, "own work": times["work of decide"] - times["work of commit"]}
        live.outcome(made.id, tasks.outcomes[0, t, int(made.action)])
        yield found


def _timed(name: str, work: Callable[..., Any], times: dict[str, float]) -> Callable[..., Any]:
    """Return the same function, which records the wall-clock and processor seconds of its latest call."""

    def call(*given: Any, **options: Any) -> Any:
        clock, processor = time.perf_counter(), time.thread_time()
        done = work(*given, **options)
        times[f"work of {name}"] = time.thread_time() - processor
        times[name] = time.perf_counter() - clock
        return done

    return call


def _sync(live: Live, on: bool) -> None:
    live._store._db.execute(f"PRAGMA synchronous = {'FULL' if on else 'OFF'}")


def _votes(live: Live, tasks: Tasks) -> float:
    """Return the median processor seconds for choosing with votes; nothing is written."""
    stream, times, found = live._stream("main"), dict[str, float](), []
    choose = _timed("votes", stream.choose, times)
    for t in range(TRIED):
        choose(tasks.contexts[0, t % tasks.horizon], stream.live, True)
        found.append(times["work of votes"])
    return float(np.median(found))
