"""Lists the regimes of the study of planning, as data: settings, agents, and how many tasks each agent plays."""

from dataclasses import dataclass
from pathlib import Path

from gents_gym.specs import parse_spec, write_spec
from gents_gym.tuning.config import TuneConfig

ENVS = {"synthetic": "gents_gym/Synthetic-v0", "news": "gents_gym/News-v0"}
PAPER = {"synthetic": "ts-gen(policy=logistic)", "news": "ts-gen(policy=mlp)"}  # the paper's TS-Gen
FIELD = ("greedy", "gen-ucb", "softmax", "ts-gen(samples=8, m=64)", "gen-kg", "bayes-ucb")
OWN = {"synthetic": (), "news": ("ts-gen",)}  # the default TS-Gen; in the synthetic setting it is the paper's
RIVALS = ("greedy", "gen-ucb", "softmax", "ts-gen(samples=8, m=64)")  # and the paper's TS-Gen
WRONG_MODELS = ("synthetic-literal", "synthetic-paper", "news-paper")
WRONG = ("greedy", "ts-gen", "softmax", "gen-ucb", "gen-kg", "squarecb")  # on a model that is wrong
N_ACTIONS = 10  # of a task, in both settings
CHEAP = (  # candidates of long tasks, which neither complete tables nor fit policies
    "greedy",
    *(f"bayes-ucb(kappa={kappa})" for kappa in (0.005, 0.01, 0.02, 0.05, 0.1)),
    "softmax(temperature=0.01)",
    "gen-kg",
)


COSTS = {"light": 0.1, "heavy": 1.0, "mlp": 10.0}  # rough cost of a decision in milliseconds, for the progress


def kind_of(agent: str) -> str:
    """Return whether an agent is light, heavy (it completes tables), or fits networks to tables (mlp)."""
    heavy = "heavy" if agent.startswith(("ts-gen", "gen-ucb")) else "light"
    return "mlp" if "mlp" in agent else heavy


@dataclass(frozen=True)
class Regime:
    """Tasks of one kind, and the model that agents use in them."""

    setting: str  # synthetic or news
    spread: float  # spread of contexts
    horizon: int
    long: bool = False  # whether it is too long for candidates that complete tables
    wrong: str | None = None  # a model that plays in the place of the setting's filter

    @property
    def name(self) -> str:
        """The regime's name: setting, spread and horizon."""
        first = self.setting if self.wrong is None else self.wrong
        return f"{first}-{self.spread:g}-{self.horizon}"

    @property
    def title(self) -> str:
        """The regime in words."""
        first = self.setting if self.wrong is None else f"on {self.wrong}"
        contexts = {1.0: "contexts vary", 0.0: "one context"}.get(self.spread, f"context spread {self.spread:g}")
        return f"{first}, {contexts}, {self.horizon:,} decisions"

    @property
    def env(self) -> str:
        """The environment."""
        return f"{ENVS[self.setting]}(context_spread={self.spread}, horizon={self.horizon})"

    @property
    def model(self) -> str:
        """The model that agents act on."""
        return self.wrong or f"{self.setting}-filter"

    @property
    def law(self) -> str | float:
        """The law of the contexts, as imagined tasks name it."""
        return "bank" if self.spread == 1 else self.spread

    @property
    def candidates(self) -> tuple[str, ...]:
        """The agents that compete to be ``auto``; empty: all that tuning compares by default."""
        return CHEAP if self.long else ()

    @property
    def paper(self) -> str:
        """The paper's TS-Gen."""
        return PAPER[self.setting]

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that play it."""
        return WRONG if self.wrong is not None else (self.paper, *OWN[self.setting], *FIELD, "auto")

    def spec(self, agent: str, tuned: Path) -> str:
        """Return an agent's spec as it is played."""
        if agent == "auto":
            return write_spec("auto", {"model": self.model, "tuned": str(tuned), "contexts": self.law})
        if self.wrong is None:
            return agent
        name, options = parse_spec(agent)
        return write_spec(name, {**options, "model": self.wrong})


@dataclass(frozen=True)
class Size:
    """How much is played, in short and long tasks; slow agents play fewer."""

    light: tuple[int, int]
    heavy: tuple[int, int]  # by agents that complete tables
    mlp: tuple[int, int]  # by those that fit networks
    wrong: int  # short ones, with a wrong model
    tuning: tuple[int, int]  # imagined ones, by the last two candidates
    block: tuple[int, int]  # tasks side by side; all numbers are multiples, so that the same blocks are compared
    horizons: tuple[int, int] = (500, 2000)
    candidates: tuple[str, ...] | None = None  # candidates for ``auto``; None: the regime's

    @property
    def regimes(self) -> dict[str, Regime]:
        """All regimes, by name."""
        lengths = list(zip(self.horizons, (False, True), strict=True))
        found = [Regime(s, x, t, long) for s in ENVS for x in (1.0, 0.0) for t, long in lengths]
        found += [Regime(name.partition("-")[0], 1.0, self.horizons[0], wrong=name) for name in WRONG_MODELS]
        return {regime.name: regime for regime in found}

    def plan(self, regime: Regime) -> dict[str, int]:
        """Return how many tasks each agent plays; agents without tasks are left out."""
        return {agent: n for agent in regime.agents if (n := self.tasks_of(regime, agent))}

    def tasks_of(self, regime: Regime, agent: str) -> int:
        """Return how many tasks an agent plays."""
        if regime.wrong is not None:
            return self.wrong
        count: tuple[int, int] = getattr(self, kind_of(agent))
        return count[regime.long]

    def tune_config(self, regime: Regime, seed: int) -> TuneConfig:
        """Return how ``auto`` is tuned for a regime, only on imagined tasks."""
        candidates = self.candidates if self.candidates is not None else regime.candidates
        return TuneConfig(
            regime.model,
            horizon=regime.horizon,
            n_actions=N_ACTIONS,
            contexts=regime.law,
            candidates=candidates,
            tasks=self.tuning[regime.long],
            seed=seed,
            block=self.block[regime.long],
        )


FULL = (500, 300)
# An evaluation's folder is named by its number of tasks, so scales with other blocks play other numbers.
SIZES = {
    "tiny": Size((4, 4), (4, 2), (2, 0), 2, (2, 2), (2, 2), (6, 9), ("greedy", "bayes-ucb")),
    "small": Size((200, 60), (80, 15), (20, 5), 20, (100, 60), (20, 5), candidates=CHEAP),
    "medium": Size(FULL, (500, 40), (100, 20), 50, (400, 200), (50, 10), candidates=CHEAP),
    "full": Size(FULL, FULL, FULL, 100, (400, 200), (50, 10)),
}
