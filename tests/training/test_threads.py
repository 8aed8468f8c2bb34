"""Training computes with its own number of threads, whatever the environment says."""

import os
import subprocess
import sys

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from gents_gym import InputError, RowSets, preset_config, train
from gents_gym.tasks.synthetic import Synthetic

SCRIPT = """
import sys
import gents_gym
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training import context_map
from gents_gym.training.folder import train_to_folder

context_map.MAP_STEPS = 20
draw = Synthetic().sample_actions
rows = gents_gym.RowSets.from_rows(draw(0, range(300), 30))
held_out = gents_gym.RowSets.from_rows(draw(0, range(50), 30, "validation"))
sizes = {"context_features": 4}
config = gents_gym.preset_config("filter", epochs=1, horizon=30, model=sizes)
train_to_folder(rows, held_out, config, sys.argv[1])
"""


@pytest.mark.slow
def test_one_and_two_threads_in_the_environment_give_the_same_bytes(tmp_path):
    started = []
    for count in ("1", "2"):
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), count)
        command = [sys.executable, "-c", SCRIPT, tmp_path / count]
        started.append(subprocess.Popen(command, env={**os.environ, **counts}))
    assert [process.wait() for process in started] == [0, 0]
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / count).glob("*.*")} for count in ("1", "2"))
    assert {"model.safetensors", "config.json", "history.json"} <= one.keys()
    assert one == two


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_are_set_and_restored(threads):
    rows = RowSets.from_rows(Synthetic().sample_actions(0, range(6), 5))
    config, before, seen = preset_config("filter", epochs=1, horizon=5, choose=False, threads=threads), 3, []

    def look(_):
        seen.append((torch.get_num_threads(), {lib["num_threads"] for lib in threadpool_info()}))

    def fail(_):
        raise RuntimeError("stop")

    given = torch.get_num_threads()
    try:
        with threadpool_limits(before):
            torch.set_num_threads(before)
            train(rows, rows, config, on_epoch=look)
            with pytest.raises(RuntimeError, match="stop"):
                train(rows, rows, config, on_epoch=fail)
            assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(given)
    assert {found[0] for found in seen} == {threads}
    assert all(max(found[1]) <= threads for found in seen)


def test_a_count_of_threads():
    with pytest.raises(InputError, match="threads must be at least 1, got 0"):
        preset_config("filter", threads=0)
