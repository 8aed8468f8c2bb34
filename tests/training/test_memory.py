import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from gents_gym import InputError, RowSets, preset_config, train
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.training.memory import MOST, fitting_batch, sequence_bytes
from gents_gym.training.untrained import new_model


def rows_of(context_dim, n_rows=60, n_actions=8):
    return RowSets.from_rows(Synthetic(context_dim=context_dim).sample_actions(0, range(n_actions), n_rows))


def bytes_of(context_dim, preset="filter", **changes):
    rows, config = rows_of(context_dim), preset_config(preset, **{"horizon": 60, **changes})
    return sequence_bytes(new_model(rows, config, 0, started=False), rows, config)


@pytest.mark.parametrize("preset", ["filter", "paper"])
def test_a_sequence_takes_what_its_rows_and_their_squares_take(preset):
    assert 1.9 < bytes_of(8, preset, steps=None) / bytes_of(8, preset, horizon=30, steps=None) < 2.1
    states = 3 * 60 * 4  # three states of four bytes a number are counted for every row
    assert bytes_of(64, preset) > states * 64**2
    assert bytes_of(64, preset, model={"context_features": 2}) < bytes_of(64, preset) / 4


def test_a_horizon_that_no_memory_holds_is_refused(monkeypatch):
    rows = RowSets.from_rows(Synthetic().sample_actions(0, range(4), 10))
    config = preset_config("filter", choose=False, replacement=True, horizon=10**5)
    model = new_model(rows, config, 0, started=False)
    monkeypatch.setattr("gents_gym.checks.machine_memory", lambda: 10**6)
    with pytest.raises(InputError, match=r"horizon=100000 must fit into this machine's 1 MB of memory"):
        fitting_batch(model, rows, config)


def test_the_default_batch_is_500_unless_memory_forbids_it():
    config = preset_config("filter", choose=False)
    for size, least, most in ((5, MOST, MOST), (64, 10, 100)):
        rows = rows_of(size, n_rows=500)
        model = new_model(rows, config, 0, started=False)
        fits = fitting_batch(model, rows, config)
        assert least <= fits <= most
        assert fitting_batch(model, rows, replace(config, memory=1e-9)) == 1
        each = sequence_bytes(model, rows, config)
        assert fits == MOST or fits * each <= 1e9 < (fits + 1) * each


def test_an_explicit_batch_wins_and_the_chosen_one_is_recorded():
    rows, small = rows_of(5, n_rows=20), {"horizon": 20, "epochs": 1, "choose": False}
    each = bytes_of(5, horizon=20)
    losses = []
    _, progress = train(rows, rows, preset_config("filter", **small, memory=3.5 * each / 1e9), on_batch=losses.append)
    assert progress.batch == 3
    assert len(losses) == 3  # of 8 actions
    _, progress = train(rows, rows, preset_config("filter", **small, memory=1e-9, batch=5))
    assert progress.batch == 5


SCRIPT = """
import resource
from gents_gym import RowSets, make_tasks, preset_config, train
from gents_gym.training.untrained import new_model

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # GB

rows = RowSets.from_rows(make_tasks("synthetic", context_dim=48).sample_actions(0, range(150), 60))
few = rows.choose(range(4))
config = preset_config("filter", horizon=60, epochs=1, choose=False, memory={memory})
new_model(rows, config, 0)  # the first fit has its own needs
before = peak()
_, progress = train(rows, few, config)
print(progress.batch, peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak is in other units")
@pytest.mark.slow
def test_the_peak_of_a_training_is_within_its_budget():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(memory=0.05)], capture_output=True, text=True, check=True
    )
    batch, added = map(float, done.stdout.split())
    assert 10 < batch < 60
    assert added < 0.05


def test_the_longest_sequence_counts():
    rows = rows_of(5, n_rows=30)
    ragged = RowSets(rows.action_features[:2], rows.contexts[:35], rows.outcomes[:35], np.array([0, 5, 35]))
    config = preset_config("filter", horizon=100)
    model = new_model(rows, config, 0, started=False)
    assert sequence_bytes(model, ragged, config) == sequence_bytes(model, rows, config)
    longer = replace(config, replacement=True)
    assert sequence_bytes(model, ragged, longer) > 3 * sequence_bytes(model, ragged, config)
    several = replace(config, horizon=10, lengths=(5, 100))
    assert sequence_bytes(model, ragged, several) == sequence_bytes(model, ragged, config)
