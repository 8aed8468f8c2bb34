import errno
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from PIL import Image

from gents_gym import EvaluationConfig, InputError, evaluate, load_results, rollout
from gents_gym.evaluation import cell as cell_module
from gents_gym.evaluation import grid, harness, store
from gents_gym.evaluation.cell import Played, play
from gents_gym.evaluation.environments import make_envs
from gents_gym.evaluation.grid import cells, plan
from gents_gym.evaluation.regret import REGRETS
from gents_gym.evaluation.sealed import check_figure, read_table, table_bytes
from gents_gym.files import PART
from gents_gym.report.figures import draw_regret
from gents_gym.tasks.synthetic import Synthetic

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"
EDITED = """
import numpy as np

class Same:
    def reset(self, info, rngs):
        self.n_tasks = len(info)

    def act(self, context):
        return np.full(self.n_tasks, {action})

    def observe(self, context, action, outcome):
        pass

    def fit(self, rows):
        return self
"""


def config(*agents, **changes):
    return EvaluationConfig(agents, **{"env": (SMALL,), "tasks": 7, "block": 3, **changes})


def snapshot(out):
    """Return the bytes of all files but the times."""
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file() and p.parent.name != "times"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished") / "out"
    evaluate(config("linucb", "oracle"), out, workers=1)
    return out


@pytest.fixture
def out(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "out")


@pytest.fixture(scope="module")
def figure(finished):
    return draw_regret(load_results(finished).records[SMALL], SMALL)


def test_results_are_what_rollouts_give(finished):
    found = load_results(finished)
    assert found.missing == found.failures == ()
    for agent in ("linucb", "oracle"):
        record = found.records[SMALL][agent]
        played = rollout(make_envs(SMALL, 7), agent)
        assert record.indices == tuple(range(7))
        assert record.privileged == (agent == "oracle")
        assert np.array_equal(record.actions, played.actions)
        assert np.array_equal(record.rewards, played.rewards)
        assert record.rewards.dtype == np.float64
        for name, steps in played.regret.items():
            assert np.array_equal(record.regret[name], np.float32(steps))
        assert 0 < record.seconds_per_decision < 1
    tasks = Synthetic(horizon=20, n_actions=3)
    expected = {f"{a}-{b}": tasks.sample(0, range(a, b)).content_hash for a, b in ((0, 3), (3, 6), (6, 7))}
    assert found.task_hashes == {SMALL: expected}
    assert json.loads((finished / "tasks.json").read_text())["sha256_of_tasks"] == {SMALL: expected}


def test_one_file_has_all_rows_and_the_cells_have_them_too(finished):
    rows = pq.read_table(finished / "results.parquet").to_pylist()
    assert [(row["agent"], row["task"]) for row in rows] == [(a, i) for a in ("linucb", "oracle") for i in range(7)]
    apart = pa.concat_tables(
        pq.read_table(finished / "cells" / f"{cell.name}.parquet") for cell in cells(load_results(finished).manifest)
    )
    assert apart.to_pylist() == rows
    assert {row["env"] for row in rows} == {SMALL}
    label = json.loads(pq.read_schema(next((finished / "cells").iterdir())).metadata[b"gents_gym"])
    assert label["cell"]["run"] == load_results(finished).manifest["run"]
    assert label["task_sha256"] in load_results(finished).task_hashes[SMALL].values()


def test_no_file_tells_when_or_how_fast_it_was_made(finished, tmp_path):
    evaluate(config("linucb", "oracle"), tmp_path / "again", workers=1)
    assert snapshot(tmp_path / "again") == snapshot(finished)


@pytest.mark.parametrize(
    "pattern", ["manifest.json", "tasks.json", "results.parquet", "regret.png", "cells/*", "times/*"]
)
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_a_damaged_file_is_named_and_left_alone(out, figure, pattern, damage):
    (out / "regret.png").write_bytes(figure)
    path = sorted(out.glob(pattern))[0]
    data = path.read_bytes()
    flipped = bytearray(data)
    flipped[np.random.default_rng(len(data)).integers(len(data))] ^= 1
    path.write_bytes({"flip": bytes(flipped), "cut": data[:-9], "empty": b"", "other": b"something else"}[damage])
    before = snapshot(out)
    with pytest.raises(InputError, match=f"'{path}' is damaged or not of this evaluation"):
        evaluate(config("linucb", "oracle", "random"), out, workers=1)
    assert snapshot(out) == before


def test_a_foreign_file_is_named_and_left_alone(out, figure, tmp_path):
    evaluate(config("linucb", seed=1), tmp_path / "other", workers=1)
    theirs = sorted((tmp_path / "other" / "cells").iterdir())[0]
    ours = sorted((out / "cells").iterdir())[0]
    for name, data in (
        ("notes.txt", b"mine"),
        (f"cells/{theirs.name}", theirs.read_bytes()),  # another seed's
        ("cells/renamed.parquet", ours.read_bytes()),
        ("cells/notes.txt", b"mine"),
        ("times/renamed.json", sorted((out / "times").iterdir())[0].read_bytes()),
        ("regret-keep.png", figure),
        ("cells/results.parquet", (out / "results.parquet").read_bytes()),
        ("more/manifest.json", (out / "manifest.json").read_bytes()),
    ):
        path = out / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
        with pytest.raises(InputError, match=f"'{path}' is damaged or not of this evaluation"):
            evaluate(config("linucb", "oracle"), out, workers=1)
        assert path.read_bytes() == data
        path.unlink()
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(InputError, match=f"'{ours}' is damaged or not of this evaluation"):
        load_results(out)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"name": "a web application"}')
    with pytest.raises(InputError, match=r"manifest.json' is damaged or not of this evaluation"):
        evaluate(config("linucb"), tmp_path, workers=1)
    (tmp_path / "manifest.json").write_bytes(store.json_bytes({"format": store.FORMAT, "seconds": 1}))
    with pytest.raises(InputError, match=r"manifest.json' is damaged or not of this evaluation"):
        load_results(tmp_path)
    with pytest.raises(InputError, match=r"out must be the folder of an evaluation, .* got '.*nowhere'"):
        load_results(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 1}, "seed is 0 there, 1 here"),
        ({"split": "train"}, "split is 'test' there, 'train' here"),
        ({"oracle": "logistic(C=1)"}, r"oracle is None there, 'logistic\(C=1\)' here"),
        ({"block": 2}, "block is 3 there, 2 here"),
        ({"training_actions": 9, "seed": 1}, "seed is 0 there, 1 here; training_actions is 10000 there, 9 here"),
    ],
)
def test_another_run_is_refused_and_says_what_differs(out, changes, message):
    before = snapshot(out)
    with pytest.raises(InputError, match=f"out must be a new folder or that of the same run, got '.*': {message}$"):
        evaluate(config("linucb", "oracle", **changes), out, workers=1)
    assert snapshot(out) == before


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("run", "versions", "numpy"), "numpy is '0' there"),
        (("run", "commit"), "commit is '0' there"),
    ],
)
def test_another_package_is_refused(out, place, message):
    manifest = store.read_json(out / "manifest.json", grid.MANIFEST)
    inner = manifest
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "0"
    (out / "manifest.json").write_bytes(store.json_bytes(manifest))
    with pytest.raises(InputError, match=message):
        evaluate(config("linucb", "oracle"), out, workers=1)


def test_a_run_grows_and_shrinks_without_playing_again(out, tmp_path, monkeypatch):
    other = "gents_gym/Synthetic-v0(horizon=5)"
    larger = config("random", "oracle", "linucb", tasks=9, env=(SMALL, other))
    evaluate(larger, tmp_path / "fresh", workers=1)
    kept = snapshot(out)
    played = []
    monkeypatch.setattr(
        "gents_gym.evaluation.harness.play", lambda cell, owner, given: played.append(cell) or play(cell, owner)
    )
    found = evaluate(larger, out, workers=1)
    assert len(played) == 18 - 2 * 2  # the two whole blocks of two agents were there
    fresh = snapshot(tmp_path / "fresh")
    assert {name: data for name, data in snapshot(out).items() if name in fresh} == fresh
    assert list(found.records[other]) == ["random", "oracle", "linucb"]
    played.clear()
    again = evaluate(config("linucb", "oracle"), out, workers=1)
    assert played == []
    made = {Path("manifest.json"), Path("results.parquet"), Path("tasks.json")}
    assert {name: data for name, data in snapshot(out).items() if name in kept.keys() - made} == {
        name: data for name, data in kept.items() if name not in made
    }
    assert list(again.records[SMALL]) == ["linucb", "oracle"]
    assert {cell.pair for cell in again.missing} == {
        (SMALL, "random"), (other, "random"), (other, "oracle"), (other, "linucb")  # whose last blocks had more tasks
    }  # fmt: skip


def test_one_more_agent_keeps_the_others(out, monkeypatch):
    before = load_results(out)
    monkeypatch.setattr("gents_gym.evaluation.harness.play", lambda cell, owner, given: play(cell, owner))
    found = evaluate(config("random"), out, workers=1)
    assert list(found.records[SMALL]) == ["random", "linucb", "oracle"]
    assert found.manifest["privileged"] == ["oracle"]
    assert found.missing == ()
    for agent in ("linucb", "oracle"):
        assert np.array_equal(found.records[SMALL][agent].actions, before.records[SMALL][agent].actions)
    assert set(pq.read_table(out / "results.parquet")["agent"].to_pylist()) == {"random", "linucb", "oracle"}
    assert list(load_results(out).only(["oracle", "random"]).records[SMALL]) == ["oracle", "random"]
    with pytest.raises(InputError, match="unknown agent 'lints'"):
        load_results(out).only(["lints"])
    with pytest.raises(InputError, match="agents must name at least one of the evaluation's, got 'linucb'"):
        load_results(out).only("linucb")


def test_pairs_that_nobody_asked_for_are_not_missing(out):
    other = "gents_gym/Synthetic-v0(horizon=5)"
    found = evaluate(config("linucb", env=(other,)), out, workers=1)
    assert found.missing == ()
    assert {env: list(records) for env, records in found.records.items()} == {
        other: ["linucb"], SMALL: ["linucb", "oracle"]
    }  # fmt: skip
    assert load_results(out).manifest["left_out"] == {other: ["oracle"]}
    found = evaluate(config("oracle", env=(other,)), out, workers=1)
    assert "left_out" not in found.manifest
    assert {*found.records[other]} == {"linucb", "oracle"}


def test_a_killed_writers_leftovers_are_removed(out):
    for name in (".manifest.json.abc", "cells/.x.parquet.abc", "times/.x.json.abc"):
        (out / f"{name}{PART}").write_bytes(b"half")
    theirs = out / ".film.mkv.part"
    theirs.touch()
    with pytest.raises(InputError, match=f"'{theirs}' is damaged or not of this evaluation"):
        evaluate(config("linucb", "oracle"), out, workers=1)
    assert len(list(out.rglob(".*"))) == 4
    theirs.unlink()
    evaluate(config("linucb", "oracle"), out, workers=1)
    assert not list(out.rglob(".*"))


def test_a_time_is_of_its_own_cell(out):
    one, other = sorted((out / "times").iterdir())[:2]
    assert json.loads(one.read_text())["cell"] == one.stem
    other.write_bytes(one.read_bytes())
    with pytest.raises(InputError, match=f"'{other}' is damaged or not of this evaluation"):
        load_results(out)


def test_a_lost_manifest_is_made_again(out, finished, monkeypatch):
    monkeypatch.setattr(harness, "play", lambda *_: pytest.fail("played again"))
    (out / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"parquet' is damaged or not of this evaluation"):
        evaluate(config("linucb", "oracle", seed=1), out, workers=1)
    assert not (out / "manifest.json").exists()
    evaluate(config("linucb", "oracle"), out, workers=1)
    assert snapshot(out) == snapshot(finished)


def test_a_folder_is_filled_by_one_evaluation_at_a_time(out, finished):
    with store.open_folder(out, plan(config("linucb", "oracle"))):
        with pytest.raises(InputError, match=r"out must have one writer at a time, got '.*', which another has open"):
            evaluate(config("linucb", "random"), out, workers=1)
        assert load_results(out).missing == ()  # reading is free
    evaluate(config("linucb", "oracle"), out, workers=1)
    assert snapshot(out) == snapshot(finished)


def test_storing_draws_nothing_and_figures_go_with_their_results(out, figure):
    assert not list(out.glob("*.png"))
    (out / "regret.png").write_bytes(figure)
    evaluate(config("linucb", "oracle"), out, workers=1)
    assert (out / "regret.png").read_bytes() == figure
    evaluate(config("linucb"), out, workers=1)
    assert (out / "regret.png").read_bytes() == figure
    evaluate(config("random"), out, workers=1)
    assert not list(out.glob("*.png"))


def test_a_figure_is_read_as_png_alone(tmp_path, monkeypatch):
    path = tmp_path / "regret.png"
    Image.new("L", (1, 1)).save(path, "BMP")
    monkeypatch.setitem(Image.OPEN, "BMP", (lambda *_: pytest.fail("read as BMP"), None))
    with pytest.raises(InputError, match=f"'{path}' is damaged or not of this evaluation"):
        check_figure(path)


def test_a_file_that_comes_during_a_run_stays(out, figure):
    theirs = out / "regret-keep.png"
    (out / "regret.png").write_bytes(figure)
    with store.open_folder(out, plan(config("random"))) as (folder, manifest):
        theirs.write_bytes(b"mine")
        store.finish(folder, manifest)
    assert theirs.read_bytes() == b"mine"
    assert not (out / "regret.png").exists()


def test_an_agent_is_played_again_when_its_code_or_weights_change(tmp_path, monkeypatch):
    path, played = tmp_path / "their_edits.py", []
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the edits are of the same size and second
    monkeypatch.setattr(harness, "play", lambda cell, owner, given: played.append(cell.agent) or play(cell, owner))

    def results(action):
        path.write_text(EDITED.format(action=action))
        sys.modules.pop("their_edits", None)  # as in a new process
        played.clear()
        found = evaluate(config("their_edits:Same", "linucb", tasks=2), tmp_path / "out", workers=1)
        return found.records[SMALL]["their_edits:Same"].actions

    assert (results(0) == 0).all()
    assert played == ["their_edits:Same", "linucb"]
    assert (results(1) == 1).all()
    assert played == ["their_edits:Same"]
    assert (results(0) == 0).all()
    assert played == []  # the old cells were still there
    for module in (grid, cell_module):
        monkeypatch.setattr(module, "weights_hash", lambda agent: "0" * 64)
    results(0)
    assert played == ["their_edits:Same", "linucb"]


def test_a_missing_time_is_no_number(out):
    shutil.rmtree(out / "times")
    record = load_results(out).records[SMALL]["linucb"]
    assert np.isnan(record.seconds_per_decision)


@pytest.mark.parametrize("at", [0, 2, 5, 9])
def test_a_full_disk_loses_nothing(tmp_path, finished, monkeypatch, at):
    out, writes = tmp_path / "out", []
    original = store.write_whole

    def write(path, data):
        writes.append(path)
        if len(writes) > at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(path, data)

    monkeypatch.setattr(store, "write_whole", write)
    with pytest.raises(InputError, match=r"'.*' cannot be written \(No space left on device\); what was written stays"):
        evaluate(config("linucb", "oracle"), out, workers=1)
    monkeypatch.undo()
    evaluate(config("linucb", "oracle"), out, workers=1)
    assert snapshot(out) == snapshot(finished)


def test_cells_of_a_block_must_agree_on_the_tasks(out):
    manifest = store.read_json(out / "manifest.json", grid.MANIFEST)
    cell = cells(manifest)[-1]
    path = out / "cells" / f"{cell.name}.parquet"
    table, label = store.read_table(path)
    path.write_bytes(store.table_bytes(table, {**label, "task_sha256": "0" * 64}))
    with pytest.raises(InputError, match=f"'{path}' was played on other tasks"):
        load_results(out)


def test_an_agent_that_never_played_is_forgotten_by_the_next_command(out, monkeypatch):
    monkeypatch.setattr(harness, "play", lambda cell, *_: Played(cell, error="no"))
    found = evaluate(config("random"), out, workers=1)
    assert list(found.records[SMALL]) == ["linucb", "oracle"]
    assert {cell.agent for cell in found.missing} == {"random"}
    assert {p.name for p in out.iterdir()} == {"manifest.json", "cells", "times", "results.parquet"}
    found = evaluate(config("linucb"), out, workers=1)
    assert found.missing == ()
    assert found.manifest["agents"] == ["linucb", "oracle"]


def test_an_unfinished_agent_is_missing_from_the_records(out):
    cell = cells(plan(config("linucb", "oracle")))[1]
    (out / "cells" / f"{cell.name}.parquet").unlink()
    found = load_results(out)
    assert list(found.records[SMALL]) == ["oracle"]
    assert found.missing == (cell,)


# -- what others may have put there


def forge(path, change):
    """Write a file again, changed but rightly sealed."""
    if path.suffix == ".json":
        value = json.loads(path.read_text())
        del value["sha256"]
        path.write_bytes(store.json_bytes(change(value)))
    else:
        table, label = store.read_table(path)
        table, label = change((table, label))
        path.write_bytes(store.table_bytes(table, label))


def without(name):
    return lambda value: {key: entry for key, entry in value.items() if key != name}


def within(*place, value):
    def change(whole):
        inner = whole
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value
        return whole

    return change


def column(name, values):
    def change(cell):
        table, label = cell
        return table.set_column(table.column_names.index(name), name, values(table[name])), label

    return change


FORGED = {
    "a manifest without privileged": ("manifest.json", without("privileged")),
    "a manifest with more in it": ("manifest.json", lambda value: {**value, "oracle": "os:system"}),
    "agents that are no list": ("manifest.json", within("agents", value="linucb")),
    "an agent that is no text": ("manifest.json", within("agents", value=["linucb", 3])),
    "an agent twice": ("manifest.json", within("agents", value=["linucb", "linucb"])),
    "no agents": ("manifest.json", within("agents", value=[])),
    "weights of nobody": ("manifest.json", within("weights", value={})),
    "weights that are no mapping": ("manifest.json", within("weights", value=[])),
    "blocks of nothing": ("manifest.json", within("run", "block", value=0)),
    "a block that is no number": ("manifest.json", within("run", "block", value=True)),
    "tasks without end": ("manifest.json", within("tasks", value=10**12)),
    "a negative number of tasks": ("manifest.json", within("tasks", value=-3)),
    "versions that are no mapping": ("manifest.json", within("run", "versions", value=3)),
    "code that is no mapping": ("manifest.json", within("code", value={"linucb": "x"})),
    "hashes that are no mapping": ("tasks.json", within("sha256_of_tasks", value=[])),
    "a time that is no number": ("times/*", within("seconds", value="long")),
    "a time without end": ("times/*", within("seconds", value=float("inf"))),
    "a label without its hash": ("cells/*", lambda cell: (cell[0], without("task_sha256")(cell[1]))),
    "a cell that is no mapping": ("cells/*", lambda cell: (cell[0], {**cell[1], "cell": [1, 2]})),
    "a cell with more in it": ("cells/*", lambda cell: (cell[0], within("cell", "x", value=1)(cell[1]))),
    "no rewards": ("cells/*", lambda cell: (cell[0].drop_columns("rewards"), cell[1])),
    "one regret of three": ("cells/*", lambda cell: (cell[0].drop_columns("regret_oracle"), cell[1])),
    "no regrets": ("cells/*", lambda cell: (cell[0].drop_columns([f"regret_{r}" for r in REGRETS]), cell[1])),
    "another column": ("cells/*", lambda cell: (cell[0].append_column("x", cell[0]["task"]), cell[1])),
    "fewer rows": ("cells/*", lambda cell: (cell[0].slice(1), cell[1])),
    "no rows": ("cells/*", lambda cell: (cell[0].slice(0, 0), cell[1])),
    "another task": ("cells/*", column("task", lambda tasks: pc.add(tasks, 1))),
    "texts for actions": ("cells/*", column("actions", lambda lists: pa.array(["1"] * len(lists)))),
    "steps of other numbers": (
        "cells/*",
        column("rewards", lambda lists: pa.array([[1.0]] * len(lists), lists.type)),
    ),
    "a gap": ("cells/*", column("privileged", lambda flags: pa.array([None] * len(flags), flags.type))),
    "another agent": ("cells/*", column("agent", lambda names: pa.array(["oracle"] * len(names)))),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_file_with_a_right_seal_is_named(out, name):
    pattern, change = FORGED[name]
    path = next(path for path in sorted(out.glob(pattern)) if "oracle" not in path.name)
    forge(path, change)
    readers = [lambda: evaluate(config("linucb", "oracle"), out, workers=1)]
    if pattern != "tasks.json":  # which is made of the cells, and read by nobody
        readers.append(lambda: load_results(out))
    for read in readers:
        with pytest.raises(InputError, match=f"'{re.escape(str(path))}' is damaged or not of this evaluation"):
            read()


def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused_unread(out, monkeypatch):
    path = sorted((out / "cells").iterdir())[0]
    rows, label = 1 << 26, store.read_table(path)[1]
    table = pa.table({"task": pa.array(np.zeros(rows, np.int64))}, metadata={b"gents_gym": json.dumps(label)})
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 400_000
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: pytest.fail("it was unpacked"))
    with pytest.raises(InputError, match="is damaged or not of this evaluation"):
        load_results(out)


@pytest.mark.parametrize("place", ["cells", "times", "report"])
def test_a_planted_link_is_not_followed(out, place, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if (out / place).exists():
        (out / place).rename(tmp_path / "kept")
    (out / place).symlink_to(elsewhere)
    with pytest.raises(InputError, match=f"'{out / place}' is damaged or not of this evaluation"):
        evaluate(config("linucb", "oracle"), out, workers=1)
    assert not list(elsewhere.iterdir())


def test_a_link_that_is_planted_while_cells_are_played_is_not_followed(tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def plant(cell, owner, given):
        (tmp_path / "out" / "cells").symlink_to(elsewhere)
        return play(cell, owner)

    monkeypatch.setattr(harness, "play", plant)
    with pytest.raises(InputError, match=r"cells' must be a folder, got a link"):
        evaluate(config("random", tasks=1), tmp_path / "out", workers=1)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("name", ["manifest.json", "tasks.json", "times", "cells", "results.parquet", "regret.png"])
@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_no_regular_file_is_refused_and_nobody_waits_for_it(out, name, kind):
    path = out / name if (out / name).is_file() or "." in name else sorted((out / name).iterdir())[0]
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(InputError, match=f"'{re.escape(str(path))}' is damaged or not of this evaluation"):
        evaluate(config("linucb", "oracle"), out, workers=1)
    if name in ("manifest.json", "cells", "times"):
        with pytest.raises(InputError, match=f"'{re.escape(str(path))}' is damaged or not of this evaluation"):
            load_results(out)


@pytest.mark.parametrize("place", [None, 3, "a\0b", b"x"])
def test_what_is_no_path(place):
    for call in (lambda: evaluate(config("linucb"), place), lambda: load_results(place)):
        with pytest.raises(InputError, match="out must be a path, got"):
            call()


def test_propensities_are_kept_on_request(out, tmp_path):
    asked = config("random", "lints(votes=4)", propensities=True)
    found = evaluate(asked, tmp_path / "asked", workers=1)
    record, plain = found.records[SMALL]["random"], load_results(out).records[SMALL]["linucb"]
    assert plain.propensities is None
    np.testing.assert_allclose(record.propensities, 1 / 3, rtol=1e-6)
    assert {*found.records[SMALL]["lints(votes=4)"].propensities.flat} <= {0.25, 0.5, 0.75, 1.0}
    again = load_results(tmp_path / "asked").records[SMALL]["random"]
    assert np.array_equal(again.propensities, record.propensities)
    assert "propensities" in pq.read_table(tmp_path / "asked" / "results.parquet").column_names
    evaluate(asked, tmp_path / "asked", workers=1)  # the same command goes on
    for there, here in ((tmp_path / "asked", config("random")), (out, config("linucb", propensities=True))):
        with pytest.raises(InputError, match=r"propensities is (True there, None|None there, True) here"):
            evaluate(here, there, workers=1)
    (cell, *_) = sorted((tmp_path / "asked" / "cells").glob("*.parquet"))
    table, label = read_table(cell)
    cell.write_bytes(table_bytes(table.drop_columns("propensities"), label))
    with pytest.raises(InputError, match="is damaged or not of this evaluation"):
        load_results(tmp_path / "asked")


def test_agents_that_cannot_tell_propensities_are_refused(tmp_path, monkeypatch):
    (tmp_path / "silent.py").write_text(EDITED.format(action=0))
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="which agent 'silent:Same' does not have"):
        evaluate(config("random", "silent:Same", propensities=True), tmp_path / "new", workers=1)
    assert not (tmp_path / "new").exists()
