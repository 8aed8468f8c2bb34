import pytest
from safetensors import safe_open
from safetensors.torch import save

import gents_gym
from gents_gym import InputError, RowSets, preset_config
from gents_gym.tasks.synthetic import Synthetic

ROWS = RowSets.from_rows(Synthetic().sample_actions(0, range(20), 15))
SMALL = {"epochs": 1, "batch": 20, "horizon": 15, "choose": False}


def test_a_damaged_state_is_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    path.write_bytes(b"nonsense")
    config = preset_config("filter", **SMALL)
    with pytest.raises(InputError, match="must be a whole training state"):
        gents_gym.train(ROWS, ROWS, config, path)
    path.unlink()
    gents_gym.train(ROWS, ROWS, config, path)
    with pytest.raises(InputError, match="must be the state of a training of this configuration on these rows"):
        gents_gym.train(ROWS, ROWS, preset_config("filter", **SMALL, seed=1), path)
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    del tensors["optimizer.0.exp_avg"]
    path.write_bytes(save(tensors, metadata=metadata))
    with pytest.raises(InputError, match=r"missing or unexpected: optimizer\.0\.exp_avg"):
        gents_gym.train(ROWS, ROWS, config, path)
