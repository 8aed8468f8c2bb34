"""The network of distillation: what it reads, its symmetry, and its files."""

import numpy as np
import pytest
import torch

from gents_gym.checks import InputError
from gents_gym.models.distilled import ActionNetwork, DistilledConfig, load_network, save_network, summarise


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    mean, variance, context = rng.random((20, 6)), rng.random((20, 6)), rng.normal(size=(20, 2))
    return summarise(mean, variance, 7, context)


@pytest.fixture(scope="module")
def network(inputs):
    made = ActionNetwork(DistilledConfig("greedy", "synthetic-filter", width=8, context_dim=2))
    made.start(torch.Generator().manual_seed(0), torch.from_numpy(inputs).float())
    return made


def test_a_summary_is_what_the_belief_says():
    found = summarise(np.array([[0.5, 0.2]]), np.array([[0.01, 0.03]]), 10, np.array([[4.0]]))
    log = np.log(10)
    assert found[0] == pytest.approx(np.array([[0.5, 0, log, 0.1, 0, 4], [0.2, 0.3, log, 0.03**0.5, 1.5, 4]]))
    assert summarise(np.array([[0.5, 0.2]]), None, 10, None).shape == (1, 2, 3)


def test_the_order_of_actions_does_not_matter(network, inputs):
    order = np.random.default_rng(1).permutation(6)
    found = network.probabilities(inputs)
    assert network.probabilities(inputs[:, order]) == pytest.approx(found[:, order], abs=1e-6)
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert found.std(axis=1).min() > 0  # or the symmetry would say nothing
    assert network.probabilities(inputs[:, :2]).shape == (20, 2)


def test_making_one_leaves_the_global_generator_alone(inputs):
    before = torch.get_rng_state()
    ActionNetwork(DistilledConfig("greedy", "synthetic-filter")).start(
        torch.Generator().manual_seed(0), torch.from_numpy(inputs[..., :5]).float()
    )
    assert torch.equal(before, torch.get_rng_state())


def test_files_are_whole_or_refused(network, inputs, tmp_path):
    save_network(network, tmp_path)
    again = load_network(tmp_path)
    assert again.config == network.config
    assert (again.probabilities(inputs) == network.probabilities(inputs)).all()
    tensors, config = tmp_path / "network.safetensors", tmp_path / "config.json"
    data = tensors.read_bytes()
    tensors.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(InputError, match=r"network\.safetensors' is damaged"):
        load_network(tmp_path)
    tensors.write_bytes(data)
    config.write_text(config.read_text().replace("greedy", "gready"))
    with pytest.raises(InputError, match=r"config\.json' is damaged"):
        load_network(tmp_path)
    config.write_text("{}")
    with pytest.raises(InputError, match="must be a folder of gents-gym distill"):
        load_network(tmp_path)
