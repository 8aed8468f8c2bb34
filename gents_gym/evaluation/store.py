"""The folder of an evaluation: cells' results in, whole and sealed files out, and back.

    manifest.json     what was asked for, with versions, commit and the weights' sha256
    cells/*.parquet   one file per finished cell; results are these files, all else follows from them
    times/*.json      the agent's own seconds in each cell, apart from what must be reproducible
    results.parquet, tasks.json, regret*.png   made of the cells at the end
    report/           made of the cells on demand, see report.py

A sealed file carries the sha256 of its content, so that one that was damaged or never ours is told by name instead of
being used or overwritten.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from PIL import Image

from gents_gym.checks import InputError
from gents_gym.evaluation.figures import SOFTWARE, draw_regret
from gents_gym.evaluation.grid import FORMAT, Cell, Manifest, cells, slug
from gents_gym.evaluation.rollout import Rollout, join
from gents_gym.files import PART, new_folder, remove_parts, write_whole
from gents_gym.types import digest

LABEL = b"gents_gym"  # key of the label in a Parquet file's schema


@dataclass(frozen=True)
class Evaluation:
    """What the folder of an evaluation holds."""

    manifest: Manifest
    records: dict[str, dict[str, Rollout]]  # by environment and agent; those whose tasks are all played
    task_hashes: dict[str, dict[str, str | None]]  # sha256 of each block of tasks, by environment and "first-stop"
    missing: tuple[Cell, ...] = ()  # cells not played yet
    failures: tuple[str, ...] = ()  # why, of those that this process tried


# -- sealed files


def _seal(label: Mapping[str, Any], content: str = "") -> str:
    return hashlib.sha256(json.dumps([label, content], sort_keys=True).encode()).hexdigest()


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as text, with its sha256."""
    return (json.dumps({**value, "sha256": _seal(value)}, indent=2) + "\n").encode()


def read_json(path: Path) -> dict[str, Any]:
    """Return an object that :func:`json_bytes` wrote, or raise where it is not whole."""
    try:
        value = json.loads(path.read_text())
        seal = value.pop("sha256")
    except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise _foreign(path) from error
    if seal != _seal(value) or value.get("format") != FORMAT:
        raise _foreign(path)
    return dict(value)


def table_bytes(table: pa.Table, label: Mapping[str, Any]) -> bytes:
    """Return a table as a Parquet file, with a label and the sha256 of both in its schema."""
    sealed = json.dumps({**label, "sha256": _seal(label, _content(table))})
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({LABEL: sealed}), sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def read_table(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """Return a table that :func:`table_bytes` wrote and its label, or raise where it is not whole."""
    try:
        table = pq.read_table(pa.BufferReader(path.read_bytes()))
        label = json.loads(table.schema.metadata[LABEL])
        seal = label.pop("sha256")
        whole = seal == _seal(label, _content(table)) and label["format"] == FORMAT
    except (OSError, ValueError, TypeError, AttributeError, KeyError, pa.ArrowException) as error:
        raise _foreign(path) from error
    if not whole:
        raise _foreign(path)
    return table, label


def _content(table: pa.Table) -> str:
    """Return the sha256 of the columns' names, types and values."""
    return digest(np.array([f"{field.name} {field.type}" for field in table.schema]), *_arrays(table))


def _arrays(table: pa.Table) -> Iterator[np.ndarray]:
    for column in table.columns:
        if pa.types.is_list(column.type):
            yield pc.list_value_length(column).to_numpy()
            column = pc.list_flatten(column)
        array = column.to_numpy()
        yield array.astype(str) if array.dtype == object else array


def _foreign(path: Path) -> InputError:
    return InputError(f"'{path}' is damaged or not of this evaluation: move it away, and start again")


# -- cells


def cell_bytes(cell: Cell, record: Rollout, tasks: str | None) -> bytes:
    """Return a cell's file: one row per task, with a list over steps for actions, rewards and each regret.

    Args:
        cell: What was played.
        record: What happened.
        tasks: The sha256 of the block of tasks, where the environment has tables.
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
    return table_bytes(pa.table(columns), {"format": FORMAT, "cell": asdict(cell), "task_sha256": tasks})


def _lists(steps: np.ndarray) -> pa.Array:
    offsets = np.arange(0, steps.size + 1, steps.shape[1], dtype=np.int32)
    values = pa.array(steps.ravel())
    # Parquet's own name for what is in a list, so that a table that is read and written again is the same.
    return pa.ListArray.from_arrays(offsets, values, type=pa.list_(pa.field("element", values.type)))


def _record(table: pa.Table) -> Rollout:
    """Return what a cell's table tells; sums over steps are done in double precision."""

    def steps(name: str, dtype: Any) -> np.ndarray:
        return pc.list_flatten(table[name]).to_numpy().reshape(len(table), -1).astype(dtype)

    regrets = [name for name in table.column_names if name.startswith("regret_")]
    return Rollout(
        steps("actions", np.int64),
        steps("rewards", np.float64),
        {name.removeprefix("regret_"): steps(name, np.float64) for name in regrets},
        tuple(table["task"].to_pylist()),
        table["privileged"][0].as_py(),
    )


def _cell_path(out: Path, cell: Cell) -> Path:
    return out / "cells" / f"{cell.name}.parquet"


def _time_path(out: Path, cell: Cell) -> Path:
    return out / "times" / f"{cell.name}.json"


def write_cell(out: Path, cell: Cell, data: bytes, seconds: float) -> None:
    """Write a finished cell; its own file comes last, and with it the cell is done."""
    _write(_time_path(out, cell), json_bytes({"format": FORMAT, "seconds": seconds}))
    _write(_cell_path(out, cell), data)


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
        write_whole(path, data)
    except OSError as error:
        rule = "what was written stays, and the same command goes on from it"
        raise InputError(f"'{path}' cannot be written ({error.strerror or error}); {rule}") from error


def is_done(out: Path, cell: Cell) -> bool:
    """Return whether the cell's file is there."""
    return _cell_path(out, cell).exists()


def _read_cell(out: Path, cell: Cell) -> tuple[pa.Table, Rollout, str | None]:
    table, label = read_table(_cell_path(out, cell))
    if label["cell"] != asdict(cell):
        raise _foreign(_cell_path(out, cell))
    path = _time_path(out, cell)
    seconds = read_json(path)["seconds"] if path.exists() else np.nan
    return table, replace(_record(table), seconds=seconds), label["task_sha256"]


# -- the folder


def open_folder(out: str | Path, manifest: Manifest) -> Path:
    """Return the folder, ready for the cells of ``manifest``.

    It is new or empty, or holds a run that differs in no more than its environments, agents and number of tasks, and
    nothing else; of any other nothing is touched.
    """
    out = Path(out)
    if not os.path.exists(out / "manifest.json"):  # Path.exists raises where a name cannot be
        new_folder("out", out)
    else:
        _check_same_run(out, read_json(out / "manifest.json"), manifest)
        _check_files(out, manifest)
        for folder in (out, out / "cells", out / "times"):
            remove_parts(folder)
    _write(out / "manifest.json", json_bytes(manifest))
    return out


def _check_same_run(out: Path, there: Manifest, here: Manifest) -> None:
    """Raise, naming what differs, unless the cells of both manifests belong together."""
    common = [spec for spec in here["agents"] if spec in there["weights"]]
    pairs = {
        **{name: (there["run"].get(name), value) for name, value in here["run"].items() if name != "versions"},
        **{name: (there["run"]["versions"].get(name), value) for name, value in here["run"]["versions"].items()},
        **{f"weights of {spec}": (there["weights"][spec], here["weights"][spec]) for spec in common},
    }
    differ = [f"{name} is {old!r} there, {new!r} here" for name, (old, new) in pairs.items() if old != new]
    if differ:
        raise InputError(f"out must be a new folder or that of the same run, got '{out}': {'; '.join(differ)}")


def _check_files(out: Path, manifest: Manifest) -> None:
    """Raise, naming the file, where the folder holds one that is not whole or not of this run."""
    for path in sorted(path for path in out.rglob("*") if not path.is_dir()):
        place = path.relative_to(out).as_posix()
        if path.name.startswith(".") and path.name.endswith(PART):
            continue  # a killed writer's
        if place.startswith("report/"):
            continue  # made of the results, and watched by who makes it
        if fnmatch(place, "cells/*.parquet"):
            cell = _read_exactly(path)["cell"]
            if Cell(**cell).name != path.stem or cell["run"] != manifest["run"]:
                raise _foreign(path)
        elif place == "results.parquet":
            _read_exactly(path)
        elif fnmatch(place, "times/*.json") or place in ("manifest.json", "tasks.json"):
            read_json(path)
        elif fnmatch(place, "regret*.png"):
            _check_figure(path)
        else:
            raise _foreign(path)


def _read_exactly(path: Path) -> dict[str, Any]:
    """Return a Parquet file's label, or raise unless every byte is as this version writes it."""
    table, label = read_table(path)
    if table_bytes(table, label) != path.read_bytes():
        raise _foreign(path)
    return label


def _check_figure(path: Path) -> None:
    try:
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            image.verify()  # the checksums of its parts
            ours = image.info.get("Software") == SOFTWARE
    except (OSError, ValueError, SyntaxError) as error:  # as Pillow calls a broken PNG
        raise _foreign(path) from error
    if not ours:
        raise _foreign(path)


def load_results(out: str | Path) -> Evaluation:
    """Return what was found, from the files alone; agents with tasks left to play are not in the records."""
    return _load(Path(out))[0]


def finish(out: Path) -> Evaluation:
    """Write what follows from the cells: the results in one file, the tasks' hashes and the figures."""
    found, tables = _load(out)
    label = {"format": FORMAT, "manifest": found.manifest, "tasks": found.task_hashes}
    if tables:
        whole = pa.concat_tables(tables, promote_options="default").replace_schema_metadata(None).combine_chunks()
        _write(out / "results.parquet", table_bytes(whole, label))
    if not found.missing:
        _write(out / "tasks.json", json_bytes({"format": FORMAT, "sha256_of_tasks": found.task_hashes}))
    figures = {_figure_name(env, found.manifest): env for env in found.records}
    for path in set(out.glob("regret*.png")) - {out / name for name in figures}:
        path.unlink()  # of another set of environments
    for name, env in figures.items():
        _write(out / name, draw_regret(found.records[env], env))
    return found


def _figure_name(env: str, manifest: Manifest) -> str:
    if len(manifest["env"]) == 1:
        return "regret.png"
    return f"regret-{slug(env)}--{_seal({'env': env})[:6]}.png"


def _load(out: Path) -> tuple[Evaluation, list[pa.Table]]:
    manifest = read_json(out / "manifest.json")
    grid = cells(manifest)
    missing = tuple(cell for cell in grid if not is_done(out, cell))
    lacking = {(cell.env, cell.agent) for cell in missing}
    parts: dict[tuple[str, str], list[Rollout]] = {}
    hashes: dict[str, dict[str, str | None]] = {}
    tables = []
    for cell in grid:
        if (cell.env, cell.agent) not in lacking:
            table, record, task_hash = _read_cell(out, cell)
            if hashes.setdefault(cell.env, {}).setdefault(f"{cell.first}-{cell.stop}", task_hash) != task_hash:
                raise InputError(f"'{_cell_path(out, cell)}' was played on other tasks than the other agents' cells")
            parts.setdefault((cell.env, cell.agent), []).append(record)
            tables.append(table)
    records: dict[str, dict[str, Rollout]] = {}
    for (env, agent), pieces in parts.items():
        records.setdefault(env, {})[agent] = join(pieces)
    return Evaluation(manifest, records, hashes, missing), tables
