"""Plays the bundled model `general` in ten settings that it was not trained on, and ranks it among agents."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gents_gym.checks import check_choice
from gents_gym.evaluation.progress import Progress
from gents_gym.experiments.bake_off import VW
from gents_gym.experiments.contest import Contest

SETS = "gents_gym/Classification-v0(test=0.8, dataset={}, horizon={})"
COMPONENTS = "gents_gym/Across-v0(train=['diabetes'], context_dim=8, test=['{}'], n_actions={}, horizon={})"
SETTINGS = {  # with most decisions
    "synthetic": "gents_gym/Synthetic-v0(horizon={})",
    "nonlinear": "gents_gym/Nonlinear-v0(horizon={})",
    "bernoulli": "gents_gym/Bernoulli-v0(horizon={})",
    "correlated": "gents_gym/Correlated-v0(horizon={})",
    "drifting": "gents_gym/Drifting-v0(horizon={})",
    "iris": SETS.format("iris", "{}"),
    "diabetes": SETS.format("diabetes, bins=4", "{}"),
    "digits": COMPONENTS.format("digits", 5, "{}"),
    "wine": COMPONENTS.format("wine", 3, "{}"),
    "breast_cancer": COMPONENTS.format("breast_cancer", 2, "{}"),
}
SHORT = {"iris": 120, "wine": 80}  # decisions, if there are no more rows
OWN = {
    "synthetic": "greedy(model=synthetic-filter)",
    "nonlinear": "greedy(model=nonlinear-filter)",
    "correlated": "greedy(model=correlated-joint)",
    "drifting": "greedy(model=drifting-filter)",
}
FAVOURITE = "bayes-ucb(model=general, kappa=0.05)"
RIVAL = "linucb(intercept=True)"
AGENTS = (
    "random",
    RIVAL,
    "lints(intercept=True)",
    *VW.values(),
    "greedy(model=untrained)",
    "bayes-ucb(model=untrained)",
    "ts-gen(model=untrained, m=16)",
    "greedy(model=general)",
    FAVOURITE,
    "ts-gen(model=general, m=16)",
)
NOTES = """\
`general` is a transformer that was trained on the [prior `General-v0`](../environments.md#general-v0) and on nothing
else: it has seen none of these settings. [How it was trained](../transformer.md#one-model-for-many-settings).

`iris` and `diabetes`, the latter divided into four classes by quantiles, are data sets of `Classification-v0`; `digits`
(five classes of each task), `wine` and `breast_cancer` are their first eight principal components, from `Across-v0`.
The agent names a class and learns whether that was right.

**What agents know beforehand.** Contexts of data sets are standardised by rows that are not played. Nobody sees labels.
`untrained` is a `filter` with the prior N(0, I). `general` does not read action features. The oracle is the setting's
policy class fitted to the whole table; it is shown, but not ranked. So is greedy on the bundled model that was trained
on the setting, if there is one: `synthetic-filter`, `nonlinear-filter`, `correlated-joint` and `drifting-filter`. These
models know what action features mean.

**Options.** Agents play with their defaults, except for an intercept, the imputed rows `m`, and `kappa=0.05` of
`bayes-ucb` on `general`, which was chosen on the validation split of `General-v0`. The agents of Vowpal Wabbit are
those of [the bake-off](bake-off.md).
"""
READING = """\
Ranks are by total reward, 1 for the highest, averaged over all tasks of all settings; equal rewards share their rank.
Differences of ranks are taken in each pair of setting and task; below zero is better than LinUCB. Intervals come from a
bootstrap over these pairs. They cover other tasks of these settings, not other settings. The column of each setting has
the reward per decision, mean ± 1 s.e. Times are the agent's own, while other work ran on the same machine.
"""
CONTEST = Contest(
    *("general", "One model in ten settings", "tasks", "settings", NOTES, READING, VW),
    own=OWN,
    favourite=FAVOURITE,
    rival=RIVAL,
)


@dataclass(frozen=True)
class Size:
    """How much is played."""

    n_tasks: int  # of each setting
    horizon: int  # most decisions of a task
    agents: tuple[str, ...] = AGENTS
    settings: tuple[str, ...] = tuple(SETTINGS)


SIZES = {
    "tiny": Size(2, 10, ("random", RIVAL, FAVOURITE), ("synthetic", "bernoulli", "iris")),
    "small": Size(20, 200),
    "full": Size(100, 200),
}


def general(
    out: str | Path,
    scale: str = "small",
    seed: int = 0,
    workers: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Path:
    """Play all agents in all settings, and return the page that reports it; existing results are not played again.

    Args:
        out: The folder for the evaluations, and for the page and its figure.
        scale: "small", 20 tasks of each setting; "full", 100; "tiny", a trial of seconds.
        seed: Seed of the tasks and of the agents' randomness.
        workers: Processes; None: one per core.
        on_progress: Called with the progress.
    """
    size = SIZES[check_choice("scale", scale, SIZES)]
    lengths = {name: min(size.horizon, SHORT.get(name, size.horizon)) for name in size.settings}
    envs = {name: SETTINGS[name].format(length) for name, length in lengths.items()}
    return CONTEST.hold(out, scale, seed, envs, size.agents, size.n_tasks, workers, on_progress)
