"""Builds the grid of an evaluation: its manifest and its cells (environment, agent, block of tasks)."""

import hashlib
import importlib.metadata
import json
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gymnasium.vector import VectorEnv

import gents_gym
from gents_gym.checks import InputError, TaskError, check_choice, check_flag, check_integer, check_memory
from gents_gym.construct import make_agent, make_policy, parse_spec
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.given import Given
from gents_gym.evaluation.regret import make_oracle
from gents_gym.evaluation.rollout import agent_remarks, check_randomised, check_verbs, own_tasks, task_info
from gents_gym.evaluation.sources import code_hashes, commit
from gents_gym.randomness import SPLITS
from gents_gym.schema import positive, whole
from gents_gym.types import Agent, Privileged, Resolves, Selective, TaskInfo, Tasks

FORMAT = "gents_gym.evaluation.1"
# Packages whose versions may affect the results.
PACKAGES = ("gymnasium", "numba", "numpy", "pyarrow", "scipy", "torch")
TRAINING_ROWS = 1000  # rows of each historical action
LIMIT = 100_000  # limit on the cells of a run, and on tasks side by side
Manifest = dict[str, Any]

BY_AGENT = ("resolved", "remarks")  # parts of a manifest by environment and agent
HASHES = {str: str}
RUN = {
    "seed": whole,
    "split": lambda value: value in SPLITS,
    "oracle": str | None,
    "block": positive,
    "training_actions": positive,
    "versions": {str: str},
    "commit": str | None,
    "propensities?": lambda value: value is True,  # only in runs that recorded them
}
MANIFEST = {  # as stored in files; earlier versions had no "resolved"
    "run": RUN,
    "env": [str],
    "agents": [str],
    "tasks": positive,
    "weights": {str: str | None},
    "code?": {str: HASHES},
    "resolved?": {str: {str: str}},
    "privileged": [str],
    "left_out?": {str: [str]},
    "remarks?": {str: {str: [str]}},  # by environment and agent
}
CELL = {
    "env": str,
    "agent": str,
    "first": whole,
    "stop": positive,
    "weights": str | None,
    "run": RUN,
    "code?": HASHES,
    "resolved?": str,
}


@dataclass(frozen=True)
class EvaluationConfig:
    """What is played."""

    agents: tuple[str, ...]
    """Agents, each an id or package.module:Class, optionally with options: "lints(prior=fitted)"."""
    env: tuple[str, ...] = ("gents_gym/Synthetic-v0",)
    """Environments, optionally with options: "gents_gym/Synthetic-v0(horizon=100)"."""
    tasks: int = 100
    """How many tasks each agent plays in each environment; all agents play the same ones."""
    seed: int = 0
    """Seed of the tasks and of the agents' randomness."""
    split: str = "test"
    """Stream that tasks come from: train, validation or test."""
    oracle: str | None = None
    """Policy class that regret is measured against; none: the setting's own."""
    block: int = 50
    """Tasks played side by side, by one worker. It affects the speed; linear agents' results stay bitwise
    the same, others' up to rounding."""
    training_actions: int = 10_000
    """Historical actions of the train split that fitted priors are fitted to; bundled models were trained on as
    many."""
    propensities: bool = False
    """Also record the probability of each played action; agents that cannot report it are refused."""


@dataclass(frozen=True)
class Cell:
    """One agent on one block of tasks, with everything that the result depends on."""

    env: str
    agent: str
    first: int  # the first task
    stop: int  # one past the last
    weights: str | None  # the agent's weights: see weights_hash
    run: Mapping[str, Any]  # what all cells of a run share, as in the manifest
    code: Mapping[str, str] = field(default_factory=dict)  # sha256 of the code that specs name outside the package
    resolved: str | None = None  # the policy class that the agent fits here, if its spec names none

    @property
    def pair(self) -> tuple[str, str]:
        """Environment and agent."""
        return self.env, self.agent

    @property
    def tasks(self) -> str:
        """The tasks as text."""
        return f"task {self.first}" if self.stop == self.first + 1 else f"tasks {self.first} to {self.stop - 1}"

    @property
    def label(self) -> dict[str, Any]:
        """All fields, for files; ``code`` and ``resolved`` only if they are not empty."""
        return {name: value for name, value in asdict(self).items() if value or name not in ("code", "resolved")}

    @property
    def name(self) -> str:
        """A name for files: readable, and different for different cells."""
        identity = hashlib.sha256(json.dumps(self.label, sort_keys=True).encode()).hexdigest()
        return f"{slug(self.env)}--{slug(self.agent)}--{self.first:06d}-{self.stop:06d}--{identity[:12]}"


def slug(text: str) -> str:
    """Return ``text`` reduced to characters that are safe in file names everywhere; it need not be unique."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:48]


def plan(config: EvaluationConfig, given: Mapping[str, Given] | None = None) -> Manifest:
    """Return the manifest of an evaluation; nothing is played. Raises if ``config`` breaks a rule.

    Args:
        config: What is played.
        given: The agents that no spec describes, by name.
    """
    given = given or {}
    if not isinstance(config, EvaluationConfig):
        raise InputError(f"config must be an EvaluationConfig, got {config!r}")
    for name in ("agents", "env"):
        specs = getattr(config, name)
        kind = "agent" if name == "agents" else "environment"
        if not isinstance(specs, tuple | list) or not specs:
            got = "none" if isinstance(specs, tuple | list) else repr(specs)
            raise InputError(f"{name} must name at least one {kind}, got {got}")
        if len({spec if isinstance(spec, str) and spec in given else _normal(spec) for spec in specs}) < len(specs):
            raise InputError(f"{name} must differ from each other, got {' '.join(specs)}")
    numbers = {
        name: check_integer(name, getattr(config, name), minimum)
        for name, minimum in (("tasks", 1), ("block", 1), ("seed", 0), ("training_actions", 2))
    }
    config = replace(config, **numbers)  # type: ignore[arg-type]  # int, whatever NumPy they were
    _check_size(len(config.env) * len(config.agents), config.tasks, config.block)
    check_choice("split", config.split, SPLITS)
    if config.oracle is not None:
        make_policy(config.oracle)
    agents = {spec: given[spec].agent if spec in given else make_agent(spec) for spec in config.agents}
    if check_flag("propensities", config.propensities):
        for spec, agent in agents.items():
            check_randomised(agent, repr(spec))
    infos: dict[str, TaskInfo] = {}
    remarks: dict[str, dict[str, list[str]]] = {}
    for env in config.env:
        with _first_task(env, config.split, config.seed) as (envs, info):
            _check_oracle(env, own_tasks(envs), config.oracle)
            infos[env] = info
            found = {spec: list(agent_remarks(agent, info, envs)) for spec, agent in agents.items()}
            remarks[env] = {spec: lines for spec, lines in found.items() if lines}
    for info in infos.values():
        _check_block(min(config.tasks, config.block), config.training_actions, info)
    for env, info in infos.items():
        for spec, agent in agents.items():
            _check_play(env, spec, agent, info, config.propensities)
    resolved = {
        env: {
            spec: text
            for spec, agent in agents.items()
            if (text := resolved_policy(env, spec, agent, info, named=spec not in given))
        }
        for env, info in infos.items()
    }
    common = ("seed", "split", "oracle", "block", "training_actions")
    run = {**{name: getattr(config, name) for name in common}, "versions": versions(), "commit": commit()}
    return {
        "format": FORMAT,
        # Without it, files stay the same as before.
        "run": {**run, "propensities": True} if config.propensities else run,
        "env": list(config.env),
        "agents": list(config.agents),
        "tasks": config.tasks,
        "weights": {spec: weights_hash(agent) for spec, agent in agents.items()},
        "code": {
            spec: code for spec in _specs(config) if (code := given[spec].code if spec in given else code_hashes(spec))
        },
        "resolved": {env: texts for env, texts in resolved.items() if texts},
        "privileged": [spec for spec, agent in agents.items() if isinstance(agent, Privileged)],
        **({"remarks": {env: each for env, each in remarks.items() if each}} if any(remarks.values()) else {}),
    }


def merge(old: Manifest, new: Manifest, keep: Callable[[Cell], bool]) -> Manifest:
    """Return the manifest of what a folder holds together with what is requested, of the same run.

    What ``new`` names comes first and replaces older entries. Other agents and environments of the folder stay, but the
    grid gets no pairs that nobody requested.

    Args:
        old: The folder's manifest.
        new: The requested manifest.
        keep: Whether a cell is in the folder; a pair without any is forgotten.
    """
    asked = {(env, agent) for env in new["env"] for agent in new["agents"]}
    there = {cell.pair for each in (old, {**old, "tasks": new["tasks"]}) for cell in cells(each) if keep(cell)}
    pairs = asked | there
    env = [name for name in dict.fromkeys((*new["env"], *old["env"])) if any(name == pair[0] for pair in pairs)]
    agents = [name for name in dict.fromkeys((*new["agents"], *old["agents"])) if any(name == p[1] for p in pairs)]
    _check_size(len(env) * len(agents), new["tasks"], new["run"]["block"])
    left_out = {one: [agent for agent in agents if (one, agent) not in pairs] for one in env}
    code = {**old.get("code", {}), **new["code"]}
    named = {*new["env"], *new["agents"]}
    kept = {spec: code[spec] for spec in code if spec in new["code"] or spec not in named}
    resolved, remarks = ({one: _by_agent(old, new, key, one, asked, pairs) for one in env} for key in BY_AGENT)
    privileged = {*(name for name in old["privileged"] if name not in new["agents"]), *new["privileged"]}
    return {
        **new,
        "env": env,
        "agents": agents,
        "weights": {agent: ({**old["weights"], **new["weights"]})[agent] for agent in agents},
        "code": {spec: kept[spec] for spec in kept if spec in (*env, *agents, new["run"]["oracle"])},
        "resolved": {one: texts for one, texts in resolved.items() if texts},
        "privileged": [agent for agent in agents if agent in privileged],
        **({"remarks": {one: each for one, each in remarks.items() if each}} if any(remarks.values()) else {}),
        **({"left_out": {one: names for one, names in left_out.items() if names}} if any(left_out.values()) else {}),
    }


def _by_agent(
    old: Manifest, new: Manifest, key: str, env: str, asked: set[tuple[str, str]], pairs: set[tuple[str, str]]
) -> dict[str, Any]:
    """Return a manifest's entries by agent in an environment: the old ones, unless they are requested again."""
    before = {a: entry for a, entry in old.get(key, {}).get(env, {}).items() if (env, a) in pairs - asked}
    return {**before, **new.get(key, {}).get(env, {})}


def _check_play(env: str, spec: str, agent: Agent, info: TaskInfo, propensities: bool) -> None:
    """Raise if an agent lacks a method, or says that it cannot play tasks like ``info``."""
    with _cannot_play(env, spec):
        check_verbs(info, agent, propensities)
        if isinstance(agent, Selective):
            agent.check(info)


@contextmanager
def _cannot_play(env: str, spec: str) -> Iterator[None]:
    """Prefix errors raised inside with the agent and the environment."""
    try:
        yield
    except InputError as error:
        where = ", in task 0 at step 1" if isinstance(error, TaskError) else ""
        raise InputError(f"agent {spec!r} cannot play {env!r}: {error}{where}") from error


def _check_size(pairs: int, tasks: int, block: int) -> None:
    n_cells = pairs * -(-tasks // block)
    if n_cells > LIMIT or min(tasks, block) > LIMIT:
        got = f"{tasks} tasks in blocks of {block}, which are {n_cells} cells"
        raise InputError(f"tasks must make at most {LIMIT} cells of at most {LIMIT} tasks, got {got}")


def _check_block(block: int, training_actions: int, info: TaskInfo) -> None:
    """Raise if a block's contexts and outcomes, or the contexts of training rows, do not fit into memory."""
    horizon, numbers = info.horizon or 1, info.context_dim + info.n_actions
    check_memory(4 * block * horizon * numbers, block=block, horizon=horizon, n_actions=info.n_actions)
    check_memory(4 * training_actions * info.context_dim * TRAINING_ROWS, training_actions=training_actions)


def check_manifest(manifest: Manifest) -> None:
    """Raise a ValueError unless the parts of a manifest, which matches the schema, are consistent."""
    env, agents = manifest["env"], manifest["agents"]
    if not env or not agents or len({*env}) < len(env) or len({*agents}) < len(agents):
        raise ValueError("env and agents must name something, each once")
    if manifest["weights"].keys() != {*agents}:
        raise ValueError("weights must name the agents")
    _check_size(len(env) * len(agents), manifest["tasks"], manifest["run"]["block"])


@contextmanager
def _first_task(env: str, split: str, seed: int) -> "Iterator[tuple[VectorEnv[Any, Any, Any], TaskInfo]]":
    """Yield an environment that plays the first task, and what an agent may know of it."""
    with closing(make_envs(env, 1, split)) as envs:
        observation, shown = envs.reset(seed=seed)
        yield envs, task_info(envs, observation, shown, own_tasks(envs))


def first_info(env: str, split: str, seed: int) -> TaskInfo:
    """Return what an agent may know of the first task; raise if it cannot be drawn."""
    with _first_task(env, split, seed) as (_, info):
        return info


def _check_oracle(env: str, tasks: Tasks | None, oracle: str | None) -> None:
    """Raise unless regret can be measured against the requested oracle, or the environment's own."""
    try:
        if tasks is not None:
            make_oracle(tasks, oracle)
    except InputError as error:
        whose = "its own oracle" if oracle is None else f"the oracle {oracle!r}"
        raise InputError(f"env {env!r} cannot be measured against {whose}: {error}") from error


def resolved_policy(env: str, spec: str, agent: Agent, info: TaskInfo, named: bool = True) -> str | None:
    """Return the policy class that an agent fits in tasks like ``info``; None if its spec names one or it has none.

    Raises if a model or policy class does not fit the tasks, whether or not the spec names it. An agent that no spec
    describes is not ``named``.
    """
    if not isinstance(agent, Resolves):
        return None
    with _cannot_play(env, spec):
        text = agent.resolve(info)
    return text if not named or parse_spec(spec)[1].get("policy") is None else None


def _normal(spec: str) -> str:
    """Return a normal form of a spec: specs with the same name and options become the same text."""
    name, options = parse_spec(spec)
    return repr((name, sorted(options.items())))


def _specs(config: EvaluationConfig) -> tuple[str, ...]:
    return (*config.env, *config.agents, *([] if config.oracle is None else [config.oracle]))


def cells(manifest: Manifest) -> list[Cell]:
    """Return the cells of a manifest's grid, in the order of environments, agents and tasks."""
    run, n_tasks, block = manifest["run"], manifest["tasks"], manifest["run"]["block"]
    weights, code = manifest["weights"], manifest.get("code", {})
    resolved = manifest.get("resolved", {})  # manifests of version 0.1.0 have none

    def code_of(*specs: str) -> dict[str, str]:
        return {name: sha256 for spec in specs for name, sha256 in code.get(spec, {}).items()}

    return [
        Cell(
            *(env, agent, i, min(i + block, n_tasks), weights[agent], run),
            code_of(env, agent, run["oracle"]),
            resolved.get(env, {}).get(agent),
        )
        for env in manifest["env"]
        for agent in manifest["agents"]
        if agent not in manifest.get("left_out", {}).get(env, ())
        for i in range(0, n_tasks, block)
    ]


def versions() -> dict[str, str]:
    """Return the versions of the packages that compute the results here."""
    theirs = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"gents-gym": gents_gym.__version__, "python": platform.python_version(), **theirs}


def weights_hash(agent: Agent) -> str | None:
    """Return the sha256 of what an agent acts on besides its options; None if there is nothing.

    It covers the weights: those that its attribute ``model`` names (all bundled models of a preset, a model's id or
    a folder), or the paths in ``weight_files``. It also has name==version of the distributions in ``packages``, for
    agents of other libraries.
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
        paths = [folder / name for folder in model_folders(model) for name in ("config.json", "model.safetensors")]
    except InputError:  # "exact", or what else an agent may call its model
        return []
    return [path for path in paths if path.is_file()]
