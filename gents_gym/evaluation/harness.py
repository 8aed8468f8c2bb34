"""The evaluation harness: an environment and agents in, a folder with results, a table and a figure out."""

import importlib
import importlib.metadata
import json
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import gents_gym
from gents_gym.checks import InputError, check_choice, check_integer
from gents_gym.construct import make_agent, make_policy, parse_spec
from gents_gym.evaluation.figures import draw_regret
from gents_gym.evaluation.rollout import Rollout, check_observations, join, rollout
from gents_gym.files import write_whole
from gents_gym.randomness import SPLITS
from gents_gym.types import Agent, Fittable, TaskDistribution

TRAINING_ROWS = 1000  # rows of each historical action


@dataclass(frozen=True)
class EvaluationConfig:
    """What is played."""

    agents: tuple[str, ...]
    """Agents, each an id or package.module:Class, with options behind it: "lints(prior=fitted)"."""
    env: str = "gents_gym/Synthetic-v0"
    """Environment, with options behind it: "gents_gym/Synthetic-v0(horizon=100)"."""
    tasks: int = 100
    """How many tasks each agent plays; all agents play the same ones."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    split: str = "test"
    """Stream that tasks come from: train, validation or test."""
    oracle: str | None = None
    """Policy class that regret is measured against; none: the setting's own."""
    block: int = 100
    """Tasks played side by side. It changes the speed; linear agents' results stay the same to the bit."""
    training_actions: int = 2000
    """Historical actions of the train split that agents with a fitted prior are fitted to."""


@dataclass
class Evaluation:
    """What was found: a record per agent, and how long its decisions took."""

    config: EvaluationConfig
    rollouts: dict[str, Rollout] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)  # per decision; not part of the results
    task_hashes: list[str] = field(default_factory=list)  # of each block's tasks; [] without tables


def make_envs(config: EvaluationConfig, num_envs: int) -> gym.vector.VectorEnv[Any, Any, Any]:
    """Return the vector environment that ``config`` names, with ``num_envs`` slots."""
    name, options = parse_spec(config.env)
    for option in options:
        if option in ("split", "num_envs", "autoreset_mode", "vectorization_mode", "vector_kwargs", "wrappers"):
            raise InputError(f"env's options must be of the task, got {option!r} in {config.env!r}")
    module, _, plain = name.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
        if gym.spec(plain).vector_entry_point == "gents_gym.envs.bandit:BanditVectorEnv":
            options = {"split": config.split, "autoreset_mode": "Disabled", **options}
        envs = gym.make_vec(plain, num_envs=num_envs, **options)
    except InputError:
        raise
    except (gym.error.Error, ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"env {config.env!r} cannot be made: {error}") from error
    check_observations(envs)
    return envs


def env_distribution(env: str) -> TaskDistribution:
    """Return the task distribution of one of our environments, options behind its id included."""
    envs = make_envs(EvaluationConfig((), env), 1)
    distribution: TaskDistribution | None = getattr(envs.unwrapped, "distribution", None)
    if distribution is None:
        raise InputError(f"env must be one of gents_gym's, with a task distribution, got {env!r}")
    return distribution


def make_agents(config: EvaluationConfig) -> dict[str, Agent]:
    """Return the agents by spec, not yet fitted, or raise where ``config`` breaks a rule."""
    if not config.agents:
        raise InputError("agents must name at least one agent, got none")
    if len(set(config.agents)) < len(config.agents):
        raise InputError(f"agents must differ from each other, got {' '.join(config.agents)}")
    for name in ("tasks", "block"):
        check_integer(name, getattr(config, name), 1)
    check_integer("seed", config.seed, 0)
    check_integer("training_actions", config.training_actions, 2)
    check_choice("split", config.split, SPLITS)
    if config.oracle is not None:
        make_policy(config.oracle)
    make_envs(config, 1).close()
    return {spec: make_agent(spec) for spec in config.agents}


def evaluate(config: EvaluationConfig, on_step: Callable[[int], None] | None = None) -> Evaluation:
    """Play every agent on the same tasks, block by block.

    Args:
        config: What is played.
        on_step: Called with the number of decisions just made, for a progress bar.
    """
    found = Evaluation(config)
    firsts = range(0, config.tasks, config.block)
    blocks = [range(first, min(first + config.block, config.tasks)) for first in firsts]
    for spec, agent in make_agents(config).items():
        if isinstance(agent, Fittable):
            _fit(agent, config)
        started = time.perf_counter()
        played = [_play(config, agent, block, on_step) for block in blocks]
        found.rollouts[spec] = join([record for record, _ in played])
        found.task_hashes = [task_hash for _, task_hash in played if task_hash is not None]
        found.seconds[spec] = (time.perf_counter() - started) / found.rollouts[spec].actions.size
    return found


def count_decisions(config: EvaluationConfig) -> int | None:
    """Return how many decisions an evaluation makes, or None where the environment does not tell its horizon."""
    horizon = getattr(make_envs(config, 1).unwrapped, "horizon", None)
    return None if horizon is None else len(config.agents) * config.tasks * horizon


def _fit(agent: Fittable, config: EvaluationConfig) -> None:
    """Fit the agent to rows of the train split, which no evaluation plays."""
    distribution = getattr(make_envs(config, 1).unwrapped, "distribution", None)
    if distribution is not None:
        agent.fit(distribution.sample_actions(config.seed, range(config.training_actions), TRAINING_ROWS, "train"))


def _play(
    config: EvaluationConfig, agent: Agent, block: range, on_step: Callable[[int], None] | None
) -> tuple[Rollout, str | None]:
    """Return the record of a block of tasks, and their content hash where the environment has tables."""
    envs = make_envs(config, len(block))
    told = None if on_step is None else lambda: on_step(len(block))
    record = rollout(envs, agent, config.seed, config.oracle, indices=block, on_step=told)
    task_hash = envs.unwrapped.tasks.content_hash if record.regret else None  # type: ignore[attr-defined]
    envs.close()
    return record, task_hash


def save(found: Evaluation, out: Path) -> None:
    """Write results.parquet, regret.png and, last, manifest.json into the folder ``out``."""
    sink = pa.BufferOutputStream()
    pq.write_table(results_table(found), sink, compression="zstd")
    write_whole(out / "results.parquet", sink.getvalue().to_pybytes())
    write_whole(out / "regret.png", draw_regret(found.rollouts, found.config.env))
    write_whole(out / "manifest.json", (json.dumps(manifest(found), indent=2) + "\n").encode())


def results_table(found: Evaluation) -> pa.Table:
    """Return one row per (env, agent, task), with a list per step for actions, rewards and each regret."""
    tables = []
    for spec, record in found.rollouts.items():
        n_tasks = len(record.actions)
        columns = {
            "env": [found.config.env] * n_tasks,
            "agent": [spec] * n_tasks,
            "privileged": [record.privileged] * n_tasks,
            "task": list(record.indices),
            "actions": _lists(record.actions.astype(np.int32)),
            "rewards": _lists(record.rewards.astype(np.float32)),
        }
        for name, steps in record.regret.items():
            columns[f"regret_{name}"] = _lists(steps.astype(np.float32))
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def _lists(steps: np.ndarray) -> pa.Array:
    offsets = np.arange(0, steps.size + 1, steps.shape[1], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(steps.ravel()))


def manifest(found: Evaluation) -> dict[str, Any]:
    """Return what is needed to make the results again."""
    packages: Sequence[str] = ("gymnasium", "numpy", "scipy")
    return {
        "config": asdict(found.config),
        "privileged": [spec for spec, record in found.rollouts.items() if record.privileged],
        "block_sha256": found.task_hashes,
        "versions": {
            "gents-gym": gents_gym.__version__,
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in packages},
        },
    }
