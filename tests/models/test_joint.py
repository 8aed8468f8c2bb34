"""The joint model against the exact posterior, single filters, and numbers that it has to find again."""

import numpy as np
import pytest
import torch

from gents_gym import ExactModel, Feedback, InputError, TaskInfo, load_model, make_tasks
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.joint import JointConfig, JointModel
from gents_gym.testing import check_model

B, A, T = 3, 4, 20


def make_model(outcomes="gaussian", share=0.6, row_effect=0.0):
    """A model with nature's own numbers, for actions whose features are 0."""
    model = JointModel(JointConfig(2, 5, likelihood=outcomes))
    with torch.no_grad():
        model.prior_mean[1:, 0] = 1
        model.prior_scale[1:, 0] = np.log(0.25)
        model.share.fill_(share)
        model.row_effect.fill_(row_effect)
    if outcomes == "gaussian":
        model.form.set_noise(1.0)
    model.bank = torch.randn(9, 5, generator=torch.Generator().manual_seed(0))
    return model.eval()


def draw(outcomes="gaussian", **options):
    return make_tasks("correlated", outcomes=outcomes, n_actions=A, horizon=T, **options).sample(2, range(B))


def play(model, tasks, steps, n_actions=A):
    features = np.zeros((B, n_actions, 2), np.float32)
    info = TaskInfo(features, n_actions, 5, T, likelihood=tasks.likelihood, known_contexts=tasks.contexts)
    belief = model.begin(info, [np.random.default_rng(i) for i in range(B)])
    for t in range(steps):
        action = (np.arange(B) + t * t) % min(A, n_actions)
        belief.decide(tasks.contexts[:, t], action)
        belief.observe(Feedback(np.arange(B), np.full(B, t), tasks.outcomes[np.arange(B), t, action]))
    return belief


def test_with_natures_numbers_it_is_the_exact_posterior():
    tasks = draw(correlation=0.6)
    for steps in (0, 1, 9):
        mine, exact = (play(model, tasks, steps) for model in (make_model(), ExactModel(tasks.truth)))
        context = tasks.contexts[:, steps : steps + 2]
        assert np.allclose(mine.expected(context), exact.expected(context), atol=1e-4)
        assert np.allclose(mine.variance(context), exact.variance(context), rtol=1e-3)


def test_its_tables_have_the_exact_ones_moments():
    """Cells of a row too, which row effects join."""
    tasks = draw(correlation=0.6, row_effect=0.5)
    tables = []
    for model in (make_model(row_effect=0.5), ExactModel(tasks.truth)):
        belief = play(model, tasks, 9)
        found = belief.complete(tasks.contexts[:, 9], draws=4000, contexts="given").outcomes[0]  # (M, T, A)
        tables.append(found[:, 5:12].reshape(4000, -1).astype(np.float64))
    mine, exact = tables
    assert np.allclose(mine.mean(axis=0), exact.mean(axis=0), atol=0.2)
    assert np.allclose(np.cov(mine.T), np.cov(exact.T), atol=0.45)


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])
def test_without_a_task_effect_it_is_the_filter(outcomes):
    joint, single = make_model(outcomes, share=0.0), FilterModel(FilterConfig(2, 5, likelihood=outcomes))
    single.load_state_dict({k: v for k, v in joint.state_dict().items() if k in single.state_dict()} | {
        "bank": torch.zeros(0, 5)})  # fmt: skip
    tasks = draw(outcomes)
    beliefs = [play(model, tasks, 8) for model in (joint, single.eval())]
    context = tasks.contexts[:, 8]
    for verb in ("expected", "variance"):
        mine, theirs = (getattr(belief, verb)(context) for belief in beliefs)
        assert np.allclose(mine, theirs, atol=1e-4)


def test_an_action_more_shares_the_tasks_effect():
    tasks, model = draw(correlation=0.6), make_model()
    few, all_of_them = play(model, tasks, 8, n_actions=2), play(model, tasks, 0)
    few.add(np.zeros((B, 2, 2), np.float32))
    for t in range(8):
        action = (np.arange(B) + t * t) % 2
        all_of_them.decide(tasks.contexts[:, t], action)
        all_of_them.observe(Feedback(np.arange(B), np.full(B, t), tasks.outcomes[np.arange(B), t, action]))
    context = tasks.contexts[:, 8]
    assert np.allclose(few.expected(context), all_of_them.expected(context), atol=1e-6)


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])
def test_it_keeps_the_contract(outcomes):
    tasks = f"correlated(n_actions=4, horizon=14, outcomes={outcomes})"
    assert check_model(make_model(outcomes), tasks, steps=6) is None


def test_it_is_saved_and_read(tmp_path):
    model = make_model(share=0.4, row_effect=0.2)
    read = load_model(model.save_pretrained(tmp_path / "model"))
    assert isinstance(read, JointModel)
    assert torch.equal(read.share, model.share)
    assert torch.equal(read.row_effect, model.row_effect)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"head_width": 4}, "head_width must be 0 for a joint model, got 4"),
        ({"forgetting": 1}, "forgetting must be 0 for a joint model, got 1"),
        (
            {"likelihood": "categorical(3)"},
            r"outcomes must be bernoulli or gaussian for a joint model, got categorical",
        ),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(InputError, match=message):
        JointConfig(2, 5, **sizes)
