"""The grid of an evaluation: a configuration in, a manifest and its cells (environment, agent, block of tasks) out."""

import hashlib
import importlib.metadata
import json
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gents_gym
from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.construct import make_agent, make_policy
from gents_gym.evaluation.environments import make_envs
from gents_gym.randomness import SPLITS
from gents_gym.types import Agent, Privileged

FORMAT = "gents_gym.evaluation.1"
PACKAGES = ("gymnasium", "numba", "numpy", "pyarrow", "scipy", "torch")  # whose versions may show in the results
Manifest = dict[str, Any]


@dataclass(frozen=True)
class EvaluationConfig:
    """What is played."""

    agents: tuple[str, ...]
    """Agents, each an id or package.module:Class, with options behind it: "lints(prior=fitted)"."""
    env: tuple[str, ...] = ("gents_gym/Synthetic-v0",)
    """Environments, each with options behind it: "gents_gym/Synthetic-v0(horizon=100)"."""
    tasks: int = 100
    """How many tasks each agent plays in each environment; all agents play the same ones."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    split: str = "test"
    """Stream that tasks come from: train, validation or test."""
    oracle: str | None = None
    """Policy class that regret is measured against; none: the setting's own."""
    block: int = 50
    """Tasks played side by side, by one worker. It changes the speed; linear agents' results stay the same to the
    bit, others' to rounding."""
    training_actions: int = 2000
    """Historical actions of the train split that agents with a fitted prior are fitted to."""


@dataclass(frozen=True)
class Cell:
    """One agent on one block of tasks, with all that the result depends on."""

    env: str
    agent: str
    first: int  # the first task
    stop: int  # the one behind the last
    weights: str | None  # what the agent acts on: see weights_hash
    run: Mapping[str, Any]  # what all cells of a run have in common, as in the manifest

    @property
    def name(self) -> str:
        """A name for files: readable, and different for different cells."""
        identity = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
        return f"{slug(self.env)}--{slug(self.agent)}--{self.first:06d}-{self.stop:06d}--{identity[:12]}"


def slug(text: str) -> str:
    """Return what is left of ``text`` in a file name that is safe everywhere; it need not be unique."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:48]


def plan(config: EvaluationConfig) -> Manifest:
    """Return the manifest of an evaluation, or raise where ``config`` breaks a rule; nothing is played."""
    for name in ("agents", "env"):
        specs = getattr(config, name)
        kind = "agent" if name == "agents" else "environment"
        if isinstance(specs, str) or not specs:
            raise InputError(f"{name} must name at least one {kind}, got {repr(specs) if specs else 'none'}")
        if len(set(specs)) < len(specs):
            raise InputError(f"{name} must differ from each other, got {' '.join(specs)}")
    for name in ("tasks", "block"):
        check_integer(name, getattr(config, name), 1)
    check_integer("seed", config.seed, 0)
    check_integer("training_actions", config.training_actions, 2)
    check_choice("split", config.split, SPLITS)
    if config.oracle is not None:
        make_policy(config.oracle)
    for env in config.env:
        envs = make_envs(env, 1, config.split)
        envs.reset(seed=config.seed)  # a task that cannot be drawn shows here
        envs.close()
    agents = {spec: make_agent(spec) for spec in config.agents}
    common = ("seed", "split", "oracle", "block", "training_actions")
    return {
        "format": FORMAT,
        "run": {**{name: getattr(config, name) for name in common}, "versions": versions(), "commit": _commit()},
        "env": list(config.env),
        "agents": list(config.agents),
        "tasks": config.tasks,
        "weights": {spec: weights_hash(agent) for spec, agent in agents.items()},
        "privileged": [spec for spec, agent in agents.items() if isinstance(agent, Privileged)],
    }


def cells(manifest: Manifest) -> list[Cell]:
    """Return the cells of a manifest's grid, in the order of environments, agents and tasks."""
    run, n_tasks, block = manifest["run"], manifest["tasks"], manifest["run"]["block"]
    return [
        Cell(env, agent, first, min(first + block, n_tasks), manifest["weights"][agent], run)
        for env in manifest["env"]
        for agent in manifest["agents"]
        for first in range(0, n_tasks, block)
    ]


def versions() -> dict[str, str]:
    """Return the versions of what computes the results here."""
    theirs = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"gents-gym": gents_gym.__version__, "python": platform.python_version(), **theirs}


def weights_hash(agent: Agent) -> str | None:
    """Return what an agent acts on beside its options; None where there is nothing.

    That is the sha256 of its weights, which it tells by its attribute ``model``, a preset, whose bundled models all
    count, a model's id or a folder, or by ``weight_files``, paths; and name==version of the distributions in
    ``packages``, where another library decides.
    """
    files = [Path(path) for path in getattr(agent, "weight_files", ())] or _model_files(getattr(agent, "model", None))
    found = [hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()] if files else []
    return " ".join(found + [_pin(name) for name in getattr(agent, "packages", ())]) or None


def _pin(package: str) -> str:
    try:
        return f"{package}=={importlib.metadata.version(package)}"
    except (importlib.metadata.PackageNotFoundError, TypeError, ValueError) as error:
        raise InputError(f"an agent's packages must be installed distributions, got {package!r}") from error


def _model_files(model: Any) -> list[Path]:
    if not isinstance(model, str | Path):
        return []
    from gents_gym.models.load import model_folders  # torch; an agent with a model has loaded it already

    try:
        paths = [folder / "model.safetensors" for folder in model_folders(model)]
    except InputError:  # "exact", or what else an agent may call its model
        return []
    return paths if paths[0].is_file() else []


def _commit() -> str | None:
    """Return the commit of the checkout that the package is imported from; None where it is installed."""
    top = Path(gents_gym.__file__).parent.parent
    if not (top / ".git").exists():
        return None
    try:
        found = subprocess.run(["git", "-C", top, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
