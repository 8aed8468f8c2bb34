"""Plays all agents on all bundled data sets and ranks them by reward."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gents_gym.checks import check_choice
from gents_gym.evaluation.environments import env_distribution
from gents_gym.evaluation.progress import Progress
from gents_gym.experiments.contest import Contest

SETS = {"iris": "", "wine": "", "breast_cancer": "", "digits": "", "diabetes": ", bins=4"}  # with further options
TEST = 0.8  # share of the rows that is played; no agent learns from the labels of the others
VW = {  # by display name; costs are negated rewards
    "vw: ε-greedy": "vw(args='--cb_explore_adf -q ca -b 14')",
    "vw: SquareCB": "vw(args='--cb_explore_adf --squarecb -q ca -b 14')",
    "vw: RegCB": "vw(args='--cb_explore_adf --regcbopt --cb_type mtr --cb_min_cost -1 --cb_max_cost 0 -q ca -b 14')",
}
AGENTS = (
    "random",
    "linucb(intercept=True)",
    "linucb(alpha=1, intercept=True)",
    "lints(intercept=True)",
    "greedy(model=untrained)",
    "epsilon-greedy(model=untrained)",
    "softmax(model=untrained)",
    "neural-linear-ts(model=untrained)",
    "ts-gen(model=untrained, m=64)",
    "ts-gen(model=untrained, m=64, samples=8)",
    "gen-ucb(model=untrained)",
    "bayes-ucb(model=untrained)",
    "online",
    *VW.values(),
)
NOTES = f"""\
Each task is a data set whose rows come in random order. The agent sees a row, names a class, and learns only
whether that was right, which is worth 1. All agents get the same rows in the same order. `diabetes` is divided into
four classes by quantiles.

**What agents know beforehand.** Contexts are standardised by {100 * (1 - TEST) * 0.8:.0f} % of the rows, which are not
played. Nobody sees the labels of those rows: models are `untrained`, a `filter` with the prior N(0, I), and no prior is
fitted. The oracle is a logistic policy fitted to all labels of the rows that are played; it is shown, but not ranked.

**Agents left out.** `lints(prior=fitted)` and trained models learn from labelled rows. `exact` and `exact-twin` need a
known p*. `sb3` needs a trained policy, `per-task` and `callable` need an agent of the user. `mabwiser`'s linear
policies are the same as `linucb` and `lints`.

**Options.** Agents play with their defaults, except for an intercept, the imputed rows `m`, and a second α of LinUCB.
Vowpal Wabbit's RegCB is the only agent whose arguments were changed after a first run. Its costs are negated rewards;
without their range, -1 to 0, it played almost at random. The better of its two forms was kept, by a trial on rows that
are partly those played here. In full, the agents of Vowpal Wabbit are {", ".join(f"`{spec}`" for spec in VW.values())}.
"""
READING = """\
Ranks are by total reward, 1 for the highest, averaged over all orders of all sets; equal rewards share their rank.
Intervals come from a bootstrap over pairs of set and order. They cover other orders of these sets, not other sets. The
column of each set has the share of right classes over the whole task, mean ± 1 s.e. Times are the agent's own, while
other work ran on the same machine.
"""
CONTEST = Contest("bake-off", "A bake-off on data sets", "orders", "data sets", NOTES, READING, VW)


@dataclass(frozen=True)
class Size:
    """How much is played."""

    shuffles: int  # orders of each data set
    longest: int  # most decisions of a task
    agents: tuple[str, ...] = AGENTS
    sets: tuple[str, ...] = tuple(SETS)


SIZES = {
    "tiny": Size(2, 12, ("random", "linucb(intercept=True)", "greedy(model=untrained)"), ("iris", "wine")),
    "small": Size(20, 300),
    "full": Size(20, 2000),
}


def bake_off(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Play the bake-off, and return the page that reports it; existing results are not played again.

    Args:
        out: The folder for ``run``, an evaluation, and for the page and its figure.
        scale: "small", tasks of at most 300 decisions; "full", at most 2,000; "tiny", a trial of seconds.
        seed: Seed of the orders and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with the progress.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    envs = {name: _env(name, size) for name in size.sets}
    return CONTEST.hold(out, scale, seed, envs, size.agents, size.shuffles, workers, on_progress)


def _env(name: str, size: Size) -> str:
    """Return the environment of a data set, with all its rows or only the first."""
    options = f"dataset={name}, test={TEST}{SETS[name]}"
    length = env_distribution(f"gents_gym/Classification-v0({options})").sample(0, [0]).horizon
    return f"gents_gym/Classification-v0({options}, horizon={min(length, size.longest)})"
