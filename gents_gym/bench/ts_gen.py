"""Measures TS-Gen's time and memory, compared with straightforward implementations."""

import json
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from gents_gym.agents.gen_kg import GenKG
from gents_gym.agents.ts_gen import TSGen
from gents_gym.bench.plain import PlainTSGen
from gents_gym.bench.timing import Sizes, compete, rate
from gents_gym.construct import make_tasks
from gents_gym.envs.turnover import Turnover
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.load import load_model
from gents_gym.models.paper import PaperModel
from gents_gym.types import TaskInfo, Tasks

SINGLE = 200  # decisions of one task that are timed


def measure_ts_gen(sizes: Sizes) -> dict[str, float]:
    """Return ratios by name, the milliseconds per decision that they come from, memory, and how the cost grows."""
    torch.set_num_threads(1)
    batch, steps, horizon = sizes.batch, sizes.decisions, sizes.horizon
    contestants = {
        "plain": _plain(sizes),
        "filter": _decisions(TSGen(), batch, steps, horizon),
        "paper": _decisions(TSGen(model="synthetic-paper"), batch, max(2, steps // 5), horizon),
        "gen_kg": _decisions(GenKG(), batch, steps, horizon),
        "single": _decisions(TSGen(), 1, min(SINGLE, horizon), horizon),
        "mlp": _decisions(TSGen(policy="mlp"), max(1, batch // 10), max(2, steps // 2), horizon),
        "sklearn_mlp": _sklearn_mlp(sizes),
        "generation": _generation(sizes),
        "products": _products(sizes),
    }
    rates = compete(contestants, sizes.rounds)
    decisions = [name for name in contestants if name not in ("generation", "products", "gen_kg")]
    return {
        "ts_gen_batch_speedup": rates.ratio("filter", "plain"),
        "ts_gen_paper_batch_speedup": rates.ratio("paper", "plain"),
        "ts_gen_single_speedup": rates.ratio("single", "plain"),
        "ts_gen_mlp_speedup": rates.ratio("mlp", "sklearn_mlp"),
        "gen_kg_vs_ts_gen": rates.ratio("filter", "gen_kg"),
        "gen_kg_milliseconds": 1000 / rates.rate("gen_kg"),
        "generation_vs_dense_products": rates.ratio("generation", "products"),
        "peak_memory_mib": measure_memory(sizes),
        **{f"ts_gen_{name}_milliseconds": 1000 / rates.rate(name) for name in decisions},
        **_policies(sizes),
        **_growth(sizes),
    }


def _tasks(n_tasks: int, horizon: int, n_actions: int = 10) -> Tasks:
    return make_tasks("synthetic", horizon=horizon, n_actions=n_actions).sample(0, range(n_tasks), "validation")


def _decisions(
    agent: TSGen | GenKG, n_tasks: int, steps: int, horizon: int, n_actions: int = 10, live: int | None = None
) -> Callable[[], float]:
    """Decisions per second after the first; every decision imputes and fits as many rows, so a few show the rate.

    With ``live``, only this many actions are available at a time.
    """
    tasks = _tasks(n_tasks, horizon, n_actions)
    info = TaskInfo(tasks.action_features, n_actions, tasks.context_dim, horizon)
    slots = np.arange(n_tasks)
    rngs = [np.random.default_rng(i) for i in slots]
    available = None if live is None else Turnover(live, 0.01).draw(rngs, horizon, n_actions)

    def step(t: int) -> None:
        action = agent.act(tasks.contexts[:, t], None if available is None else available[:, t])
        agent.observe(tasks.contexts[:, t], action, tasks.outcomes[slots, t, action])

    def later_steps() -> None:
        for t in range(1, steps):
            step(t)

    def run() -> float:
        agent.reset(info, [np.random.default_rng(i) for i in slots])
        step(0)
        return rate(later_steps, n_tasks * (steps - 1))

    return run


def _policies(sizes: Sizes) -> dict[str, float]:
    """Return the time of a decision with other policies relative to logistic ones of the same width.

    The model has as many context features as contexts have entries. Its weights are untrained, so its tables are as
    linear in the features as in the contexts.
    """
    model = FilterModel(FilterConfig(action_dim=2, context_dim=5, context_features=5))
    model.bank = torch.from_numpy(_tasks(2, sizes.horizon).contexts.reshape(-1, 5).copy())
    policies = ("logistic", "features(base=logistic)", "least-squares")
    agents = {policy: TSGen(model=model, policy=policy) for policy in policies}
    steps = {policy: _decisions(agent, sizes.batch, sizes.decisions, sizes.horizon) for policy, agent in agents.items()}
    rates = compete(steps, sizes.rounds)
    return {
        "ts_gen_features_vs_logistic": rates.ratio("logistic", "features(base=logistic)"),
        "ts_gen_least_squares_vs_logistic": rates.ratio("logistic", "least-squares"),
    }


def _plain(sizes: Sizes) -> Callable[[], float]:
    tasks, model = _tasks(1, sizes.horizon), load_model("synthetic-paper")
    assert isinstance(model, PaperModel)

    def work() -> None:
        agent, rng = PlainTSGen(model, tasks.action_features[0], sizes.horizon), np.random.default_rng(0)
        for t in range(2):
            action = agent.act(tasks.contexts[0, t], rng)
            agent.observe(tasks.contexts[0, t], action, float(tasks.outcomes[0, t, action]))

    return lambda: rate(work, 2)


def _sklearn_mlp(sizes: Sizes) -> Callable[[], float]:
    """The fits of one decision: a network for each action, on a complete table."""
    tasks = _tasks(1, sizes.horizon)

    def work() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for column in tasks.outcomes[0].T:
                MLPClassifier(random_state=0).fit(tasks.contexts[0], column)

    return lambda: rate(work, 1)


def _generation(sizes: Sizes) -> Callable[[], float]:
    """Rows per second of the paper model's imputation of whole tables."""
    tasks = _tasks(sizes.batch, sizes.horizon)
    rngs = [np.random.default_rng(i) for i in range(sizes.batch)]
    info = TaskInfo(tasks.action_features, tasks.n_actions, tasks.context_dim, tasks.horizon)
    belief = load_model("synthetic-paper").begin(info, rngs)
    return lambda: rate(lambda: belief.complete(tasks.contexts[:, 0]), tasks.outcomes.size)


def _products(sizes: Sizes) -> Callable[[], float]:
    """Rows per second of the paper model's matrix products alone, into preallocated buffers."""
    n_rows, shapes = sizes.batch * 10, [(37, 100), (100, 100), (100, 100), (100, 100), (100, 1)]
    made = [(torch.randn(n_rows, a), torch.randn(a, b), torch.empty(n_rows, b)) for a, b in shapes]

    def work() -> None:
        for _ in range(sizes.horizon):
            for x, weights, out in made:
                torch.mm(x, weights, out=out)

    return lambda: rate(work, n_rows * sizes.horizon)


def measure_memory(sizes: Sizes) -> float:
    """Return the peak memory in MiB of a separate process that plays many tasks side by side."""
    script = f"from gents_gym.bench.ts_gen import play_large; play_large({sizes.large}, {sizes.horizon})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def play_large(n_tasks: int, horizon: int) -> None:
    """Make a few decisions of TS-Gen in many tasks, and print the process's peak memory in MiB."""
    torch.set_num_threads(1)
    _decisions(TSGen(), n_tasks, 3, horizon)()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _growth(sizes: Sizes) -> dict[str, float]:
    """Return milliseconds per decision against T, A, m and M, and the exponents of power laws fitted to them.

    It also varies the size of a pool of actions of which 20 are available at a time, and how many of 1,000 are.
    """
    n_tasks, steps, found = max(2, sizes.batch // 5), max(3, sizes.decisions // 2), {}
    base = sizes.horizon
    few = max(1, sizes.batch // 20)  # whole tasks are played if the fits grow with the observations
    for samples in (1, 2):  # truncated tables compile separate kernels
        _decisions(TSGen(m=32, samples=samples), few, 4, base)()
    grids: dict[str, dict[int, Callable[[], float]]] = {
        "T": {t: _decisions(TSGen(), n_tasks, steps, t) for t in (base // 4, base // 2, base, 2 * base)},
        "A": {a: _decisions(TSGen(), n_tasks, steps, base, a) for a in (5, 10, 20, 40)},
        "pool": {a: _decisions(TSGen(), n_tasks, steps, base, a, live=20) for a in (20, 200, 1000)},
        "live": {n: _decisions(TSGen(), n_tasks, steps, base, 1000, live=n) for n in (20, 40)},
        "m": {m: _decisions(TSGen(m=m), few, base, base) for m in (32, 64, 128, 256, 512)},
        "M": {s: _decisions(TSGen(m=32, samples=s), few, base, base) for s in (1, 4, 16, 64)},
    }
    for letter, grid in grids.items():
        rates = compete(
            {str(value): run for value, run in grid.items()},
            sizes.rounds if letter in ("T", "A", "pool", "live") else 1,
        )
        times = {value: 1000 / rates.rate(str(value)) for value in grid}
        found.update({f"ts_gen_milliseconds_{letter}_{value}": time for value, time in times.items()})
        found[f"ts_gen_exponent_{letter}"] = float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])
    return found
