"""The command ``bounds``, which compares the paper's bounds with what they bound."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gents_gym.checks import InputError, check_integer
from gents_gym.cli.console import print_wide
from gents_gym.evaluation.environments import env_distribution
from gents_gym.files import new_folder, write_whole

if TYPE_CHECKING:
    from gents_gym.theory.measures import Measures
    from gents_gym.theory.study import Point
    from gents_gym.types import Tasks

Size = tuple[int, int, int]  # T, A, d
COUNTED = (
    "Theorem 2's penalty uses the loss of outcomes given contexts. Models draw contexts from a bank: against\n"
    "Gaussian contexts the divergence of whole tasks is infinite, and so is the penalty as printed in the paper."
)


@dataclass(frozen=True)
class MeasureBounds:
    """Print the paper's regret bounds next to what they bound, measured with the exact posterior."""

    env: str = "gents_gym/Synthetic-v0"
    """Environment with a known p* and outcomes 0 and 1; agent and oracle use logistic policies."""
    models: tuple[str, ...] = ("paper", "filter")
    """Models whose loss gap, actions and regret are measured: presets, bundled models or folders."""
    horizons: tuple[int, ...] = ()
    """Horizons T to compare; none: a quarter, a half and all of the environment's, if above the dimension."""
    actions: tuple[int, ...] = ()
    """Numbers of actions A to compare, at the environment's horizon; none: 2, half and all of the environment's."""
    dimension: int | None = None
    """Natarajan dimension d of the policy class; none: actions times (context size + 1)."""
    tasks: int = 10
    """Tasks of the test split to play."""
    draws: int = 60
    """Completed tables for each task, model and step; twice as many for p*."""
    loss_actions: int = 200
    """Number of single actions to measure losses on."""
    results: tuple[Path, ...] = ()
    """Folders written by evaluate, whose regrets are printed next to the bounds."""
    measured: bool = True
    """Whether to measure; otherwise only the formulas are evaluated."""
    seed: int = 0
    """Seed of tasks and agents."""
    out: Path | None = None
    """A new folder for the figures and bounds.json."""

    def run(self) -> None:
        """Check everything, print the bounds, measure, print and write."""
        from gents_gym.evaluation.store import load_results
        from gents_gym.theory.figures import draw_bounds, draw_matching, draw_measures
        from gents_gym.theory.histories import exact_info
        from gents_gym.theory.measures import measure_all
        from gents_gym.theory.study import bound_point, find_models, resize
        from gents_gym.training.losses import exact_model

        for name, least in (("tasks", 2), ("draws", 4), ("loss_actions", 2)):
            check_integer(name, getattr(self, name), least)
        distribution = env_distribution(self.env)
        tasks = distribution.sample(self.seed, range(self.tasks if self.measured else 1))
        if self.measured:
            exact_model(distribution)
            exact_info(tasks)
        models = find_models(self.models, tasks) if self.measured else {}
        own = self._size(tasks, tasks.horizon, tasks.n_actions)
        sweeps = self._sweeps(tasks, own)
        others = {size for sizes in sweeps.values() for size in sizes} - {own}
        natures = {size: resize(distribution, *size[:2]) for size in others}
        points = {size: bound_point(*size) for size in sorted({own, *natures})}
        rows = [row for folder in self.results for row in self._result_rows(load_results(folder, "results"))]
        out = None if self.out is None else new_folder("out", self.out)

        print(verdict(points[own]))
        print(COUNTED)
        if self.measured:
            every = {size: nature.sample(self.seed, range(self.tasks)) for size, nature in natures.items()}
            points = {size: bound_point(*size, {own: tasks, **every}[size], self.seed) for size in points}
        _print_points(list(points.values()))
        for row in rows:
            print(row)
        found = None
        if self.measured:
            found = measure_all(distribution, tasks, models, self.draws, self.loss_actions, self.seed)
            _print_measures(points[own], found)
        if out is not None:
            shown = {name: [points[size] for size in sizes] for name, sizes in sweeps.items()}
            figures = {"bounds.png": draw_bounds(shown, points[own], found)}
            if found is not None:
                figures["measures.png"] = draw_measures(found, tasks.n_actions)
                figures["matching.png"] = draw_matching(found.matching)
            told = {"env": self.env, "points": [asdict(point) for point in points.values()]}
            told |= {} if found is None else asdict(found)
            figures["bounds.json"] = (json.dumps(told, indent=1) + "\n").encode()
            for name, data in figures.items():
                write_whole(out / name, data)
            print(f"written to {out}: {', '.join(figures)}")

    def _size(self, tasks: "Tasks", horizon: int, n_actions: int) -> Size:
        """Return T, A and d."""
        if self.dimension is not None:
            return horizon, n_actions, check_integer("dimension", self.dimension, 1)
        return horizon, n_actions, n_actions * (tasks.context_dim + 1)

    def _sweeps(self, tasks: "Tasks", own: Size) -> dict[str, list[Size]]:
        """Return the sizes that differ in T, and those that differ in A."""
        horizon, n_actions, dimension = own
        quarters = [part for part in (horizon // 4, horizon // 2, horizon) if part > dimension]
        horizons = [check_integer("horizons", one, 1) for one in self.horizons or quarters]
        numbers = [
            check_integer("actions", one, 2) for one in self.actions or sorted({2, n_actions // 2, n_actions} - {1})
        ]
        return {
            "horizon": [self._size(tasks, t, n_actions) for t in horizons],
            "n_actions": [self._size(tasks, horizon, a) for a in numbers],
        }

    def _result_rows(self, found: Any) -> list[str]:
        """Return a line for each agent of an evaluation: its regret per period next to Theorem 1."""
        from gents_gym.theory.estimates import estimate
        from gents_gym.theory.study import bound_point

        rows = []
        for env, records in found.records.items():
            tasks = env_distribution(env).sample(0, [0])
            point = bound_point(*self._size(tasks, tasks.horizon, tasks.n_actions))
            for agent, record in records.items():
                if "oracle" not in record.regret:
                    raise InputError(f"results must have oracle regret, got none for {agent!r} in {env!r}")
                mean, error = estimate(record.regret["oracle"].mean(axis=1))
                rows.append(f"{env}, {agent}: {mean:.4f} ± {error:.4f} per period (Theorem 1: {point.perfect:.2f})")
        return rows


def verdict(point: "Point") -> str:
    """Return the line that says whether Theorem 1 is vacuous."""
    where = f"at T={point.horizon}, A={point.n_actions}, d={point.dimension}"
    size = f"{point.perfect:.2f} per decision, with Proposition 2's entropy of {point.entropy:.0f} nats"
    end = f"it is below 1 from T={point.bites:,} on"
    if point.perfect >= 1:
        return f"Theorem 1 is vacuous {where}: {size}, and no regret is above 1; {end}"
    return f"Theorem 1 is not vacuous {where}: {size}; {end}"


def _print_points(points: list["Point"]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, title="regret per period, TS-Gen on p*: bounds, measured ± s.e.")
    heads = (
        "T",
        "A",
        "d",
        "entropy ≤",
        "Theorem 1",
        "linear",
        "random play",
        "measured",
        "< 1 from T",
        "< random from T",
    )
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for point in points:
        table.add_row(
            *(str(size) for size in (point.horizon, point.n_actions, point.dimension)),
            f"{point.entropy:.1f}",
            *(f"{bound:.3f}" for bound in (point.perfect, point.linear)),
            "" if point.random is None else f"{point.random:.3f}",
            "" if point.regret is None else f"{point.regret.mean:.4f} ± {point.regret.error:.4f}",
            f"{point.bites:,}",
            "" if point.bites_random is None else f"{point.bites_random:,}",
        )
    print_wide(table)


def _print_measures(point: "Point", found: "Measures") -> None:
    from gents_gym.theory.bounds import penalty, perfect_bound

    for name, (mean, error) in found.regret.items():
        gap = found.gaps[name][-1]
        cost = penalty(max(gap.mean, 0))
        print(f"TS-Gen on {name}: {mean:.4f} ± {error:.4f} per period; Theorem 2: {point.perfect + cost:.2f}")
        print(f"  loss gap {gap.mean:.3g} ± {gap.error:.2g} nats per task, penalty {cost:.3g}")
        furthest = max(kl.mean for kl, _ in found.divergence[name])
        print(f"  actions: KL from p*'s at most {furthest:.3g} at a step; Lemma 2 bounds it by the loss gap")
        floor = found.moved["exact"]
        print(f"  mean Σ_a |P(a) - Q(a)|: {found.moved[name]:.3g}; two sets of p*'s own draws: {floor:.3g}")
    learned, entropy = found.information, found.entropy
    print(f"entropy of π*(X_1:T) given Z and X_1:T, nats: Proposition 2: {point.entropy:.1f}")
    print(
        f"  at most {entropy.code.mean:.1f} ± {entropy.code.error:.1f} (a code), {entropy.single:.1f} (single contexts)"
    )
    gained = f"{learned.total.mean:.1f} ± {learned.total.error:.1f} (information that TS-Gen gains)"
    print(f"  at least {gained}, {entropy.plug_in:.1f} (distinct draws)")
    ratios = zip(found.steps, learned.ratio, strict=True)
    told = ", ".join(f"{ratio.mean:.2g} ± {ratio.error:.1g} at {step}" for step, ratio in ratios if ratio)
    print(f"information ratio, at most A/2 = {point.n_actions / 2:g}: {told or 'the information is not clear'}")
    least = min(entropy.code.mean, entropy.single, point.entropy)
    chain = {
        "information gained": learned.total.mean,
        "least bound on the entropy": least,
        "Proposition 2": point.entropy,
    }
    steps = [
        f"{perfect_bound(point.horizon, point.n_actions, max(nats, 0)):.3g} ({name})" for name, nats in chain.items()
    ]
    assert point.regret is not None
    print(f"Theorem 1 step by step: {point.regret.mean:.3g} (measured) ≤ {' ≤ '.join(steps)}")
