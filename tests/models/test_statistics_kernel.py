"""The compiled statistics and their gradient, against torch's own inverse and automatic differentiation."""

import pytest
import torch

from gents_gym.models.statistics_kernel import Statistics


def plain(rows, outcomes, at, raw):
    """Word by word: every prefix's (XᵀX + I)^-1 and XᵀY on its own."""
    found = []
    for x, y in zip(rows, outcomes, strict=True):
        for t in at.tolist():
            inverse = torch.linalg.inv(x[:t].T @ x[:t] + torch.eye(x.shape[1], dtype=x.dtype))
            products = x[:t].T @ y[:t]
            found.append(torch.cat([inverse.flatten(), products if raw else inverse @ products]))
    return torch.stack(found).view(len(rows), len(at), -1)


@pytest.mark.parametrize("raw", [False, True], ids=["bounded", "raw"])
@pytest.mark.parametrize("at", [[0], [0, 1, 5, 11], list(range(12)), [3, 12]], ids=str)
@pytest.mark.parametrize("size", [1, 4])
def test_values_and_gradients(raw, at, size):
    torch.manual_seed(0)
    rows = torch.randn(3, 12, size, dtype=torch.double, requires_grad=True)
    outcomes, at = torch.randint(2, (3, 12)).double(), torch.tensor(at)
    upstream = torch.randn(3, len(at), size * size + size, dtype=torch.double)  # no symmetry to lean on
    found, expected = Statistics.apply(rows, outcomes, at, raw), plain(rows, outcomes, at, raw)
    assert torch.allclose(found, expected, atol=1e-10)
    gradients = (torch.autograd.grad(part, rows, upstream, retain_graph=True)[0] for part in (found, expected))
    assert torch.allclose(*gradients, atol=1e-9)


def test_single_precision_stays_near_over_long_histories():
    torch.manual_seed(0)
    rows, outcomes = torch.randn(2, 500, 5), torch.randint(2, (2, 500)).float()
    at = torch.tensor([499])
    found = Statistics.apply(rows, outcomes, at, False)
    expected = plain(rows.double(), outcomes.double(), at, False)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected, atol=1e-6)
