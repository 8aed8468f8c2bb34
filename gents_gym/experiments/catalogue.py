"""Lists what each experiment plays and what the paper says about it, as data."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gents_gym.checks import InputError
from gents_gym.experiments.claims import Claim, before, falls
from gents_gym.experiments.places import Scale, Setting, on
from gents_gym.specs import parse_spec

BASELINES = ("lints", "lints(prior=fitted)", "linucb")
RIVALS = ("greedy", "epsilon-greedy", "softmax")
NEURAL: tuple[dict[str, str], ...] = (
    {},
    {"prior": "fitted"},
)  # options of neural-linear-ts
HORIZONS = (10, 25, 50, 100, 200)
TWENTIETH = 25  # imputed rows, of 500
RUNG = "-literal-"  # part of the names of models between `literal` and `paper`


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, or one of ours."""

    title: str
    paper: str  # what the paper says, as a sentence of the page, with its section
    agents: tuple[str, ...]
    claims: tuple[Claim, ...] = ()  # what is tested; (): the page says why nothing is
    oracles: tuple[str, ...] = ("logistic",)  # policy classes that regret is measured against, from the same runs
    models: tuple[str, ...] = ()  # models whose losses are shown next to the regret
    losses: Mapping[str, str] = field(default_factory=dict)  # of these, with the agent whose regret is drawn beside it
    against: Mapping[str, tuple[str, float | None]] = field(default_factory=dict)  # agent: its curve and place on the
    # x axis; None: the horizon
    axis: str = ""  # the name of the x axis
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # by model: TS-Gen and greedy on it
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by model, the agents of a figure of its own;
    # {}: one figure of all agents
    notes: str = ""  # further remarks, as a paragraph
    block: int = 50  # tasks side by side
    timed: bool = False  # whether it is about times: few tasks, one process, decisions timed one by one

    @property
    def needed(self) -> tuple[str, ...]:
        """The models that are played on or measured, each once; p* is none."""
        played = (parse_spec(agent)[1].get("model") for agent in self.agents)
        return tuple(dict.fromkeys(str(name) for name in (*self.models, *played) if name not in (None, "exact")))

    def shorten(self, text: str) -> str:
        """Return a text with folders of models shortened to their names, if these differ."""
        folders = {model: Path(model).name for model in self.needed if ":" not in model}
        if len({*folders.values()}) == len(folders):
            for model in sorted(folders, key=len, reverse=True):  # one folder may be in another
                text = text.replace(model, folders[model])
        return text


def _main(setting: Setting, size: Scale) -> Experiment:
    says = "TS-Gen outperforms the other algorithms, including those that use the same model, in both settings."
    claims: list[Claim] = []
    views: dict[str, tuple[str, ...]] = {}
    others = (*BASELINES, "linucb(intercept=True)")
    for model in setting.tested:
        ours = on(model, "ts-gen", policy=setting.oracle)
        same = [*(on(model, agent) for agent in RIVALS), *(on(model, "neural-linear-ts", **each) for each in NEURAL)]
        views[model] = (ours, *same, *others)
        rivals = [agent for agent in (*same, *BASELINES) if not agent.startswith("softmax")]  # it has its own page
        claims += [before(says, "Experiments, Results", ours, rival) for rival in rivals]
    best = setting.models[-1]
    views[best] += (on(best, "gen-ucb"), on(best, "ts-gen", samples=8, m=64))
    return Experiment(
        "Cumulative regret of all agents",
        "The paper, section Experiments, first figure: cumulative regret of TS-Gen, greedy, ε-greedy, neural-linear "
        "and linear Thompson sampling, and LinUCB. The priors are described in its appendix. "
        f"The class of policies and oracle is `{setting.oracle}` here.",
        tuple(dict.fromkeys(agent for each in views.values() for agent in each)),
        tuple(claims),
        oracles=(setting.oracle,),
        views=views,
        notes="Not in the paper's figure: softmax, which has its own page, `gen-ucb` and several tables per "
        "decision, both with logistic policies, and LinUCB with an intercept.",
    )


def _loss_vs_regret(setting: Setting, size: Scale) -> Experiment:
    section = "Sequence loss vs. regret under TS-Gen"
    more = "Models trained on more data tend to have a lower sequence loss."
    less = "The lower the loss, the lower the regret of TS-Gen; models trained on more data tend to have both."
    series = setting.series
    if all(len(sizes) < 2 for sizes in series.values()):
        got = ", ".join(f"{preset} on {n}" for preset, sizes in series.items() for n in sizes)
        raise InputError(f"loss-vs-regret must have models of one preset and several numbers of actions, got {got}")
    claims: list[Claim] = []
    against: dict[str, tuple[str, float | None]] = {}
    for preset, sizes in series.items():
        places = {"loss": {name: n for n, name in sizes.items()}}
        places["regret"] = {on(name, "ts-gen"): n for n, name in sizes.items()}
        against.update({agent: (preset, n) for agent, n in places["regret"].items()})
        for measure, says, source in (("loss", more, section), ("regret", less, f"Experiments, Results; {section}")):
            names = list(places[measure])
            if len(names) > 1:
                claims.append(before(says, source, names[-1], names[0], measure))
            if len(names) > 2:
                claims.append(falls(says, source, places[measure], 10, "ten times the actions", measure))
    models = [name for sizes in series.values() for name in sizes.values()]
    return Experiment(
        "Sequence loss and regret",
        "The paper, appendix, Sequence loss vs. regret under TS-Gen: loss by step and regret of models that learned "
        "from different numbers of actions, with logistic policies and oracle. Its text names the synthetic setting, "
        "its caption the semi-synthetic one; both are played here.",
        tuple(against),
        tuple(claims),
        models=(*models, "exact"),
        losses={name: on(name, "ts-gen") for name in models},
        against=against,
        axis="training actions",
    )


def _policy_class(setting: Setting, size: Scale) -> Experiment:
    section = "Policy class for TS-Gen"
    richer = "A more complex policy class has more reward under its best-fitting policy."
    moderately = "TS-Gen has moderately more reward with MLP policies (no number is given; tested: more)."
    much = "The MLP oracle is much better than the logistic one (no number is given; tested: by more than TS-Gen)."
    policies = ("logistic", "mlp", *setting.beside)
    oracles = {policy: f"oracle(policy={policy})" for policy in ("logistic", "mlp")}
    is_theirs = setting.oracle == "mlp"
    agents: list[str] = []
    claims = [before(richer, "Problem formulation, Regret", oracles["mlp"], oracles["logistic"], "reward")]
    for model in setting.tested if is_theirs else setting.models:
        logistic, mlp = ours = [on(model, "ts-gen", policy=policy) for policy in policies][:2]
        agents += [*(on(model, "ts-gen", policy=policy) for policy in policies), on(model, "greedy")]
        weights = {oracles["mlp"]: 1.0, oracles["logistic"]: -1.0, **dict(zip(ours, (1.0, -1.0), strict=True))}
        gap = Claim(
            much,
            section,
            f"`{oracles['mlp']}` minus `{oracles['logistic']}`, minus the same difference of `{mlp}` and `{logistic}`",
            weights,
            "reward",
            sign=1,
        )
        claims += [before(moderately, section, mlp, logistic, "reward"), gap] if is_theirs else []
    return Experiment(
        "Policy classes",
        "The paper, appendix, Policy class for TS-Gen: the same runs of TS-Gen with logistic and with MLP policies, "
        "against the logistic and against the MLP oracle, in the semi-synthetic setting."
        + ("" if is_theirs else " It says nothing about TS-Gen's reward in this setting, so that is not tested here."),
        (*agents, *oracles.values()),
        tuple(claims),
        oracles=("logistic", "mlp"),
        notes="How well each agent does against its own oracle is in the two tables: regret of the agent with logistic "
        "policies against the logistic oracle, of that with MLP policies against the MLP oracle.",
    )


def _horizon(setting: Setting, size: Scale) -> Experiment:
    section = "TS-Gen with truncated imputation horizon"
    rows = [m for m in HORIZONS if m < size.horizon] or [max(1, size.horizon // 2)]
    few = TWENTIETH if TWENTIETH in rows else rows[0]
    claims: list[Claim] = []
    against: dict[str, tuple[str, float | None]] = {}
    for model in setting.models:
        for policy in setting.policies:
            cuts = {m: on(model, "ts-gen", policy=policy, m=m) for m in rows}
            whole = on(model, "ts-gen", policy=policy)
            against.update({agent: (f"{model}, {policy}", m) for m, agent in (*cuts.items(), (None, whole))})
            if policy != setting.oracle:
                continue
            places = {**{agent: float(m) for m, agent in cuts.items()}, whole: float(size.horizon)}
            falling = "Regret rises with fewer imputed rows (tested: its slope over the logarithm of the rows)."
            slowly = (
                f"Regret rises slowly (no number is given; tested: {few} rows have less than twice that of all rows)."
            )
            claims.append(falls(falling, section, places, 2, "twice the rows", "regret"))
            claims.append(Claim(slowly, section, f"`{cuts[few]}` minus twice `{whole}`", {cuts[few]: 1.0, whole: -2.0}))
            claims += [
                Claim(
                    "Regret rises smoothly (tested: no step to fewer rows makes up more than half of the whole rise).",
                    section,
                    f"`{model}`: from {b or 'all'} to {a} rows, minus half of the rise from all to {rows[0]} rows",
                    _sum({cuts[a]: 1.0}, {whole if b is None else cuts[b]: -1.0}, {cuts[rows[0]]: -0.5}, {whole: 0.5}),
                )
                for a, b in zip(rows, [*rows[1:], None], strict=True)
                if len(rows) > 1
            ]
    best, cheap = setting.models[-1], setting.policies[-1]
    for m in rows:
        through, cut = (on(best, "ts-gen", policy=cheap, m=m, **each) for each in ({}, {"cut": True}))
        against[cut] = (f"{best}, {cheap}, cut at T", m)
        says = "Rows past T: what cutting them changes (no direction is expected)."
        claims.append(Claim(says, "", f"`{cut}` minus `{through}`", {cut: 1.0, through: -1.0}, sign=0))
    return Experiment(
        "Truncated imputation horizon",
        "The paper, appendix, TS-Gen with truncated imputation horizon: regret does not degrade quickly, but slowly "
        "and smoothly, as fewer rows are imputed.",
        tuple(against),
        tuple(claims),
        oracles=(setting.oracle,),
        against=against,
        axis="imputed rows per action",
        notes="TS-Gen with `m` fits each action to its observed rows and to m imputed ones, in contexts of the bank. "
        "Outcomes of earlier decisions that are missing are imputed for whole tables only; the paper does not say "
        "what its truncation does with them. In the last m decisions some of the m rows lie past T. `cut=True` ends "
        "them at T; the last curve and the last claims show what it changes.",
    )


def _sum(*parts: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of weights."""
    found: dict[str, float] = {}
    for part in parts:
        for name, weight in part.items():
            found[name] = found.get(name, 0.0) + weight
    return found


def _simpler_models(setting: Setting, size: Scale) -> Experiment:
    against: dict[str, tuple[str, float | None]] = {
        on(name, "ts-gen", policy=policy): (f"{policy} policies", n)
        for policy in setting.policies
        for n, name in setting.heads.items()
    }
    return Experiment(
        "Simpler sequence models",
        "The paper, appendix, TS-Gen with simpler sequence models: a figure of regret with fewer layers in the head. "
        "That section says nothing about its result, so nothing is tested here.",
        tuple(against),
        oracles=(setting.oracle,),
        models=(*setting.heads.values(), "exact"),
        losses={name: on(name, "ts-gen", policy=setting.oracle) for name in setting.heads.values()},
        against=against,
        axis="layers of width 100 between the first and the last",
    )


def _softmax(setting: Setting, size: Scale) -> Experiment:
    says = "Softmax sampling does not adequately handle uncertainty as TS-Gen does, as the difference in regret shows."
    ours = {model: [on(model, "ts-gen", policy=policy) for policy in setting.policies] for model in setting.tested}
    views = {model: (*(on(model, rival) for rival in RIVALS), *agents) for model, agents in ours.items()}
    return Experiment(
        "Softmax, greedy and ε-greedy",
        "The paper, appendix, Softmax Sampling vs. Greedy: softmax sampling (PreDeToR-τ), greedy and ε-greedy.",
        tuple(agent for agents in views.values() for agent in agents),
        tuple(before(says, "Softmax Sampling vs. Greedy", agents[0], on(m, "softmax")) for m, agents in ours.items()),
        oracles=(setting.oracle,),
        views=views,
    )


def _timing(setting: Setting, size: Scale) -> Experiment:
    best = setting.models[-1]
    policies = ("logistic", "mlp")
    return Experiment(
        "Time per decision",
        "The paper, appendix, Compute resources, per decision of the semi-synthetic setting, mean ± s.d.: 3.1 ± 0.5 s "
        "of generation and 0.01 ± 0.02 s of fitting with logistic policies, 4.2 ± 0.5 and 2.2 ± 0.03 s with MLP ones, "
        "neural-linear 1.9 ± 0.2 s in all. Other machines have other times, so nothing is tested here.",
        (
            *(on(model, "ts-gen", policy=policy) for model in setting.models for policy in policies),
            *(on(best, "ts-gen", samples=8, m=64), on(best, "gen-ucb"), on(best, "greedy")),
            *(on(model, "neural-linear-ts") for model in setting.models),
            *("lints", "linucb"),
        ),
        block=20,
        timed=True,
    )


def _exact_gap(setting: Setting, size: Scale) -> Experiment:
    best = setting.models[-1]
    says = "TS-Gen with p* itself has less regret than with a model, as one would expect."
    ours = [on(model, "ts-gen") for model in setting.models]
    return Experiment(
        "TS-Gen with the exact posterior",
        "Not in the paper: TS-Gen with p* itself is a reference, and its loss is compared with those of the models.",
        (setting.exact, *ours, on(best, "greedy"), on(best, "gen-ucb"), on(best, "ts-gen", samples=8, m=64)),
        tuple(before(says, "", setting.exact, agent) for agent in ours),
        models=(*setting.models, "exact"),
    )


def _ladder(setting: Setting, size: Scale) -> Experiment:
    says = "On this model, sampling is worth its price: TS-Gen has less regret than greedy."
    less = "The better the model, the less sampling is worth: TS-Gen minus greedy rises from one model to the next."
    each = "What each change does to TS-Gen minus greedy (no direction is expected)."
    pairs = {model: (on(model, "ts-gen", policy=setting.oracle), on(model, "greedy")) for model in setting.ladder}
    pairs["exact"] = (f"exact-twin(policy={setting.oracle})", "exact-twin(greedy=True)")
    controls = [f"exact-twin(policy={policy})" for policy in ("logistic", "mlp", *setting.beside)]
    controls.remove(pairs["exact"][0])
    named = [model for model in pairs if RUNG not in model]  # the ends of the ladder, and not the steps between

    def rise(says: str, sign: int, worse: str, better: str) -> Claim:
        tested = f"TS-Gen minus greedy on `{better}`, minus the same on `{worse}`"
        upper, lower = (dict(zip(pairs[model], (1.0, -1.0), strict=True)) for model in (better, worse))
        return Claim(says, "", tested, _sum(upper, {agent: -weight for agent, weight in lower.items()}), sign=sign)

    steps = [rise(each, 0, *pair) for pair in itertools.pairwise(pairs) if not {*pair} <= {*named}]
    rises = [rise(less, 1, *pair) for pair in itertools.pairwise(named)]
    return Experiment(
        "From the printed model to ours",
        "Not in the paper: one change at a time from its model and training as printed (`literal`) to `paper` and to "
        "`filter`, to see what reverses the order of TS-Gen and greedy.",
        (*(agent for pair in pairs.values() for agent in pair), *controls),
        (*(before(says, "", *pair) for pair in pairs.values()), *steps, *rises),
        oracles=(setting.oracle,),
        models=(*setting.ladder, "exact"),
        pairs=pairs,
        notes="Each model named `literal-…` has the changes of those before it too. `cheap`: 50 entries of each "
        "sequence in the loss, 2,000 validation actions, rates 0.01 and 0.001. `bounded`: (XᵀX + I)^-1 XᵀY in the "
        "place of XᵀY. `scaled`: standardised inputs. `scheduled`: the learning rate rises to 0.01 and falls, where it "
        "was constant at the better of two. "
        "`intercept`: a 1 before each row of X. `mapped`: the head reads (1, φ̂(X)) in the context's place. `started`: "
        "φ̂ starts from a fit. `small`: four features. Models differ in their training too, as the table says. `exact` "
        "is p* itself, as a control: `exact-twin` is TS-Gen on it, with several policy classes, and "
        "`exact-twin(greedy=True)` is greedy on it.",
    )


EXPERIMENTS: dict[str, Callable[[Setting, Scale], Experiment]] = {
    "main": _main,
    "loss-vs-regret": _loss_vs_regret,
    "policy-class": _policy_class,
    "horizon": _horizon,
    "simpler-models": _simpler_models,
    "softmax": _softmax,
    "timing": _timing,
    "exact-gap": _exact_gap,
    "ladder": _ladder,
}
