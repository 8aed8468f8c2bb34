"""Trains a network, on imagined tasks, to imitate the action probabilities of an agent on a model."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gents_gym.agents.on_model import BeliefHolder
from gents_gym.checks import InputError
from gents_gym.construct import make_agent
from gents_gym.evaluation.environments import env_distribution, make_envs
from gents_gym.evaluation.measures import totals
from gents_gym.evaluation.rollout import Rollout, rollout
from gents_gym.files import check_target
from gents_gym.models.distilled import CONFIG, ActionNetwork, DistilledConfig, load_network, save_network, summarise
from gents_gym.models.load import WEIGHTS, load_model, model_folders
from gents_gym.randomness import stream
from gents_gym.report.comparison import mean_interval
from gents_gym.report.tables import escape
from gents_gym.specs import parse_spec, write_spec
from gents_gym.tuning.config import TuneConfig, tasks_to_come
from gents_gym.tuning.distill_config import DistillConfig
from gents_gym.types import Agent, RandomisedAgent, TaskInfo
from gents_gym.words import count

Tell = Callable[[str, float], None]
Share = Callable[[float], None]
BLOCK = 20  # tasks side by side
HEADS = (
    *("tasks", "number", "total variation: network", "twin", "expected regret: teacher", "network"),
    *("difference, 95 % interval", "ms per decision: teacher", "network"),
)
NOTE = """\
Total variation is the distance from the teacher's probabilities, in beliefs that the teacher reaches. The twin
is the teacher with other random numbers: shares of few votes are noisy, and the twin of a teacher with a formula
is at 0. A perfect network has no noise, so it would be closer than a noisy twin.
"""


@dataclass(frozen=True)
class Measured:
    """The network against its teacher on the same tasks."""

    env: str
    tasks: int
    variation: tuple[float, float]  # mean total variation from the teacher's probabilities: the network's, a twin's
    regret: tuple[float, float]  # mean expected regret of the teacher and of the network
    gap: tuple[float, float, float]  # network minus teacher, paired, with its 95 % interval
    milliseconds: tuple[float, float]  # milliseconds per decision of the teacher and of the network


@dataclass
class Watched:
    """Plays as the teacher, and records the belief's summaries and the teacher's probabilities."""

    teacher: Any
    model: str
    explore: float = 0.0
    context: bool = False
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))  # draws random actions
    inputs: list[np.ndarray] = field(default_factory=list)  # (B, A, K) each
    targets: list[np.ndarray] = field(default_factory=list)  # (B, A) each
    twin: Any = None  # the teacher again, which follows the same tasks with other random numbers
    again: list[np.ndarray] = field(default_factory=list)  # the twin's probabilities, (B, A) each

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start B new tasks; the teacher keeps its own generators."""
        self._n_actions, self._left = info.n_actions, info.horizon or 1
        self._held = BeliefHolder(self.model, info, [rng.spawn(1)[0] for rng in rngs])
        if self.twin is not None:
            self.twin.reset(info, [rng.spawn(1)[0] for rng in rngs])
        self.teacher.reset(info, rngs)

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the teacher's actions (B,), some replaced by random ones."""
        mean, variance = self._held.expected(context), self._held.belief.variance(context)
        given = np.asarray(context, np.float64) if self.context else None
        self.inputs.append(summarise(mean, variance, self._left, given).astype(np.float32))
        self.targets.append(np.asarray(self.teacher.probabilities(context), np.float32))
        if self.twin is not None:
            self.again.append(self.twin.probabilities(context))
            self.twin.act(context)
        action = self.teacher.act(context)
        anything = self.rng.integers(self._n_actions, size=len(action))
        return np.where(self.rng.random(len(action)) < self.explore, anything, action)

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Pass the outcomes on."""
        self._held.observe(context, action, outcome)
        for agent in (self.teacher, self.twin):
            if agent is not None:
                agent.observe(context, action, outcome)
        self._left -= 1

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Everything that was recorded, (N, A, K) and (N, A)."""
        return np.concatenate(self.inputs), np.concatenate(self.targets)


def distill(
    config: DistillConfig, out: str | Path, on_progress: Tell | None = None
) -> tuple[ActionNetwork, list[Measured]]:
    """Train a network to play as an agent does and write it to ``out``; return it and how it compares.

    An interrupted call leaves nothing behind.

    Args:
        config: What is distilled.
        out: Folder for the network and its card, README.md.
        on_progress: Called with the current activity and the share of the work done.
    """
    config.check()
    folder, tell = _place(out), on_progress or (lambda text, share: None)
    come = tasks_to_come(
        TuneConfig(config.model, config.env, config.horizon, config.n_actions, config.contexts, seed=config.seed)
    )
    load_model(config.model)
    if config.env is not None:
        env_distribution(config.env)
    imagined = write_spec("gents_gym/Imagined-v0", {"model": config.model, **come})
    envs = {imagined: "validation"} | ({} if config.env is None else {config.env: "test"})
    _check_playable(config, envs)
    rng = stream(config.seed, "distilling", 1, "train")
    watched = Watched(_teacher(config), config.model, config.explore, config.context, rng)
    _play(watched, imagined, config.tasks, config.seed, "train", lambda share: tell("playing", 0.5 * share))
    network = _fit(config, *watched.pairs, lambda share: tell("training", 0.5 + 0.2 * share))
    save_network(network, folder)
    found = list[Measured]()
    for env, split in envs.items():
        begun = 0.7 + 0.3 * len(found) / len(envs)

        def measured(share: float, begun: float = begun) -> None:
            tell("measuring", begun + 0.3 * share / len(envs))

        found.append(_measure(config, network, folder, env, split, measured))
    save_network(network, folder, {"README.md": card(config, found).encode()})
    return network, found


def _place(out: str | Path) -> Path:
    folder = check_target("out", out)
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]) and not (folder / CONFIG).exists():
        raise InputError(f"out must be a new folder or one of gents-gym distill, got '{folder}'")
    if (folder / CONFIG).exists():
        load_network(folder)  # otherwise the folder is not ours
    return folder


def _teacher(config: DistillConfig) -> Agent:
    """Return the teacher on the model. Raises if it cannot report its probabilities."""
    name, options = parse_spec(config.agent)
    if "model" in options:
        raise InputError(f"agent must not name a model, which is --model, got {config.agent!r}")
    teacher: Agent = make_agent(config.agent, model=config.model)
    if not isinstance(teacher, RandomisedAgent):
        raise InputError(f"agent must have probabilities(context) to be learned from, got {name!r}")
    return teacher


def _name(model: str) -> str:
    """Return the name of a model for the network's file, such that it is found from every folder."""
    (folder,) = model_folders(model)
    return model if ":" in model else folder.name if folder.parent == WEIGHTS else str(folder.absolute())


def _check_playable(config: DistillConfig, envs: Iterable[str]) -> None:
    """Raise unless the teacher plays a first decision in every environment: now, not after hours."""
    for env in envs:
        with closing(make_envs(env, 1, "validation")) as one:
            rollout(one, _teacher(config), config.seed, max_steps=1)


def _play(agent: Agent, env: str, tasks: int, seed: int, split: str, tell: Share) -> list[Rollout]:
    """Return the records of the first tasks of a split, in blocks."""
    found = list[Rollout]()
    for first in range(0, tasks, BLOCK):
        indices = range(first, min(first + BLOCK, tasks))
        with closing(make_envs(env, len(indices), split)) as envs:
            found.append(rollout(envs, agent, seed, indices=indices))
        tell(indices.stop / tasks)
    return found


def _fit(config: DistillConfig, inputs: np.ndarray, targets: np.ndarray, tell: Share) -> ActionNetwork:
    """Return a network with the least cross entropy to the targets (N, A), given inputs (N, A, K)."""
    context_dim = load_model(config.model).config.context_dim if config.context else 0
    variance = inputs.shape[2] - context_dim == 5
    network = ActionNetwork(DistilledConfig(config.agent, _name(config.model), config.width, variance, context_dim))
    x, y = torch.from_numpy(inputs), torch.from_numpy(targets)
    rng = stream(config.seed, "distilling", 0, "train")
    network.start(torch.Generator().manual_seed(int(rng.integers(2**31))), x)
    optimizer = torch.optim.Adam(network.parameters(), config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.epochs)
    for epoch in range(config.epochs):
        order = torch.from_numpy(rng.permutation(len(x)))
        for rows in torch.split(order, config.batch):
            optimizer.zero_grad()
            loss = -(y[rows] * network(x[rows])).sum(dim=1).mean()
            loss.backward()
            optimizer.step()
        schedule.step()
        tell((epoch + 1) / config.epochs)
    return network.eval()


def _measure(
    config: DistillConfig, network: ActionNetwork, folder: Path, env: str, split: str, tell: Share
) -> Measured:
    """Compare the network with its teacher on tasks that neither was trained on."""
    watched = Watched(_teacher(config), config.model, 0.0, config.context, twin=_teacher(config))
    _play(watched, env, config.held_out, config.seed, split, lambda share: tell(0.6 * share))
    inputs, targets = watched.pairs
    told = (network.probabilities(inputs), np.concatenate(watched.again))
    variation, noise = (0.5 * float(np.abs(each - targets).sum(axis=1).mean()) for each in told)
    student = make_agent("distilled", path=str(folder), model=config.model)
    plain = (_teacher(config), student)
    records = [_play(agent, env, config.held_out, config.seed, split, lambda share: tell(1.0)) for agent in plain]
    one, other = (np.concatenate([totals(part, "expected") for part in parts]) for parts in records)
    spent = [sum(part.seconds for part in parts) / sum(part.actions.size for part in parts) for parts in records]
    gap = mean_interval(other - one)
    means, times = (float(one.mean()), float(other.mean())), (1e3 * spent[0], 1e3 * spent[1])
    return Measured(env, len(one), (variation, noise), means, gap, times)


def card(config: DistillConfig, found: Sequence[Measured]) -> str:
    """Return the results as Markdown."""
    lines = [f"# {config.agent} on {config.model}, distilled", ""]
    tasks = count(config.tasks, "imagined task")
    lines += [f"Trained on {tasks}, {100 * config.explore:g} % of decisions at random.", ""]
    lines += [f"| {' | '.join(HEADS)} |", f"|---|{'---:|' * (len(HEADS) - 1)}"]
    for one in found:
        mean, low, high = one.gap
        cells = [escape(one.env), str(one.tasks), *(f"{value:.3f}" for value in one.variation)]
        cells += [*(f"{value:.1f}" for value in one.regret), f"{mean:+.1f} ({low:.1f} to {high:.1f})"]
        lines.append(f"| {' | '.join([*cells, *(f'{value:.3f}' for value in one.milliseconds)])} |")
    return "\n".join([*lines, "", NOTE])
