"""The conditions of the study of settings, as data: environments, agents, and the models that are trained for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gents_gym.specs import parse_spec, write_spec

PLANNING = ("ts-gen", "gen-kg", "bayes-ucb", "greedy")  # agents on a model
QUICK = ("ts-gen", "bayes-ucb", "greedy")  # without a kernel of the model's, gen-kg takes seconds a task
AVERAGED = "ts-gen(samples=8, m=64)"  # plays by the mean of several draws
LINEAR = ("linucb(intercept=True)", "linucb(alpha=1, intercept=True)")
FORGETFUL = ("linucb(intercept=True, discount=0.99)", "lints(intercept=True)", "lints(intercept=True, window=100)")
REFERENCES = ("ts-gen(model=exact)", "greedy(model=exact)")
TRAINED: dict[str, tuple[str, dict[str, Any]]] = {  # models of a condition's own: preset, changes in its training
    "forgetting": ("filter", {}),
    "still": ("filter", {"model": {"forgetting": 0}, "ordered": False}),
    "joint": ("joint", {}),
}


@dataclass(frozen=True)
class Axis:
    """One thing that is varied, and who plays at each of its levels."""

    name: str
    title: str
    env: str  # the environment's id
    options: Mapping[str, Any]  # of all levels
    levels: Mapping[str, Mapping[str, Any]]  # the options of each, by its label; the first is the plain one
    agents: tuple[str, ...]  # their models may be those of TRAINED
    slow: Mapping[str, int]  # how many tasks slow agents play at the most
    measure: str = "expected"  # the regret that goals are about

    def spec(self, level: str, horizon: int) -> str:
        """Return the environment of a level."""
        return write_spec(self.env, {**self.options, **self.levels[level], "horizon": horizon})

    @property
    def models(self) -> list[str]:
        """The models that are trained at each level."""
        named = (parse_spec(agent)[1].get("model") for agent in self.agents)
        return list(dict.fromkeys(str(model) for model in named if model in TRAINED))


def on_folder(agent: str, folder: Path) -> str:
    """Return an agent as it is played, with the folder of its model if that is trained."""
    name, options = parse_spec(agent)
    if options.get("model") not in TRAINED:
        return agent
    return write_spec(name, {**options, "model": str(folder / options["model"])})


def on_models(agents: tuple[str, ...], *models: str) -> tuple[str, ...]:
    """Return each agent on each model."""
    named = [agent.partition("(") for agent in agents]
    return tuple(f"{name}(model={model}{f', {rest}' if rest else ')'}" for model in models for name, _, rest in named)


AXES = {
    axis.name: axis
    for axis in (
        Axis(
            "delay",
            "Late and lost outcomes",
            "gents_gym/Synthetic-v0",
            {},
            {
                "0": {},
                "10": {"delay": 10},
                "100": {"delay": 100},
                "20 % lost": {"delay": {"lost": 0.2}},
            },
            (*PLANNING, *LINEAR, *REFERENCES),
            {"ts-gen(model=exact)": 50, "greedy(model=exact)": 25},
        ),
        Axis(
            "turnover",
            "Actions that come and go",
            "gents_gym/Synthetic-v0",
            {"n_actions": 30},
            {f"{rate:g}": {"turnover": {"live": 10, "rate": rate}} for rate in (0.0, 0.01, 0.05)},
            (*PLANNING, *LINEAR, *REFERENCES),
            {"ts-gen(model=exact)": 25, "greedy(model=exact)": 25},
        ),
        Axis(
            "drift",
            "Drifting coefficients",
            "gents_gym/Drifting-v0",
            {"outcomes": "gaussian"},
            {f"{rate:g}": {"rate": rate} for rate in (0.0, 0.005, 0.02)},
            (
                *on_models((*QUICK, AVERAGED), "forgetting"),
                *on_models((*PLANNING, AVERAGED), "still"),
                LINEAR[0],
                *FORGETFUL,
                *REFERENCES,
            ),
            {
                "ts-gen(model=exact)": 25,
                "greedy(model=exact)": 100,
                **dict.fromkeys(on_models((AVERAGED,), "forgetting", "still"), 100),
            },
            "best",
        ),
        Axis(
            "correlation",
            "Correlated actions",
            "gents_gym/Correlated-v0",
            {"outcomes": "gaussian"},
            {f"{value:g}": {"correlation": value} for value in (0.0, 0.25, 0.5, 0.75)},
            (*PLANNING, *on_models(QUICK, "joint"), *LINEAR, *REFERENCES),
            {},
        ),
    )
}


@dataclass(frozen=True)
class Size:
    """How much is played and trained."""

    tasks: int
    horizon: int
    block: int  # tasks side by side; all numbers of tasks are multiples
    actions: int  # that models are trained on
    agents: tuple[str, ...] | None = None  # None: all

    def groups(self, axis: Axis) -> dict[str, list[str]]:
        """Return the agents of an axis that play equally many tasks, by the name of their folder."""
        known = [agent for agent in axis.agents if self.agents is None or agent in self.agents]
        names = {agent: f"first{axis.slow[agent]}" if agent in axis.slow else "all" for agent in known}
        return {name: [agent for agent in known if names[agent] == name] for name in dict.fromkeys(names.values())}

    def count(self, group: str) -> int:
        """Return how many tasks the agents of a group play."""
        return self.tasks if group == "all" else min(self.tasks, int(group.removeprefix("first")))

    @property
    def training(self) -> dict[str, int]:
        """What is changed in the training of all models."""
        return {"horizon": min(250, self.horizon), "epochs": 2, "batch": 100, "validation_actions": self.actions // 4}


SIZES = {
    "tiny": Size(2, 6, 2, 40, ("greedy", "ts-gen", *on_models(("greedy", "ts-gen"), "forgetting", "still", "joint"))),
    "small": Size(50, 500, 25, 2000),
    "medium": Size(150, 500, 25, 2000),
    "full": Size(500, 500, 25, 2000),
}
