"""What each experiment plays and what the paper says of it, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

FILTER, PAPER = "synthetic-filter", "synthetic-paper"


def on(model: str, agent: str, **options: object) -> str:
    """Return the spec of an agent on a model."""
    given = ", ".join(f"{name}={value}" for name, value in {"model": model, **options}.items())
    return f"{agent}({given})"


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or one of ours."""

    title: str
    paper: str  # what the paper says
    agents: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()  # (better, worse) as the paper has it, or as one would expect
    oracles: tuple[str, ...] = ("logistic",)  # policy classes that regret is measured against, from the same runs
    models: tuple[str, ...] = ()  # whose losses stand beside the regret
    against: Mapping[str, tuple[str, float]] = field(default_factory=dict)  # agent: its curve and place on the x axis
    axis: str = ""  # the x axis's name
    blocks: tuple[int, ...] = (50,)  # tasks side by side; one run for each


@dataclass(frozen=True)
class Scale:
    """How much is played."""

    tasks: int
    horizon: int
    actions: int  # whose losses are measured


SCALES = {"small": Scale(tasks=20, horizon=200, actions=300), "paper": Scale(tasks=500, horizon=500, actions=5000)}

BASELINES = ("lints", "lints(prior=fitted)", "neural-linear-ts", "neural-linear-ts(prior=fitted)", "linucb")
SIZES = {
    FILTER: {10: "synthetic-filter-10", 100: "synthetic-filter-100", 1000: "synthetic-filter-1000", 10_000: FILTER},
    PAPER: {100: "synthetic-paper-100", 1000: "synthetic-paper-1000", 10_000: PAPER},
}
LAYERS = {n: f"synthetic-paper-layers{n}" for n in range(3)} | {3: PAPER}
HORIZONS = (10, 25, 50, 100, 200)


def _steps(specs: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the claims that each spec is better than the one before it."""
    return tuple(zip(specs[1:], specs, strict=False))


def _main() -> Experiment:
    claims: list[tuple[str, str]] = []
    agents: list[str] = []
    for model in (PAPER, FILTER):
        rivals = [on(model, agent) for agent in ("greedy", "epsilon-greedy", "softmax")]
        agents += [on(model, "ts-gen"), *rivals]
        claims += [(on(model, "ts-gen"), rival) for rival in (*rivals, *BASELINES)]
    return Experiment(
        "Cumulative regret of all agents",
        "TS-Gen has the least regret of all.",
        (*agents, on(FILTER, "gen-ucb"), on(FILTER, "ts-gen", samples=8, m=64), *BASELINES, "linucb(intercept=True)"),
        tuple(claims),
    )


def _loss_vs_regret() -> Experiment:
    specs = {model: {n: on(name, "ts-gen") for n, name in sizes.items()} for model, sizes in SIZES.items()}
    return Experiment(
        "Sequence loss and regret",
        "A model trained on fewer actions has a higher loss, and TS-Gen on it has more regret.",
        tuple(spec for sizes in specs.values() for spec in sizes.values()),
        tuple(claim for sizes in specs.values() for claim in _steps(list(sizes.values()))),
        models=(*(name for sizes in SIZES.values() for name in sizes.values()), "exact"),
        against={spec: (model, n) for model, sizes in specs.items() for n, spec in sizes.items()},
        axis="training actions",
    )


def _horizon() -> Experiment:
    specs = {m: on(model, "ts-gen", m=m) for model in (FILTER,) for m in HORIZONS}
    whole = on(FILTER, "ts-gen")
    return Experiment(
        "Truncated imputation horizon",
        "Regret degrades slowly as fewer rows are imputed.",
        (*specs.values(), whole),
        tuple((whole, spec) for spec in specs.values()),
        against={**{spec: (FILTER, m) for m, spec in specs.items()}, whole: (FILTER, 500)},
        axis="imputed rows per action",
    )


def _simpler_models() -> Experiment:
    specs = {n: on(name, "ts-gen") for n, name in LAYERS.items()}
    return Experiment(
        "Simpler sequence models",
        "A head with fewer hidden layers predicts and plays worse, by little.",
        tuple(specs.values()),
        _steps(list(specs.values())),
        models=(*LAYERS.values(), "exact"),
        against={spec: (PAPER, n) for n, spec in specs.items()},
        axis="layers of width 100 between the first and the last",
    )


def _softmax() -> Experiment:
    names = ("greedy", "epsilon-greedy", "softmax")
    agents = [on(model, agent) for model in (PAPER, FILTER) for agent in (*names, "ts-gen")]
    pairs = [(on(model, "softmax"), on(model, agent)) for model in (PAPER, FILTER) for agent in names[:2]]
    return Experiment(
        "Softmax, greedy and ε-greedy",
        "Softmax sampling (PreDeToR-τ) is compared with the greedy agents.",
        tuple(agents),
        tuple(pairs),
    )


EXPERIMENTS = {
    "main": _main(),
    "loss-vs-regret": _loss_vs_regret(),
    "policy-class": Experiment(
        "Policy classes",
        "TS-Gen works with either policy class, each judged by both oracles.",
        ("ts-gen(policy=logistic)", "ts-gen(policy=mlp)", "greedy"),
        (("ts-gen(policy=logistic)", "ts-gen(policy=mlp)"),),
        oracles=("logistic", "mlp"),
    ),
    "horizon": _horizon(),
    "simpler-models": _simpler_models(),
    "softmax": _softmax(),
    "timing": Experiment(
        "Time per decision",
        "3.1 s with logistic policies (3.1 s of generation, 0.01 s of fitting), 6.4 s with MLP policies (4.2 and 2.2), "
        "neural-linear 1.9 s, in the news setting.",
        (
            *(on(FILTER, "ts-gen"), on(PAPER, "ts-gen"), "ts-gen(policy=mlp)", on(FILTER, "ts-gen", samples=8, m=64)),
            *("gen-ucb", "greedy", "neural-linear-ts", "lints", "linucb"),
        ),
        blocks=(20, 1),
    ),
    "exact-gap": Experiment(
        "TS-Gen with the exact posterior",
        "Not in the paper: TS-Gen with p* itself is a reference, and the models' losses stand beside its.",
        (
            *("ts-gen(model=exact)", on(FILTER, "ts-gen"), on(PAPER, "ts-gen")),
            *(on(FILTER, "greedy"), on(FILTER, "gen-ucb"), on(FILTER, "ts-gen", samples=8, m=64)),
        ),
        (("ts-gen(model=exact)", on(FILTER, "ts-gen")), ("ts-gen(model=exact)", on(PAPER, "ts-gen"))),
        models=(FILTER, PAPER, "exact"),
    ),
}
