import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from gents_gym import InputError, Logs, RowSets, load_model, preset_config, registry
from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.folder import split_actions, split_time, train_to_folder
from gents_gym.training.losses import draw_losses_by_step, measure
from gents_gym.training.yardsticks import judge, measure_yardsticks

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(40), 30))
HELD_OUT = RowSets.from_rows(Synthetic().sample_actions(0, range(20), 20, "validation"))
SMALL = {"epochs": 2, "batch": 20, "horizon": 20, "choose": False}
CONFIG = preset_config("filter", **SMALL)


def test_a_folder_holds_weights_a_card_a_figure_and_scalars(tmp_path):
    out = tmp_path / "model"
    model = train_to_folder(ROWS, HELD_OUT, CONFIG, out, "a test")
    assert {path.name for path in out.iterdir()} == {
        "README.md", "config.json", "history.json", "model.safetensors", "tensorboard", "training.png",
    }  # fmt: skip
    loaded = load_model(out)
    assert all(bool((a == b).all()) for a, b in zip(model.parameters(), loaded.parameters(), strict=True))
    notes = json.loads((out / "config.json").read_text())["notes"]
    card = (out / "README.md").read_text()
    assert "a test" in card
    assert f"{notes['validation_loss']['mean']:.4f}" in card
    history = json.loads((out / "history.json").read_text())
    events = EventAccumulator(str(out / "tensorboard")).Reload()
    assert [event.value for event in events.Scalars("loss/validation")] == pytest.approx(
        [row["validation"] for row in history]
    )


def test_notes_and_scalars_tell_what_was_compared_and_what_is_to_beat(tmp_path, monkeypatch):
    monkeypatch.setitem(registry.CANDIDATES, "filter", ({"prior_width": 0}, {"prior_width": 2}))
    config = preset_config("filter", epochs=2, horizon=20)
    model = train_to_folder(ROWS, HELD_OUT, config, tmp_path)
    notes = json.loads((tmp_path / "config.json").read_text())["notes"]
    assert [row["model"] for row in notes["candidates"]] == [{"prior_width": 0}, {"prior_width": 2}]
    assert notes["chosen"]["model"] == min(notes["candidates"], key=lambda row: row["validation"])["model"]
    assert (notes["config"]["batch"], notes["chosen"]["batch"]) == (None, 500)
    assert notes["yardsticks"] == measure_yardsticks(model, ROWS, HELD_OUT, 20)
    assert notes["verdict"] == judge(BERNOULLI, notes["validation_loss"]["mean"], notes["yardsticks"])
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    for row, name in zip(notes["candidates"], ("prior_width=0", "prior_width=2"), strict=True):
        assert [event.value for event in events.Scalars(f"candidate/{name}")] == pytest.approx([row["validation"]])


def test_a_run_of_an_earlier_version_goes_on_with_the_batch_it_had(tmp_path):
    """Plans of versions that did not choose always name a batch."""

    class StopError(Exception):
        pass

    def stop(progress):
        if progress.history:
            raise StopError

    begun = preset_config("filter", **{**SMALL, "batch": 25})
    with pytest.raises(StopError):
        train_to_folder(ROWS, HELD_OUT, begun, tmp_path, on_epoch=stop)
    plan = json.loads((tmp_path / "run.json").read_text())
    for name in ("memory", "choose"):
        del plan["config"][name]
    (tmp_path / "run.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match="with another batch"):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)
    state = tmp_path / "state.safetensors"
    with safe_open(state, framework="numpy") as file:
        labels = {name: json.loads(text) for name, text in file.metadata().items() if name != "sha256"}
    labels["plan"][0] = plan["config"]
    for name in ("candidates", "batch"):
        del labels["progress"][name]
    save_file(load_file(state), state, metadata={name: json.dumps(label) for name, label in labels.items()})
    config = preset_config("filter", epochs=2, horizon=20)
    train_to_folder(ROWS, HELD_OUT, config, tmp_path)
    chosen = json.loads((tmp_path / "config.json").read_text())["notes"]["chosen"]
    assert (chosen["batch"], chosen["model"]) == (25, {})


def contents(folder):
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_finished_run_is_left_as_it_is_and_another_is_refused(tmp_path):
    out = tmp_path / "model"
    train_to_folder(ROWS, HELD_OUT, CONFIG, out)
    before = contents(out)
    again = train_to_folder(ROWS, HELD_OUT, CONFIG, out, on_epoch=pytest.fail)
    assert all(torch.equal(tensor, load_model(out).state_dict()[name]) for name, tensor in again.state_dict().items())
    with pytest.raises(InputError, match=r"hold a run of this configuration to continue, got '.*' with another seed"):
        train_to_folder(ROWS, HELD_OUT, preset_config("filter", **SMALL, seed=1), out)
    with pytest.raises(InputError, match="with another sha256"):
        train_to_folder(HELD_OUT, ROWS, CONFIG, out)
    assert before == contents(out)
    load_model(out).save_pretrained(tmp_path / "saved")
    with pytest.raises(InputError, match="with another config"):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path / "saved")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)


def test_a_folder_has_one_writer(tmp_path):
    seen = []

    def second(progress):
        with pytest.raises(InputError, match=r"out must have one writer at a time, got '.*', which another has open"):
            train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)
        seen.append(progress)

    train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path, on_epoch=second)
    assert seen
    assert load_model(tmp_path)


def test_an_unfinished_run_of_another_configuration_is_refused(tmp_path):
    class StopError(Exception):
        pass

    def stop(_):
        raise StopError

    with pytest.raises(StopError):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path, on_epoch=stop)
    with pytest.raises(InputError, match=r"hold a run of this configuration to continue, got '.*' with another seed"):
        train_to_folder(ROWS, HELD_OUT, preset_config("filter", **SMALL, seed=1), tmp_path)
    with pytest.raises(InputError, match="with another sha256"):
        train_to_folder(HELD_OUT, ROWS, CONFIG, tmp_path)
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(InputError, match=r"damaged run\.json"):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)


def test_kills_between_the_last_writes_are_mended(tmp_path):
    """Finished but not cleaned up; and stopped while the very first file was being written."""
    out = tmp_path / "model"
    train_to_folder(ROWS, HELD_OUT, CONFIG, out)
    notes = json.loads((out / "config.json").read_text())["notes"]
    plan = {key: notes[key] for key in ("config", "sha256", "source")}
    (out / "run.json").write_text(json.dumps(plan))
    (out / ".state.safetensors.x.gents_gym.part").write_text("half")
    weights = (out / "model.safetensors").read_bytes()
    train_to_folder(ROWS, HELD_OUT, CONFIG, out)
    assert (out / "model.safetensors").read_bytes() == weights
    assert not (out / "run.json").exists()
    assert not list(out.glob(".*"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".run.json.x.gents_gym.part").write_text("half")
    train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path / "other")


def test_scalars_of_a_resumed_run_stand_once(tmp_path):
    class StopError(Exception):
        pass

    def stop(progress):
        if len(progress.history) == 1:
            raise StopError

    with pytest.raises(StopError):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path, on_epoch=stop)
    train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("loss/validation")] == [1, 2]


@pytest.mark.parametrize("content", ["[]", "3", '{"config": 3}'])
def test_a_strange_run_file_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(InputError, match="out must be new, or hold a run of this configuration"):
        train_to_folder(ROWS, HELD_OUT, CONFIG, tmp_path)


def command(out):
    options = {"--actions": 300, "--rows": 60, "--horizon": 60, "--epochs": 6, "--batch": 50, "--out": out}
    program = Path(sys.executable).with_name("gents-gym")
    return [str(program), "train", "--no-choose", *(str(part) for pair in options.items() for part in pair)]


@pytest.mark.slow
def test_kill_minus_nine_at_random_moments_changes_nothing(tmp_path):
    """The command itself, killed with SIGKILL and started again until it ends, against an undisturbed run."""
    subprocess.run(command(tmp_path / "whole"), check=True, capture_output=True)
    moments, kills = random.Random(0), 0
    for _ in range(30):
        process = subprocess.Popen(command(tmp_path / "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        patience = time.monotonic() + 60
        state = tmp_path / "killed" / "state.safetensors"
        before = state.stat().st_mtime_ns if state.exists() else 0
        while kills < 2 and process.poll() is None and time.monotonic() < patience:
            if state.exists() and state.stat().st_mtime_ns != before:  # one more epoch is done: strike soon after it
                time.sleep(moments.random() * 0.3)
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.005)
        if process.wait() == 0:
            break
        kills += 1
    assert kills == 2
    for name in ("model.safetensors", "history.json", "config.json", "README.md"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


def test_splits_share_no_action():
    rows, held_out = split_actions(ROWS, 0.2, 3)
    assert (len(rows), len(held_out)) == (32, 8)
    features = [{tuple(row) for row in part.action_features.tolist()} for part in (rows, held_out)]
    assert not features[0] & features[1]
    with pytest.raises(InputError, match="data must have at least 2 actions"):
        split_actions(ROWS.choose(np.array([0])), 0.2, 0)


def test_the_latest_rows_of_a_log_validate():
    times, actions = np.arange(10.0), np.array([0, 1, 0, 1, 0, 1, 0, 1, 2, 2])
    logs = Logs(actions, times[:, None], np.arange(10) % 2, np.arange(3)[:, None], times=times)
    rows, held_out = split_time(logs, 0.2)
    assert sorted(rows.contexts[:, 0]) == [*range(8)]
    assert (held_out.contexts[:, 0].tolist(), held_out.action_features.tolist()) == ([8, 9], [[2]])
    with pytest.raises(InputError, match="a split by time needs the role time, got none"):
        split_time(replace(logs, times=None), 0.2)


def test_losses_are_measured_on_the_same_rows(tmp_path):
    model = load_model("synthetic-filter")
    rows = Synthetic().sample_actions(5, range(60), 30, "test")
    found = measure({"filter": model, "exact": ExactModel(Synthetic().truth, n_weighted=64)}, rows)
    assert found.prefixes == (1, 2, 3, 5, 7, 10, 15, 20, 30)
    assert found.sums["filter"].shape == (60, 9)
    assert (np.diff(found.sums["filter"], axis=1) > 0).all()
    mean, error = found.mean("filter", 30)
    assert mean == pytest.approx(found.sums["filter"][:, -1].mean() / 30)
    assert error > 0
    gap, gap_error = found.gap("filter", "exact", 30)
    assert gap == pytest.approx(mean - found.mean("exact", 30)[0])
    for prefix in found.prefixes:
        assert abs(found.gap("filter", "exact", prefix)[0]) < 0.02
    with torch.no_grad():
        z, x, y = (torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))
        losses = -model.log_prob(z, x, y)
    for i, prefix in enumerate(found.prefixes):
        assert np.allclose(found.sums["filter"][:, i], losses[:, :prefix].sum(1).numpy(), atol=1e-3)
    assert gap_error < error
    picture = draw_losses_by_step(found, "exact")
    assert picture.startswith(b"\x89PNG")
    assert picture != draw_losses_by_step(found, None)
