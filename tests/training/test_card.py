import io

import numpy as np
import pytest
import torch
from PIL import Image

from gents_gym import preset_config
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.training.card import draw_losses, model_card
from gents_gym.training.checkpoint import Progress
from gents_gym.training.config import plain_config

YARDSTICKS = {"constant": 0.6912, "base rate": 0.6523, "regression": 0.5534}


def notes(**changes):
    return {
        "config": plain_config(preset_config("filter")),
        "gents_gym": "1.2.3",
        "source": "a test",
        "candidates": [],
        "chosen": {"model": {}, "batch": 123, "gradient_steps": 40, "learning_rate": 0.02, "epoch": 2},
        "validation_loss": {"mean": 0.4321, "se": 0.0012},
        "yardsticks": YARDSTICKS,
        "verdict": None,
        "actions": {"training": 10, "validation": 5},
        "rows": {"training": 100, "validation": 50},
        "task_contexts": 0,
        **changes,
    }


def test_the_card_has_the_losses_beside_each_other():
    card = model_card(FilterModel(FilterConfig(2, 5)), notes())
    for row in (
        "| **this model, sequences of 500 rows** | **0.4321 ± 0.0012** |",
        "| a constant | 0.6912 |",
        "| each action's base rate so far | 0.6523 |",
        "| one regression on (Z, X) | 0.5534 |",
        "| batch | 123 actions, by 1 GB of memory |",
        "| gradient steps | 40 for each learning rate |",
        "| chosen by validation | learning rate 0.02, epoch 2 of 3 |",
        "Trained on sequences of 500 rows with bernoulli outcomes. "
        "A sequence has rows of one action in order; a step is one row.",
        "| urn | α = ∞, no contexts of whole tasks are known |",
    ):
        assert row in card.splitlines()


def test_the_card_tells_what_was_compared_and_what_is_wrong():
    model = FilterModel(FilterConfig(2, 5))
    model.urn = torch.tensor(0.2)
    compared = [{"model": {"context_features": k}, "validation": loss} for k, loss in ((0, 0.5), (8, 0.4))]
    chosen = {"model": {"context_features": 8}, "batch": 7, "gradient_steps": 40, "learning_rate": 0.02, "epoch": 0}
    config = plain_config(preset_config("filter", batch=7, blind=True))
    told = notes(candidates=compared, chosen=chosen, config=config, verdict="It is bad.", task_contexts=50)
    card = model_card(model, told)
    assert (
        "context_features=8 (before training: 0.5000 with context_features=0, 0.4000 with context_features=8)" in card
    )
    assert "**It is bad.**" in card
    assert "| batch | 7 actions |" in card
    assert "| urn | α = 4, fitted to the contexts of 50 tasks |" in card
    assert "blind to action features" in card


@pytest.mark.parametrize("rates", [(0.02,), (0.1, 0.01)])
def test_the_picture_has_a_panel_per_learning_rate_and_one_of_yardsticks(rates):
    rows = [{"run": run, "epoch": 1, "training": 0.5, "validation": 0.6} for run in range(len(rates))]
    config, progress = preset_config("filter", learning_rates=rates), Progress(history=rows)
    drawn = [draw_losses(progress, config, {"this model": 0.4, **YARDSTICKS, "constant": c}) for c in (0.5, 0.6)]
    pictures = [np.asarray(Image.open(io.BytesIO(data))) for data in drawn]
    assert pictures[0].shape[1] > 500 * (1 + len(rates))
    different = (pictures[0] != pictures[1]).any(axis=(0, 2)).nonzero()[0] / pictures[0].shape[1]
    assert different.min() > len(rates) / (1 + len(rates)) - 0.05  # in the last panel alone
