"""What each experiment plays and what the paper says of it, as data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

FITTING = ("ts-gen", "gen-ucb")  # agents that fit a policy class, which the experiments name


def on(model: str, agent: str, **options: object) -> str:
    """Return the spec of an agent on a model; policies are logistic if ``options`` name no others."""
    policy = {"policy": "logistic"} if agent in FITTING else {}
    given = ", ".join(f"{name}={value}" for name, value in {"model": model, **policy, **options}.items())
    return f"{agent}({given})"


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or one of ours."""

    title: str
    paper: str  # what the paper says, as a sentence of the page
    agents: tuple[str, ...]
    claims: tuple[tuple[str, str], ...] = ()  # (better, worse) as the paper has it, or as one would expect
    oracles: tuple[str, ...] = ("logistic",)  # policy classes that regret is measured against, from the same runs
    models: tuple[str, ...] = ()  # whose losses stand beside the regret
    against: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)  # agent: its curve and place on the
    # x axis; None: the horizon
    axis: str = ""  # the x axis's name
    blocks: tuple[int, ...] = (50,)  # tasks side by side; one run for each

    @property
    def timed(self) -> bool:
        """Whether times are what it is about: fewer tasks, one process."""
        return len(self.blocks) > 1


@dataclass(frozen=True)
class Setting:
    """Where experiments are played: an environment and the models that were trained for it."""

    env: str
    oracle: str  # the policy class of regret and of TS-Gen in the main comparison
    exact: str  # TS-Gen with p* itself
    sizes: Mapping[str, Mapping[int, str]]  # by preset, by training actions; the last one is the setting's model
    layers: Mapping[int, str]  # the paper preset, by hidden layers

    @property
    def models(self) -> dict[str, str]:
        """The whole models, by preset."""
        return {preset: list(sizes.values())[-1] for preset, sizes in self.sizes.items()}


@dataclass(frozen=True)
class Scale:
    """How much is played."""

    tasks: int
    horizon: int
    actions: int  # whose losses are measured


SCALES = {"small": Scale(tasks=20, horizon=200, actions=300), "paper": Scale(tasks=500, horizon=500, actions=5000)}

SETTINGS = {
    "synthetic": Setting(
        env="gents_gym/Synthetic-v0",
        oracle="logistic",
        exact=on("exact", "ts-gen"),
        sizes={
            "paper": {100: "synthetic-paper-100", 1000: "synthetic-paper-1000", 10_000: "synthetic-paper"},
            "filter": {
                10: "synthetic-filter-10",
                100: "synthetic-filter-100",
                1000: "synthetic-filter-1000",
                10_000: "synthetic-filter",
            },
        },
        layers={**{n: f"synthetic-paper-layers{n}" for n in range(3)}, 3: "synthetic-paper"},
    ),
    "news": Setting(
        env="gents_gym/News-v0",
        oracle="mlp",
        exact="exact-twin(policy=logistic)",
        sizes={
            "paper": {1000: "news-paper-1000", 10_000: "news-paper"},
            "filter": {100: "news-filter-100", 1000: "news-filter-1000", 10_000: "news-filter"},
        },
        layers={**{n: f"news-paper-layers{n}" for n in range(3)}, 3: "news-paper"},
    ),
}

BASELINES = ("lints", "lints(prior=fitted)", "neural-linear-ts", "neural-linear-ts(prior=fitted)", "linucb")
RIVALS = ("greedy", "epsilon-greedy", "softmax")
HORIZONS = (10, 25, 50, 100, 200)


def _steps(specs: list[str]) -> tuple[tuple[str, str], ...]:
    """Return the claims that each spec is better than the one before it."""
    return tuple(zip(specs[1:], specs, strict=False))


def _main(setting: Setting) -> Experiment:
    claims: list[tuple[str, str]] = []
    agents: list[str] = []
    for model in setting.models.values():
        ours, rivals = on(model, "ts-gen", policy=setting.oracle), [on(model, agent) for agent in RIVALS]
        agents += [ours, *rivals]
        claims += [(ours, rival) for rival in (*rivals, *BASELINES)]
    model = setting.models["filter"]
    several = (on(model, "gen-ucb"), on(model, "ts-gen", samples=8, m=64))  # not in the paper: logistic policies
    return Experiment(
        "Cumulative regret of all agents",
        "The paper: TS-Gen has the least regret of all.",
        (*agents, *several, *BASELINES, "linucb(intercept=True)"),
        tuple(claims),
        oracles=(setting.oracle,),
    )


def _loss_vs_regret(setting: Setting) -> Experiment:
    specs = {preset: {n: on(name, "ts-gen") for n, name in sizes.items()} for preset, sizes in setting.sizes.items()}
    return Experiment(
        "Sequence loss and regret",
        "The paper: A model trained on fewer actions has a higher loss, and TS-Gen on it has more regret.",
        tuple(spec for sizes in specs.values() for spec in sizes.values()),
        tuple(claim for sizes in specs.values() for claim in _steps(list(sizes.values()))),
        models=(*(name for sizes in setting.sizes.values() for name in sizes.values()), "exact"),
        against={spec: (preset, n) for preset, sizes in specs.items() for n, spec in sizes.items()},
        axis="training actions",
    )


def _policy_class(setting: Setting) -> Experiment:
    logistic, mlp = (on(setting.models["filter"], "ts-gen", policy=policy) for policy in ("logistic", "mlp"))
    return Experiment(
        "Policy classes",
        "The paper: TS-Gen works with either policy class, each judged by both oracles.",
        (logistic, mlp, on(setting.models["filter"], "greedy")),
        ((logistic, mlp),),
        oracles=("logistic", "mlp"),
    )


def _horizon(setting: Setting) -> Experiment:
    model = setting.models["filter"]
    specs, whole = {m: on(model, "ts-gen", m=m) for m in HORIZONS}, on(model, "ts-gen")
    return Experiment(
        "Truncated imputation horizon",
        "The paper: Regret degrades slowly as fewer rows are imputed.",
        (*specs.values(), whole),
        tuple((whole, spec) for spec in specs.values()),
        against={**{spec: (model, m) for m, spec in specs.items()}, whole: (model, None)},
        axis="imputed rows per action",
    )


def _simpler_models(setting: Setting) -> Experiment:
    specs = {n: on(name, "ts-gen") for n, name in setting.layers.items()}
    return Experiment(
        "Simpler sequence models",
        "The paper: A head with fewer hidden layers predicts and plays worse, by little.",
        tuple(specs.values()),
        _steps(list(specs.values())),
        models=(*setting.layers.values(), "exact"),
        against={spec: ("paper", n) for n, spec in specs.items()},
        axis="layers of width 100 between the first and the last",
    )


def _softmax(setting: Setting) -> Experiment:
    models = setting.models.values()
    return Experiment(
        "Softmax, greedy and ε-greedy",
        "The paper: Softmax sampling (PreDeToR-τ) is compared with the greedy agents.",
        tuple(on(model, agent) for model in models for agent in (*RIVALS, "ts-gen")),
        tuple((on(model, "softmax"), on(model, agent)) for model in models for agent in RIVALS[:2]),
    )


def _timing(setting: Setting) -> Experiment:
    model, paper = setting.models["filter"], setting.models["paper"]
    return Experiment(
        "Time per decision",
        "The paper: 3.1 s with logistic policies (3.1 s of generation, 0.01 s of fitting), 6.4 s with MLP policies "
        "(4.2 and 2.2), neural-linear 1.9 s, in the news setting.",
        (
            *(on(model, "ts-gen"), on(paper, "ts-gen"), on(model, "ts-gen", policy="mlp")),
            *(on(model, "ts-gen", samples=8, m=64), on(model, "gen-ucb"), on(model, "greedy")),
            *("neural-linear-ts", "lints", "linucb"),
        ),
        blocks=(20, 1),
    )


def _exact_gap(setting: Setting) -> Experiment:
    model, paper = setting.models["filter"], setting.models["paper"]
    return Experiment(
        "TS-Gen with the exact posterior",
        "Not in the paper: TS-Gen with p* itself is a reference, and the models' losses stand beside its.",
        (
            *(setting.exact, on(model, "ts-gen"), on(paper, "ts-gen")),
            *(on(model, "greedy"), on(model, "gen-ucb"), on(model, "ts-gen", samples=8, m=64)),
        ),
        ((setting.exact, on(model, "ts-gen")), (setting.exact, on(paper, "ts-gen"))),
        models=(model, paper, "exact"),
    )


EXPERIMENTS: dict[str, Callable[[Setting], Experiment]] = {
    "main": _main,
    "loss-vs-regret": _loss_vs_regret,
    "policy-class": _policy_class,
    "horizon": _horizon,
    "simpler-models": _simpler_models,
    "softmax": _softmax,
    "timing": _timing,
    "exact-gap": _exact_gap,
}
