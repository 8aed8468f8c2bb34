"""Layers that skip units at zero against PyTorch's own, with their gradients."""

import pytest
import torch
from torch import nn
from torch.nn.functional import linear

from gents_gym.models.rectified_layer import CHUNK, RectifiedLinear, apply_layers


@pytest.mark.parametrize(("n_rows", "n_in", "n_out"), [(1, 3, 200), (2 * CHUNK + 7, 100, 100), (50, 130, 5)])
def test_values_and_gradients_are_those_of_torch(n_rows, n_in, n_out):
    generator = torch.Generator().manual_seed(0)
    x, w, b, above = (
        torch.randn(*shape, generator=generator)
        for shape in ((n_rows, 1, n_in), (n_out, n_in), (n_out,), (n_rows, 1, n_out))
    )
    found = []
    for layer in (RectifiedLinear.apply, lambda x, w, b: linear(x.relu(), w, b)):
        leaves = [part.clone().requires_grad_() for part in (x, w, b)]
        value = layer(*leaves)
        value.backward(above)
        found.append([value, *(leaf.grad for leaf in leaves)])
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        assert torch.allclose(ours, theirs, atol=1e-4, rtol=1e-4)


def test_the_gradient_at_zero_is_zero_and_a_nan_remains():
    x = torch.tensor([[0.0, -1.0, 2.0]], requires_grad=True)
    RectifiedLinear.apply(x, torch.ones(4, 3), torch.zeros(4)).sum().backward()
    assert x.grad.tolist() == [[0, 0, 4]]
    assert RectifiedLinear.apply(torch.tensor([[float("nan")]]), torch.ones(1, 1), torch.zeros(1)).isnan().all()


@pytest.mark.parametrize(
    "layers",
    [
        [],
        [nn.ReLU()],
        [nn.Linear(6, 80), nn.ReLU(), nn.Linear(80, 90), nn.ReLU(), nn.Linear(90, 2)],
        [nn.ReLU(), nn.Linear(6, 100), nn.ReLU()],
    ],
    ids=["none", "an activation", "a network", "hidden layers"],
)
def test_networks_are_those_of_torch(layers):
    network, x = nn.Sequential(*layers), torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(apply_layers(network, x), network(x), atol=1e-5)
    assert torch.equal(apply_layers(network.double(), x.double()), network(x.double()))
