"""Models that several test files try."""

import pytest
import torch

from gents_gym.models.transformer import TransformerConfig, TransformerModel

NAMES = {"bernoulli": "bernoulli", "gaussian": "gaussian", "categorical": "categorical(3)"}


@pytest.fixture
def random_model():
    """A function that makes a small transformer with random weights and a bank."""

    def make(outcomes="bernoulli", **sizes):
        sizes = {"width": 16, "layers": 2, "heads": 2, "longest": 30, **sizes}
        with torch.random.fork_rng():
            torch.manual_seed(3)
            model = TransformerModel(TransformerConfig(2, 5, **sizes, likelihood=NAMES[outcomes]))
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.4)
            model.bank = torch.randn(50, 5)
        return model.eval()

    return make
