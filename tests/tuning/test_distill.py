"""Distillation: what the network learns, what is measured, and what is refused."""

import numpy as np
import pytest

import gents_gym
from gents_gym.checks import InputError
from gents_gym.models.distilled import load_network
from gents_gym.tuning.distill import Watched, card, distill
from gents_gym.tuning.distill_config import DistillConfig

SIZES = {"horizon": 30, "n_actions": 4}
CONFIG = DistillConfig("softmax(temperature=0.1)", **SIZES, tasks=40, held_out=10, epochs=15, batch=128)


class Mute:
    """An agent on a model that does not report its probabilities."""

    def __init__(self, model):
        pass

    def reset(self, info, rngs):
        pass

    def act(self, context):
        return np.zeros(len(context), int)

    def observe(self, context, action, outcome):
        pass


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    told, folder = [], tmp_path_factory.mktemp("distilled") / "net"
    _, found = distill(CONFIG, folder, on_progress=lambda text, share: told.append(share))
    return folder, found, told


def test_a_network_learns_the_softmax_of_predictions(done):
    """Its teacher is a function of the predictions, so it can be learned to any precision."""
    folder, (found,), told = done
    assert found.tasks == 10
    assert found.variation[0] < 0.03
    assert found.variation[1] < 1e-6  # by its formula
    assert abs(found.gap[0]) < 1
    assert told == sorted(told)
    assert (folder / "README.md").read_text() == card(CONFIG, [found])


def test_the_agent_plays_other_numbers_of_actions(done):
    record = gents_gym.rollout(
        "gents_gym/Synthetic-v0(horizon=20, n_actions=7)", f"distilled(path='{done[0]}')", tasks=8, propensities=True
    )
    teacher = gents_gym.rollout(
        "gents_gym/Synthetic-v0(horizon=20, n_actions=7)", CONFIG.agent, tasks=8, propensities=True
    )
    first = record.propensities[:, 0][record.actions[:, 0] == teacher.actions[:, 0]]
    assert np.allclose(first, teacher.propensities[:, 0][record.actions[:, 0] == teacher.actions[:, 0]], atol=0.15)


@pytest.mark.parametrize("agent", ["gen-kg", "auto", "ids(samples=2, m=4)", "ts-gen(votes=2, m=4)", "squarecb"])
def test_any_agent_on_the_model_teaches(agent, tmp_path):
    small = DistillConfig(agent, horizon=4, n_actions=3, tasks=2, held_out=2, epochs=1)
    _, (found,) = distill(small, tmp_path / "net")
    assert 0 < found.variation[0] < 1
    assert 0 <= found.variation[1] < 1


def test_watching_changes_nothing_that_the_teacher_plays():
    plain, watched = (
        gents_gym.rollout("gents_gym/Synthetic-v0(horizon=9)", agent, tasks=3)
        for agent in (gents_gym.make_agent("softmax"), Watched(gents_gym.make_agent("softmax"), "synthetic-filter"))
    )
    assert (plain.actions == watched.actions).all()


def test_the_same_seed_gives_the_same_network(done, tmp_path):
    small = DistillConfig("greedy", **SIZES, tasks=2, held_out=2, epochs=2, context=True)
    for name in ("one", "other"):
        distill(small, tmp_path / name)
    one, other = (tmp_path / name / "network.safetensors" for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    assert load_network(tmp_path / "one").config.context_dim == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "linucb"}, "unknown option of agent 'linucb': unexpected keyword argument 'model'"),
        ({"agent": "greedy(model=news-filter)"}, "agent must not name a model, which is --model"),
        ({"agent": f"{__name__}:Mute"}, r"agent must have probabilities\(context\) to be learned from, got '.*:Mute'"),
        ({"model": "synthetic-filer"}, "did you mean 'synthetic-filter'"),
        ({"explore": 2}, "explore must be at most 1, got 2"),
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"env": "CartPole-v1"}, "env must be one of gents_gym's, with a task distribution, got 'CartPole-v1'"),
        ({"env": "gents_gym/News-v0"}, "model must be trained on tasks with"),
        ({"horizon": None}, r"horizon must be given \(--horizon\)"),
    ],
)
def test_bad_input(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        distill(DistillConfig(**{"agent": "greedy", **SIZES, **options}), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_bad_folders(done, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="out must be a new folder or one of gents-gym distill"):
        distill(CONFIG, tmp_path)
    with pytest.raises(InputError, match="must be a folder of gents-gym distill"):
        gents_gym.make_agent("distilled", path=str(tmp_path))
    with pytest.raises(InputError, match="must give variances of its means"):
        gents_gym.rollout(
            "gents_gym/Synthetic-v0(horizon=9)", f"distilled(path='{done[0]}', model=synthetic-paper)", tasks=2
        )
