"""The filter that forgets: against the exact walk, its own row-by-row path, and what arrives late."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from gents_gym import ExactModel, Feedback, InputError, TaskInfo, make_tasks
from gents_gym.models.belief import RowByRow
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.testing import check_model

B, A, T, RATE = 3, 4, 20, 0.1
both = pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])


def make_model(outcomes, seed=0):
    """A model whose parameters are all its own."""
    model = FilterModel(FilterConfig(2, 6, likelihood=outcomes, forgetting=1))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    model.log_forgetting.data.fill_(1.0)
    model.bank = torch.randn(9, 6, generator=generator)
    return model.eval()


def true_model():
    """The Gaussian filter with nature's own numbers, for actions whose features are 0."""
    model = FilterModel(FilterConfig(2, 6, likelihood="gaussian", forgetting=1))
    with torch.no_grad():
        model.prior_mean[1:, 0] = 1
        model.prior_scale[1:, 0] = np.log(0.25)
        model.log_forgetting.fill_(np.log(-T * np.log(1 - RATE)))  # per unit of t/T
        model.form.set_noise(1.0)
    return model.eval()


def draw(outcomes):
    return make_tasks("drifting", outcomes=outcomes, rate=RATE, n_actions=A, horizon=T).sample(2, range(B))


def begin(model, tasks, features=None):
    features = tasks.action_features if features is None else features
    info = TaskInfo(features, A, 6, T, likelihood=tasks.likelihood, known_contexts=tasks.known_contexts)
    return model.begin(info, [np.random.default_rng(i) for i in range(B)])


def play(belief, tasks, steps, order=None):
    for t in range(steps):
        belief.decide(tasks.contexts[:, t], (np.arange(B) + t * t) % A)
    for t in range(steps) if order is None else order:
        outcome = tasks.outcomes[np.arange(B), t, (np.arange(B) + t * t) % A]
        belief.observe(Feedback(np.arange(B), np.full(B, t), outcome))
    return belief


def test_with_natures_numbers_it_is_the_exact_walk():
    tasks, still = draw("gaussian"), np.zeros((B, A, 2), np.float32)
    models = true_model(), ExactModel(tasks.truth)
    for steps in (0, 1, 9):
        mine, exact = (play(begin(model, tasks, still), tasks, steps) for model in models)
        context = tasks.contexts[:, steps]
        assert np.allclose(mine.expected(context), exact.expected(context), atol=1e-4)
        assert np.allclose(mine.variance(context), exact.variance(context), rtol=1e-3, atol=1e-5)


def test_with_natures_numbers_sequences_are_as_likely_as_by_the_exact_walk():
    setting = make_tasks("drifting", outcomes="gaussian", rate=RATE, horizon=T)
    rows = setting.sample_actions(0, range(5), T)
    z = np.zeros((5, 2), np.float32)
    exact = ExactModel(setting.truth).log_marginal(z, rows.contexts, rows.outcomes, np.random.default_rng(0))
    with torch.no_grad():
        mine = true_model().log_prob(*(torch.from_numpy(part.copy()) for part in (z, rows.contexts, rows.outcomes)))
    assert np.allclose(mine.sum(1), exact, atol=1e-3)


@both
def test_the_compiled_kernel_is_the_row_by_row_path(outcomes):
    model, tasks = make_model(outcomes), draw(outcomes)
    kernel, slow = model.kernel(), RowByRow(model, model.likelihood)
    belief = play(begin(model, tasks), tasks, 8)
    state, x = belief._state, tasks.contexts[:, 8:11]
    assert np.allclose(kernel.predict(state, x), slow.predict(state, x), atol=1e-5)
    rng = np.random.default_rng(0)
    noise = model.likelihood.noise(rng, (B, T, A))
    played = np.where(rng.random((B, T)) < 0.3, rng.integers(A, size=(B, T)), -1)
    seen = rng.integers(2, size=(B, T)).astype(np.float32)
    given = played, seen, noise
    fast = kernel.generate(state, kernel.rows(tasks.contexts), *given)
    assert np.allclose(fast, slow.generate(state, tasks.contexts, *given), atol=2e-4)
    task, action, outcome = np.array([0, 2]), np.array([1, 3]), np.array([1, 0], np.float32)
    later = tasks.contexts[[0, 2], 12]
    own = type(state)(*(part.clone() for part in state))
    kept = slow.absorb(state, task, action, later, outcome, (B, A))
    fast_state = kernel.absorb(own, task, action, kernel.rows(later), outcome, (B, A))
    for left, right in zip(kept, fast_state, strict=True):
        assert np.allclose(left, right, atol=1e-5)


@both
def test_both_paths_through_a_history_agree(outcomes):
    model, rows = (
        make_model(outcomes),
        make_tasks("drifting", outcomes=outcomes, horizon=T).sample_actions(0, range(3), 7),
    )
    z, x, y = (torch.from_numpy(part.copy()) for part in (rows.action_features, rows.contexts, rows.outcomes))
    with torch.no_grad():
        assert torch.allclose(model.log_prob(z, x, y), super(FilterModel, model).log_prob(z, x, y), atol=1e-5)


@both
def test_what_comes_late_is_put_in_its_place(outcomes):
    model, tasks = make_model(outcomes), draw(outcomes)
    first, second = (play(begin(model, tasks), tasks, 9, order) for order in (None, [3, 0, 8, 1, 7, 6, 2, 5, 4]))
    for left, right in zip(first._state, second._state, strict=True):
        assert torch.allclose(left, right, atol=1e-5)


def test_what_is_believed_returns_to_the_prior():
    model, tasks = make_model("gaussian"), draw("gaussian")
    far = tasks.contexts[:, 9].copy()
    far[:, -1] = 100
    fresh, old = (play(begin(model, tasks), tasks, steps) for steps in (0, 9))
    assert np.allclose(fresh.expected(far), old.expected(far), atol=1e-4)
    assert np.allclose(fresh.variance(far), old.variance(far), rtol=1e-4)
    assert not np.allclose(fresh.expected(tasks.contexts[:, 9]), old.expected(tasks.contexts[:, 9]), atol=1e-2)


@both
def test_imagined_contexts_carry_the_right_times(outcomes):
    model, tasks = make_model(outcomes), draw(outcomes)
    belief = play(begin(model, tasks), tasks, 5)
    for contexts in (None, "given"):
        found = belief.complete(tasks.contexts[:, 5], draws=2, contexts=contexts).contexts
        assert np.allclose(found[..., -1], np.arange(T) / T)
        assert np.isin(found[:, :, 6:, 0], model.bank.numpy()[:, 0]).all()
    beyond = belief.complete(tasks.contexts[:, 5], rows=T, contexts="given").contexts  # past the horizon: of the bank
    assert np.isin(beyond[:, :, T:, -1], model.bank.numpy()[:, -1]).all()
    assert not np.allclose(belief.complete(tasks.contexts[:, 5], contexts="bank").contexts[..., -1], np.arange(T) / T)


@both
def test_it_keeps_the_contract(outcomes):
    tasks = f"drifting(n_actions=4, horizon=14, outcomes={outcomes})"
    assert check_model(make_model(outcomes), tasks, steps=6) is None


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"forgetting": 2}, "forgetting must be 0 or 1, got 2"),
        ({"forgetting": 1, "context_features": 3}, "context_features must be 0 with forgetting, got 3"),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(InputError, match=message):
        FilterConfig(2, 6, **sizes)


@pytest.mark.parametrize("value", [np.inf, "text"])
def test_what_is_known_of_contexts_is_a_number_or_unknown(value):
    tasks = draw("gaussian")
    known = np.full((B, T, 6), np.nan).astype(object if value == "text" else float)
    known[0, 0, 0] = value
    info = TaskInfo(tasks.action_features, A, 6, T, likelihood=tasks.likelihood, known_contexts=known)
    with pytest.raises(InputError, match="known_contexts must be"):
        make_model("gaussian").begin(info, [np.random.default_rng(i) for i in range(B)])


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian", "row by row", "transformer"])
def test_a_late_outcome_after_old_rows_were_dropped(kind, random_model, monkeypatch):
    """Rows 0 to 6 are dropped, 5 without its outcome; then 7 and 9 come late: as if all came in order, but for 5."""
    tasks, order = draw("gaussian" if kind == "gaussian" else "bernoulli"), [0, 2, 1, 3, 4, 6, 8, 10]
    model = random_model(positions=1) if kind == "transformer" else make_model(str(tasks.likelihood).lower())
    if kind == "row by row":
        monkeypatch.setattr(FilterModel, "kernel", lambda self: RowByRow(self, self.likelihood))
    if kind == "transformer":
        tasks = replace(tasks, contexts=tasks.contexts[..., :5], known_columns=())
    contexts = tasks.contexts
    info = TaskInfo(tasks.action_features, A, contexts.shape[2], likelihood=tasks.likelihood)

    def begin():
        return model.begin(info, [np.random.default_rng(i) for i in range(B)])

    wanted = play(begin(), tasks, 11, [0, 1, 2, 3, 4, 6, 7, 8, 9, 10])
    short = play(begin(), tasks, 11, order)
    short.forget(3)
    short.forget(4)
    restored = begin()
    restored.restore(short.state())
    for belief in (short, restored, short.fork(np.arange(B))):
        for t in (9, 7):
            outcome = tasks.outcomes[np.arange(B), t, (np.arange(B) + t * t) % A]
            belief.observe(Feedback(np.arange(B), np.full(B, t - 7), outcome))
        np.testing.assert_array_equal(belief.expected(contexts[:, 11]), wanted.expected(contexts[:, 11]))
    short.add(tasks.action_features[:, :1])
    wanted.add(tasks.action_features[:, :1])
    np.testing.assert_array_equal(short.expected(contexts[:, 11]), wanted.expected(contexts[:, 11]))
