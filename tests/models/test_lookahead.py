"""What observations are worth by imagined ones on forks: closed forms, the filter's kernel, and models of all kinds."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gents_gym import Feedback, InputError, TaskInfo, load_model, make_tasks
from gents_gym.checks import TaskError
from gents_gym.models.action import PerAction
from gents_gym.models.exact import ExactModel
from gents_gym.models.lookahead import look_ahead, look_ahead_on_forks
from gents_gym.numerics.cubature import hermite_rule
from gents_gym.types import LooksAhead

COUNTS = np.array([1, 4, 64])
N_TASKS, STEPS, SIZE = 3, 6, 8


class Beta:
    """Counts of ones and zeros; the first action of a task begins with nine of each."""

    def start(self, action_features):
        return np.where(action_features[:, :1] > 0, 9.0, 1.0) * np.ones((len(action_features), 2))

    def predict(self, state, context):
        return state[:, 0] / state.sum(axis=1)

    def append(self, state, context, outcome, where=None):
        counts = np.stack([outcome, 1 - outcome], axis=1)
        return state + (counts if where is None else counts * where[:, None])


def followed(model, name="synthetic", n_actions=4, **options):
    """Return tasks, their info with known contexts, and the belief after some decisions, with the current context."""
    tasks = make_tasks(name, horizon=STEPS + SIZE + 1, n_actions=n_actions, **options).sample(1, range(N_TASKS))
    info = TaskInfo(
        tasks.action_features,
        n_actions,
        tasks.context_dim,
        tasks.horizon,
        tasks.reward_fn,
        likelihood=tasks.likelihood,
        truth=tasks.truth,
        known_contexts=tasks.contexts,
    )
    model = ExactModel(tasks.truth) if model == "exact" else model
    belief = model.begin(info, [np.random.default_rng(i) for i in range(N_TASKS)])
    slots = np.arange(N_TASKS)
    for t in range(STEPS):
        action = (slots + t) % n_actions
        belief.decide(tasks.contexts[:, t], action)
        belief.observe(Feedback(slots, np.full(N_TASKS, t), tasks.outcomes[slots, t, action]))
    return info, belief, tasks.contexts[:, STEPS], tasks.contexts[:, STEPS + 1 :]


def both(model, **options):
    """Return the outlook of the model's own way and that of forks, in the same imagined contexts."""
    info, belief, context, imagined = followed(model, **options)
    own = look_ahead(belief, info, context, COUNTS, SIZE, "given")
    before = belief.expected(imagined)
    forks = look_ahead_on_forks(belief, info, STEPS, context, imagined, COUNTS)
    assert np.array_equal(belief.expected(imagined), before)  # forks observe; the belief does not
    return own, forks


def test_one_binary_observation_is_exact_in_both_ways():
    own, forks = both(load_model("synthetic-filter"))
    assert own.gains.shape == (N_TASKS, 4, 3)
    assert own.gains.max() > 0.01
    assert own.gains[..., 0] == pytest.approx(forks.gains[..., 0], abs=1e-5)
    # More observations move probabilities in the one way and their logits in the other.
    assert own.gains == pytest.approx(forks.gains, abs=0.02)
    assert np.corrcoef(own.gains[..., 2].ravel(), forks.gains[..., 2].ravel())[0, 1] > 0.95
    assert own.shares.sum(axis=1).max() <= 1
    assert np.corrcoef(own.shares.ravel(), forks.shares.ravel())[0, 1] > 0.8


def test_actions_apart_are_as_forks_of_whole_tasks():
    """Of a per-action model, only the observed action's own predictions move."""
    own, forks = both(load_model("synthetic-paper"))
    assert own.gains == pytest.approx(forks.gains, abs=1e-6)
    assert own.shares == pytest.approx(forks.shares, abs=1e-4)


def test_gaussian_observations_agree_up_to_the_rules_error():
    """The kernel's closed form is exact; forks know an outcome's spread from draws, and integrate by seven nodes."""
    own, forks = both(load_model("synthetic-filter-gaussian"), outcomes="gaussian")
    assert own.gains.max() > 0.05
    assert own.gains == pytest.approx(forks.gains, abs=0.03, rel=0.15)


def test_counts_of_ones_and_zeros_have_a_closed_form():
    """After n/2 ones and n/2 zeros the mean has variance 1/4 / (n + 1), and k more outcomes take k / (n + k) of it."""
    info = TaskInfo(np.array([[[1.0], [-1.0]]]), 2, 1, 10)
    belief = PerAction(Beta()).begin(info, [np.random.default_rng(0)])
    found = look_ahead(belief, info, np.zeros((1, 1)), COUNTS, 5)
    for a, n in ((0, 18), (1, 2)):
        up, down = (n / 2 + 1) / (n + 1), (n / 2) / (n + 1)
        assert found.gains[0, a, 0] == pytest.approx((max(up, 0.5) + max(down, 0.5)) / 2 - 0.5, abs=1e-6)
        nodes, weights = hermite_rule(7)
        for i in (1, 2):
            variance = 0.25 / (n + 1) * COUNTS[i] / (n + COUNTS[i])  # of the posterior mean after k outcomes
            wanted = weights @ np.maximum(np.sqrt(variance) * nodes, 0)
            assert found.gains[0, a, i] == pytest.approx(wanted, rel=1e-4)
    assert found.shares[0].tolist() == pytest.approx([1, 0])  # the first of two equal actions, in every context


def test_rewards_are_those_of_the_task():
    gains = []
    for reward_fn in (lambda y: y, lambda y: 1 - 0.5 * y, lambda y: 0.3 + 0 * y):
        info = TaskInfo(np.array([[[1.0], [-1.0]]]), 2, 1, 10, reward_fn)
        belief = PerAction(Beta()).begin(info, [np.random.default_rng(0)])
        gains.append(look_ahead(belief, info, np.zeros((1, 1)), COUNTS, 5).gains)
    assert gains[1] == pytest.approx(0.5 * gains[0], abs=1e-7)
    assert gains[2] == pytest.approx(0 * gains[0])


def pooled():
    sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
    from joint_model import Pooled

    return Pooled(n_draws=50)


@pytest.mark.parametrize(
    ("model", "options"),
    [
        (lambda: load_model("synthetic-paper"), {}),
        (lambda: load_model("synthetic-filter-categorical"), {"outcomes": "categorical"}),
        (lambda: "exact", {}),
        (lambda: "exact", {"outcomes": "gaussian"}),
        (lambda: "exact", {"outcomes": "categorical"}),
        (pooled, {}),
    ],
    ids=["paper", "categorical", "exact", "exact gaussian", "exact categorical", "joint"],
)
def test_all_kinds_of_models_look_ahead(model, options):
    info, belief, context, _ = followed(model(), **options)
    found = look_ahead(belief, info, context, COUNTS, SIZE, "given")
    assert found.gains.shape == (N_TASKS, 4, 3)
    assert found.shares.shape == (N_TASKS, 4)
    assert found.gains.min() > -1e-9
    assert found.gains[..., 0].max() > 1e-4
    assert (found.gains[..., 2] >= found.gains[..., 0] - 0.01).all()


def test_gaussian_outcomes_of_the_exact_posterior_are_worth_what_the_filter_says():
    """Both are Bayesian linear regression, and the filter's prior is fitted to p*."""
    exact, filtered = (
        look_ahead(belief, info, context, COUNTS, SIZE, "given").gains
        for info, belief, context, _ in (
            followed(model, outcomes="gaussian") for model in ("exact", load_model("synthetic-filter-gaussian"))
        )
    )
    assert exact == pytest.approx(filtered, abs=0.05, rel=0.25)


def test_a_belief_without_the_verb_is_served_by_forks():
    info, belief, context, imagined = followed("exact", outcomes="gaussian")
    assert not isinstance(belief, LooksAhead)
    assert isinstance(followed(load_model("synthetic-filter"))[1], LooksAhead)
    found = look_ahead(belief, info, context, COUNTS, SIZE, "given")
    again = followed("exact", outcomes="gaussian")[1]
    again.complete(context, SIZE + 1, 1, "given", np.zeros((N_TASKS, 1), int))  # as many random numbers
    wanted = look_ahead_on_forks(again, info, STEPS, context, imagined, COUNTS)
    assert np.array_equal(found.gains, wanted.gains)


@pytest.mark.parametrize("joint", [False, True])
def test_an_error_in_imagination_names_the_task(joint):
    """A model that fails once an outcome of the second task's third action is appended."""

    class Trap(Beta):
        def append(self, state, context, outcome, where=None):
            after = super().append(state, context, outcome, where)
            after[np.flatnonzero(state[:, 0] == 5.0)] = -1.0
            return after

        def start(self, action_features):
            return np.where(action_features == 7, 5.0, 1.0) * np.ones((len(action_features), 2))

        def predict(self, state, context):
            return np.where(state[:, 0] < 0, np.nan, 0.5)

    features = np.zeros((3, 4, 1))
    features[1, 2] = 7
    info = TaskInfo(features, 4, 1, 10)
    belief = PerAction(Trap()).begin(info, [np.random.default_rng(i) for i in range(3)])
    given = (np.zeros((3, 1)), np.zeros((3, 5, 1)), COUNTS)
    with pytest.raises(TaskError) as refused:
        look_ahead_on_forks(belief, info, 0, *given) if joint else belief.look_ahead(given[0], COUNTS, 5)
    assert refused.value.position == 1


def test_what_cannot_be_imagined_is_refused():
    _, belief, context, _ = followed(load_model("synthetic-filter"))
    with pytest.raises(InputError, match="size must be at least 1, got 0"):
        belief.look_ahead(context, COUNTS, 0)
    with pytest.raises(InputError, match="unknown context model 'sen'"):
        belief.look_ahead(context, COUNTS, 4, "sen")


@pytest.mark.parametrize("kind", ["filter", "single actions", "forks"])
def test_an_outlook_among_some_is_that_of_a_task_that_has_these_alone(kind):
    """Two of four actions against a belief of tasks with two, with the same outcomes of these."""
    model = PerAction(Beta()) if kind == "single actions" else load_model("synthetic-filter")
    info, belief, context, imagined = followed(model)
    columns = np.tile([2, 0], (N_TASKS, 1))
    slots = np.arange(N_TASKS)
    few = TaskInfo(
        info.action_features[:, [2, 0]],
        2,
        info.context_dim,
        info.horizon,
        known_contexts=info.known_contexts,
    )
    alone = model.begin(few, [np.random.default_rng(i) for i in range(N_TASKS)])
    state = belief.state()
    for t in range(STEPS):
        action = state["actions"][:, t]
        alone.decide(state["contexts"][:, t], np.where(action == 0, 1, 0))
        seen = slots[np.isin(action, [0, 2])]
        alone.observe(Feedback(seen, np.full(len(seen), t), state["outcomes"][seen, t]))
    if kind == "forks":
        found = look_ahead_on_forks(belief, info, STEPS, context, imagined, COUNTS, columns)
        expected = look_ahead_on_forks(alone, few, STEPS, context, imagined, COUNTS)
    else:
        found = look_ahead(belief, info, context, COUNTS, SIZE, "given", columns)
        expected = look_ahead(alone, few, context, COUNTS, SIZE, "given")
    assert np.allclose(found.gains, expected.gains, atol=1e-6)
    assert np.allclose(found.shares, expected.shares, atol=1e-6)
    assert found.gains.any()
