import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym.checks import InputError
from gents_gym.likelihoods import BERNOULLI, GAUSSIAN, Categorical
from gents_gym.models.exact import ExactModel
from gents_gym.models.imagined import _KEPT, Imagined
from gents_gym.models.load import load_model
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import half

ID = "gents_gym/Imagined-v0"
EXACT = "synthetic(outcomes=gaussian, n_actions=4, horizon=30, context_spread=0.5)"


def statistics(tasks):
    """Return numbers of each task that distinguish distributions, (B, n)."""
    y, m, x, z = tasks.outcomes, tasks.means, tasks.contexts, tasks.action_features
    column = y.mean(axis=1)  # (B, A)
    parts = [
        column.mean(axis=1),
        column.var(axis=1),
        y.var(axis=(1, 2)),
        m.mean(axis=(1, 2)),
        m.max(axis=2).mean(axis=1),
        ((y - m) ** 2).mean(axis=(1, 2)),
        (y[:, 1:] * y[:, :-1]).mean(axis=(1, 2)),
        (column * z[..., 0]).mean(axis=1),
        (column[:, :1] * z[:, 1:2, 0]).mean(axis=1),
        (y[..., 0] * x[..., 3]).mean(axis=1),
        (x[:, 1:] * x[:, :-1]).mean(axis=(1, 2)),
        (x[:, 1] ** 2).mean(axis=1),
        (z**2).mean(axis=(1, 2)),
    ]
    return np.stack(parts, axis=1)


def z_scores(one, other):
    errors = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other))
    return np.abs(one.mean(axis=0) - other.mean(axis=0)) / errors


def test_under_the_exact_model_imagined_tasks_are_as_real_ones():
    imagined, real = Imagined("exact", setting=EXACT), gents_gym.make_tasks(EXACT)
    found = [statistics(one.sample(0, range(600))) for one in (imagined, real)]
    assert z_scores(*found).max() < 4
    others = statistics(gents_gym.make_tasks(EXACT.replace("0.5", "0.9")).sample(0, range(600)))
    assert z_scores(found[1], others).max() > 6  # such a difference would show


@pytest.mark.parametrize("agent", ["greedy(model=exact)", "ts-gen(model=exact, m=8)", "lints"])
def test_under_the_exact_model_agents_have_the_same_regret(agent):
    """In a stream of other numbers than the real tasks', so the two samples are independent."""
    regrets = []
    for distribution in (Imagined("exact", setting=EXACT), gents_gym.make_tasks(EXACT)):
        envs = gents_gym.BanditVectorEnv(distribution, 150, autoreset_mode="Disabled")
        record = gents_gym.rollout(envs, agent, seed=1)
        regrets.append(np.stack([record.regret[name].sum(axis=1) for name in ("expected", "best")], axis=1))
    assert z_scores(*regrets).max() < 4


def test_trained_models_imagine_what_they_were_trained_on():
    """A well specified model's tasks agree with nature's, as closely as it was trained."""
    found = [
        statistics(distribution.sample(0, range(150)))
        for distribution in (
            Imagined("synthetic-filter-gaussian", 4, 30, further=100),
            Synthetic(4, 30, outcomes="gaussian"),
        )
    ]
    assert z_scores(*found).max() < 5


@pytest.mark.parametrize(
    ("model", "likelihood", "oracle", "reward_fn"),
    [
        ("synthetic-filter", BERNOULLI, "logistic", gents_gym.types.identity),
        ("synthetic-filter-gaussian", GAUSSIAN, "least-squares", gents_gym.types.identity),
        ("synthetic-filter-categorical", Categorical(3), "least-squares", half),
        ("news-filter", BERNOULLI, "mlp", gents_gym.types.identity),
    ],
)
def test_what_agents_need_to_know_is_carried_over(model, likelihood, oracle, reward_fn):
    tasks = Imagined(model, 3, 5, further=4).sample(0, [0, 1])
    assert (tasks.likelihood, tasks.oracle, tasks.reward_fn) == (likelihood, oracle, reward_fn)
    assert tasks.space == load_model(model).space
    assert np.isin(tasks.action_features, load_model(model).action_bank.numpy()).all()
    record = gents_gym.rollout(gym.make_vec(ID, num_envs=2, model=model, n_actions=3, horizon=5, further=4), "greedy")
    assert {*record.regret} == {"oracle", "expected", "best"}


@pytest.mark.parametrize("contexts", [None, "bank", 0, 0.5])
def test_contexts_follow_the_option(contexts):
    found = Imagined(n_actions=2, horizon=6, further=0, contexts=contexts).sample(0, [0]).contexts[0]
    assert len(np.unique(found, axis=0)) == (1 if contexts == 0 else 6)


def test_tasks_are_kept_for_the_next_agent_in_this_process():
    _KEPT.clear()
    first = Imagined(n_actions=2, horizon=5, further=3).sample(0, [0, 1])
    assert Imagined(n_actions=2, horizon=5, further=3).sample(0, [0, 1]) is first
    for other in ({"further": 4}, {"contexts": 0.5}, {"model": "synthetic-filter-100"}, {"reward_fn": half}):
        assert Imagined(**{"n_actions": 2, "horizon": 5, "further": 3, **other}).sample(0, [0, 1]) is not first


def test_what_is_kept_is_bounded(monkeypatch):
    _KEPT.clear()
    monkeypatch.setattr("gents_gym.models.imagined.MOST_BYTES", 4 * 5 * (5 + 2 * 2) * 2)
    for seed in range(4):
        Imagined(n_actions=2, horizon=5, further=3).sample(seed, [0])
    assert [key[-3] for key in _KEPT] == [2, 3]


def test_models_as_objects():
    truth = Synthetic(outcomes="gaussian").truth
    tasks = Imagined(ExactModel(truth), 3, 4, setting="synthetic(outcomes=gaussian)").sample(0, [0])
    assert tasks.truth is truth
    assert len(Imagined(load_model("synthetic-filter"), 3, 4, further=1).sample(0, [0])) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "exact"}, "setting must name a task distribution with a known p\\* for model 'exact', .* got None"),
        ({"model": "exact", "setting": "news"}, "setting must show what its p\\* is about for model 'exact', got 'new"),
        ({"model": "exact", "setting": "newz"}, "unknown task distribution 'newz'; did you mean 'news'"),
        ({"model": "filter"}, "model must be one of synthetic-filter, .* got the preset 'filter'"),
        ({"model": "nowhere"}, "unknown model or folder 'nowhere'"),
        ({"model": 3}, "model must be a model's id, preset or folder"),
        ({"n_actions": 201}, "n_actions must be at most 200, the training actions that the model keeps, got 201"),
        ({"n_actions": 1}, "n_actions must be at least 2, got 1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"further": -1}, "further must be at least 0, got -1"),
        ({"oracle": "mpl"}, "unknown policy class 'mpl'; did you mean 'mlp'"),
        ({"contexts": "bank", "setting": "synthetic"}, "contexts must be None with a setting, which has its own"),
        ({"reward_fn": "identit"}, "unknown reward function 'identit'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        gents_gym.make_tasks("imagined", **options)


def test_a_model_without_training_actions(tmp_path):
    model = load_model("synthetic-filter")
    model.action_bank = model.action_bank[:0]
    folder = model.save_pretrained(tmp_path / "model")
    with pytest.raises(InputError, match="model must keep training data to draw from in its action_bank, got none"):
        gym.make(ID, model=str(folder))


@pytest.mark.parametrize("option", ["horizon", "further"])
def test_sizes_beyond_memory(option):
    with pytest.raises(InputError, match=r"=1000000000000.* must fit into this machine's"):
        Imagined(**{option: 10**12}).sample(0, [0])
