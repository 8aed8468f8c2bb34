"""Reads and writes the folder of an evaluation; all files are whole and sealed.

    manifest.json     the requested evaluation, with versions, commit and the weights' sha256
    cells/*.parquet   one file per finished cell; these are the results, all else is derived
    times/*.json      the agent's own seconds in each cell, kept apart because they are not reproducible
    results.parquet, tasks.json   made from the cells at the end
    regret*.png, report/   drawn from the cells by gents_gym.report

On the next start, a file that is damaged or not ours is named in an error.
"""

import html
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gents_gym.checks import InputError, check_choice
from gents_gym.drawing.style import Look, looks
from gents_gym.evaluation.grid import CELL, FORMAT, MANIFEST, Cell, Manifest, cells, check_manifest, merge, slug
from gents_gym.evaluation.regret import REGRETS
from gents_gym.evaluation.rollout import Rollout, join
from gents_gym.evaluation.sealed import (
    check_figure,
    foreign,
    json_bytes,
    read_exactly,
    read_json,
    read_table,
    seal,
    table_bytes,
)
from gents_gym.files import as_path, held, is_part, new_folder, own_folder, remove_parts, write_whole
from gents_gym.schema import check_schema
from gents_gym.words import count

if TYPE_CHECKING:
    import pandas as pd

    from gents_gym.drawing.canvas import Picture

FIGURE = re.compile(r"regret(-[\w.-]*--[0-9a-f]{6})?\.png")  # as figure_name makes them
LABEL = {"format": str, "cell": CELL, "task_sha256": str | None}
TIME = {"cell?": str, "seconds": lambda value: isinstance(value, float) and 0 <= value < np.inf}
TASKS = {"sha256_of_tasks": {str: {str: str | None}}}
ELEMENT = pa.field("element", pa.float32())  # Parquet's own name for the items of a list
COLUMNS = {  # columns of a cell's table, without the regrets
    "env": pa.string(),
    "agent": pa.string(),
    "privileged": pa.bool_(),
    "task": pa.int64(),
    "actions": pa.list_(ELEMENT.with_type(pa.int32())),
    "rewards": pa.list_(ELEMENT),
}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """What the folder of an evaluation holds."""

    manifest: Manifest
    records: dict[str, dict[str, Rollout]]  # by environment and agent, for those whose tasks are all played
    task_hashes: dict[str, dict[str, str | None]]  # sha256 of each block of tasks, by environment and "first-stop"
    missing: tuple[Cell, ...] = ()  # cells not played yet
    failures: tuple[str, ...] = ()  # the reasons for cells that this process tried

    @property
    def looks(self) -> dict[str, Look]:
        """The agents' styles in figures, the same whichever agents are shown."""
        return looks({agent: agent in self.manifest["privileged"] for agent in self.manifest["agents"]})

    def only(self, agents: Sequence[str]) -> "Evaluation":
        """Return the records of only these agents, in this order."""
        if isinstance(agents, str) or not agents:
            raise InputError(f"agents must name at least one of the evaluation's, got {agents!r}")
        chosen = [check_choice("agent", agent, self.manifest["agents"]) for agent in agents]
        records = {env: {name: each[name] for name in chosen if name in each} for env, each in self.records.items()}
        missing = tuple(cell for cell in self.missing if cell.agent in chosen)
        return replace(self, records={env: each for env, each in records.items() if each}, missing=missing)

    def to_pandas(self, steps: bool = False) -> "pd.DataFrame":
        """Return a data frame with a row for each environment, agent and task: its total reward and regrets.

        Args:
            steps: Return a row for each decision instead, with ``step``, from 1, and ``action``.
        """
        from gents_gym.evaluation.frames import records_frame  # pandas is optional

        return records_frame(self.records, steps)

    def plot(self, regrets: str | Sequence[str] = (), env: str | None = None) -> "Picture":
        """Return a figure of the cumulative regrets, with a name at the end of each curve.

        ``figure.savefig("regret.pdf")`` writes it to a file.

        Args:
            regrets: One of "oracle", "expected", "best" and "reward", or several, with a panel each; "all" draws the
                three regrets; empty: the one that matters most.
            env: The environment to draw; None: the only one.
        """
        from gents_gym.evaluation.pictures import regret_figure  # Matplotlib is heavy

        if not self.records:
            raise InputError("results must hold an agent that has played all its tasks to be plotted, got none")
        if env is None and len(self.records) > 1:
            raise InputError(f"env must name one of the environments, {', '.join(self.records)}, got none")
        env = next(iter(self.records)) if env is None else check_choice("env", env, self.records)
        return regret_figure(self.records[env], env, regrets, styles=self.looks)

    def __repr__(self) -> str:
        agents = ", ".join(f"{env}: {count(len(each), 'agent')}" for env, each in self.records.items())
        missing = f"; {len(self.missing)} blocks of tasks are missing" if self.missing else ""
        return f"Evaluation({agents or 'no agent is through'}, {count(self.manifest['tasks'], 'task')}{missing})"

    def _repr_html_(self) -> str:
        from gents_gym.evaluation.frames import summary_html  # not needed to play

        what = f"{count(self.manifest['tasks'], 'task')}: totals per task, mean ± s.e."
        tables = [summary_html(f"{env}, {what}", each) for env, each in self.records.items()]
        return "".join(tables) or f"<p>{html.escape(repr(self))}</p>"


def cell_bytes(cell: Cell, record: Rollout, tasks: str | None) -> bytes:
    """Return a cell's file: one row per task, with a list over steps for actions, rewards and each regret.

    Args:
        cell: What was played.
        record: What happened.
        tasks: The sha256 of the block of tasks, if the environment has tables.
    """
    n_tasks = len(record.actions)
    columns = {
        "env": [cell.env] * n_tasks,
        "agent": [cell.agent] * n_tasks,
        "privileged": [record.privileged] * n_tasks,
        "task": list(record.indices),
        "actions": _lists(record.actions.astype(np.int32)),
        "rewards": _lists(record.rewards.astype(np.float32)),
    }
    for name, steps in record.regret.items():
        columns[f"regret_{name}"] = _lists(steps.astype(np.float32))
    if record.propensities is not None:
        columns["propensities"] = _lists(record.propensities.astype(np.float32))
    return table_bytes(pa.table(columns), {"format": FORMAT, "cell": cell.label, "task_sha256": tasks})


def _lists(steps: np.ndarray) -> pa.Array:
    offsets = np.arange(0, steps.size + 1, steps.shape[1], dtype=np.int32)
    values = pa.array(steps.ravel())
    # Parquet's own name for the items of a list, so that a table that is read and written again stays the same.
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(pa.field("element", values.type)))


def _record(table: pa.Table) -> Rollout:
    """Return the record in a cell's table; sums over steps are computed in double precision."""

    def steps(name: str, dtype: Any) -> np.ndarray:
        return pc.list_flatten(table[name]).to_numpy().reshape(len(table), -1).astype(dtype)

    regrets = [name for name in table.column_names if name.startswith("regret_")]
    return Rollout(
        steps("actions", np.int64),
        steps("rewards", np.float64),
        {name.removeprefix("regret_"): steps(name, np.float64) for name in regrets},
        tuple(table["task"].to_pylist()),
        table["privileged"][0].as_py(),
        propensities=steps("propensities", np.float64) if "propensities" in table.column_names else None,
    )


def _cell_path(out: Path, cell: Cell) -> Path:
    return out / "cells" / f"{cell.name}.parquet"


def _time_path(out: Path, cell: Cell) -> Path:
    return out / "times" / f"{cell.name}.json"


def write_cell(out: Path, cell: Cell, data: bytes, seconds: float) -> None:
    """Write a finished cell; its own file is written last and marks the cell as done."""
    for path in (_time_path(out, cell), _cell_path(out, cell)):
        own_folder(path.parent)
    write_made(_time_path(out, cell), json_bytes({"format": FORMAT, "cell": cell.name, "seconds": seconds}))
    write_made(_cell_path(out, cell), data)


def write_made(path: Path, data: bytes) -> None:
    """Write a file of the folder whole. If that fails, the error says what to do."""
    try:
        write_whole(path, data)
    except OSError as error:
        rule = "what was written stays, and the same command continues from it"
        raise InputError(f"'{path}' cannot be written ({error.strerror or error}); {rule}") from error


def is_done(out: Path, cell: Cell) -> bool:
    """Return whether the cell's file is there."""
    return _cell_path(out, cell).exists()


def _read_cell(path: Path) -> tuple[Cell, pa.Table, str | None]:
    """Return what a cell's file holds. Raises if it differs from what :func:`cell_bytes` writes."""
    table, label = read_table(path)
    try:
        check_schema(label, LABEL)
        cell = Cell(**label["cell"])
        _check_table(table, cell, label["task_sha256"] is not None)
    except ValueError as error:
        raise foreign(path) from error
    if cell.name != path.stem:
        raise foreign(path)
    return cell, table, label["task_sha256"]


def _check_table(table: pa.Table, cell: Cell, has_regret: bool) -> None:
    """Raise a ValueError unless the columns are a cell's, its tasks are in order, and all lists have one length."""
    kinds = {field.name: field.type for field in table.schema}
    names = [name.removeprefix("regret_") for name in kinds if name.startswith("regret_")]
    numbers = {f"regret_{name}": pa.list_(ELEMENT) for name in names}
    if cell.run.get("propensities", False):
        numbers["propensities"] = pa.list_(ELEMENT)
    known = (REGRETS[:1], REGRETS) if has_regret else ((),)
    if kinds != {**COLUMNS, **numbers} or tuple(names) not in known:
        raise ValueError(f"its columns are {kinds}")
    for name, value in (("env", cell.env), ("agent", cell.agent)):
        if table[name].unique().to_pylist() != [value]:
            raise ValueError(f"its {name} is another")
    if table["task"].to_pylist() != list(range(cell.first, cell.stop)) or len(table["privileged"].unique()) != 1:
        raise ValueError("its tasks are others")
    lists = [name for name, kind in kinds.items() if pa.types.is_list(kind)]
    lengths = {length for name in lists for length in pc.list_value_length(table[name]).to_pylist()}
    if len(lengths) != 1 or lengths & {0, None}:
        raise ValueError("its steps differ in number")
    if any(column.null_count for column in table.columns) or any(pc.list_flatten(table[n]).null_count for n in lists):
        raise ValueError("it has gaps")


def _read_time(path: Path) -> float:
    value = read_json(path, TIME)
    if value.get("cell", path.stem) != path.stem:  # not all versions named the cell
        raise foreign(path)
    return float(value["seconds"])


@contextmanager
def open_folder(out: str | Path, manifest: Manifest) -> Iterator[tuple[Path, Manifest]]:
    """Hold the folder for the cells of ``manifest``; yield it with the manifest of everything that it will hold.

    The folder must be new or empty, or hold only a run that differs in nothing but environments, agents, their code and
    weights, and the number of tasks; any other folder is refused unchanged. A lost manifest is made again.
    """
    out = as_path("out", out)
    if not any(os.path.exists(out / name) for name in ("manifest.json", "cells")):  # a name may be none at all
        new_folder("out", out)
    with held("out", out):
        if (out / "manifest.json").exists():
            there = _read_manifest(out)
            _check_same_run(out, there, manifest)
            manifest = merge(there, manifest, lambda cell: is_done(out, cell))
        _check_files(out, manifest)
        for folder in (out, out / "cells", out / "times"):
            remove_parts(folder)
        write_made(out / "manifest.json", json_bytes(manifest))
        yield out, manifest


def _read_manifest(out: Path, name: str = "out") -> Manifest:
    path = out / "manifest.json"
    if not path.exists():
        raise InputError(f"{name} must be the folder of an evaluation, with a manifest.json, got '{out}'")
    manifest = read_json(path, MANIFEST)
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise foreign(path) from error
    return manifest


def _check_same_run(out: Path, there: Manifest, here: Manifest) -> None:
    """Raise, naming what differs, unless the cells of both manifests belong together."""
    names = [name for name in {**here["run"], **there["run"]} if name != "versions"]
    pairs = {
        **{name: (there["run"].get(name), here["run"].get(name)) for name in names},
        **{name: (there["run"]["versions"].get(name), value) for name, value in here["run"]["versions"].items()},
    }
    differ = [f"{name} is {old!r} there, {new!r} here" for name, (old, new) in pairs.items() if old != new]
    if differ:
        raise InputError(f"out must be a new folder or that of the same run, got '{out}': {'; '.join(differ)}")


def _check_files(out: Path, manifest: Manifest) -> None:
    """Raise, naming the file, if the folder holds one that is not whole or not of this run."""
    for path in sorted(out.rglob("*")):
        place = path.relative_to(out).as_posix()
        if path.is_symlink():
            raise foreign(path)
        if path.is_dir() or is_part(path):
            continue  # the latter is left by a killed writer
        if place.startswith("report/"):
            continue  # derived from the results, and checked by the code that makes it
        if fnmatch(place, "cells/*.parquet"):
            read_exactly(path)
            if _read_cell(path)[0].run != manifest["run"]:
                raise foreign(path)
        elif place == "results.parquet":
            read_exactly(path)
        elif fnmatch(place, "times/*.json"):
            _read_time(path)
        elif place == "manifest.json":
            _read_manifest(out)
        elif place == "tasks.json":
            read_json(path, TASKS)
        elif FIGURE.fullmatch(place):
            check_figure(path)
        else:
            raise foreign(path)


def load_results(out: str | Path, name: str = "out") -> Evaluation:
    """Return the results, read from the files; agents with tasks left to play are not in the records.

    Args:
        out: The folder.
        name: What errors call the folder.
    """
    out = as_path(name, out)
    return _load(out, _read_manifest(out, name))[0]


def finish(out: Path, manifest: Manifest) -> Evaluation:
    """Write what is derived from the cells: all results in one file and the tasks' hashes; remove outdated figures."""
    found, tables = _load(out, manifest)
    files = {}
    if tables:
        whole = pa.concat_tables(tables, promote_options="default").replace_schema_metadata(None).combine_chunks()
        label = {"format": FORMAT, "manifest": found.manifest, "tasks": found.task_hashes}
        files["results.parquet"] = table_bytes(whole, label)
    if not found.missing:
        files["tasks.json"] = json_bytes({"format": FORMAT, "sha256_of_tasks": found.task_hashes})
    results = out / "results.parquet"
    same = results.exists() and results.read_bytes() == files.get(results.name)
    for path in out.iterdir():
        figure, made = FIGURE.fullmatch(path.name), path.name in ("results.parquet", "tasks.json")
        if (figure and not same) or (made and path.name not in files):
            path.unlink()  # made for an earlier command
    for name, data in files.items():
        write_made(out / name, data)
    return found


def figure_name(env: str, manifest: Manifest) -> str:
    """Return the name of the figure of an environment's regrets."""
    if len(manifest["env"]) == 1:
        return "regret.png"
    return f"regret-{slug(env)}--{seal({'env': env})[:6]}.png"


def cell_seconds(out: Path, cell: Cell) -> float:
    """Return the agent's own seconds in a cell; NaN if they are not known."""
    path = _time_path(out, cell)
    return _read_time(path) if path.exists() else np.nan


def _load(out: Path, manifest: Manifest) -> tuple[Evaluation, list[pa.Table]]:
    grid = cells(manifest)
    missing = tuple(cell for cell in grid if not is_done(out, cell))
    lacking = {cell.pair for cell in missing}
    parts: dict[tuple[str, str], list[Rollout]] = {}
    hashes: dict[str, dict[str, str | None]] = {}
    tables = []
    for cell in grid:
        if cell.pair not in lacking:
            found, table, task_hash = _read_cell(_cell_path(out, cell))
            if found != cell:
                raise foreign(_cell_path(out, cell))
            if hashes.setdefault(cell.env, {}).setdefault(f"{cell.first}-{cell.stop}", task_hash) != task_hash:
                raise InputError(f"'{_cell_path(out, cell)}' was played on other tasks than the other agents' cells")
            pieces = parts.setdefault(cell.pair, [])
            # For an environment without tables.
            stream = f"{cell.env}, seed {cell.run['seed']}, {cell.run['split']} split"
            pieces.append(replace(_record(table), seconds=cell_seconds(out, cell), tasks=(task_hash or stream,)))
            if pieces[0].regret.keys() != pieces[-1].regret.keys():
                raise foreign(_cell_path(out, cell))
            tables.append(table)
    records: dict[str, dict[str, Rollout]] = {}
    for (env, agent), pieces in parts.items():
        remarks = tuple(manifest.get("remarks", {}).get(env, {}).get(agent, ()))
        records.setdefault(env, {})[agent] = replace(join(pieces), remarks=remarks)
    return Evaluation(manifest, records, hashes, missing), tables
