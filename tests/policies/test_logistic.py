"""The batched logistic fit against scikit-learn, run to convergence."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from gents_gym import InputError, make_policy
from gents_gym.policies.logistic import Logistic


def problems(n_tasks, n_rows, n_actions, size, seed, shift=0.0, scale=1.0):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n_tasks, n_rows, size)) * scale
    slopes = rng.normal(size=(n_tasks, size, n_actions))
    logits = contexts @ slopes + shift + rng.normal(size=(n_tasks, 1, n_actions))
    return contexts, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


def scikit(contexts, outcomes, C=1.0):
    """The coefficients by scikit-learn, intercept first, (B, A, 1+D)."""
    n_tasks, _, size = contexts.shape
    found = np.zeros((n_tasks, outcomes.shape[2], size + 1))
    for b in range(n_tasks):
        for a in range(outcomes.shape[2]):
            model = LogisticRegression(C=C, tol=1e-12, max_iter=10000).fit(contexts[b], outcomes[b, :, a])
            found[b, a] = [model.intercept_[0], *model.coef_[0]]
    return found


@pytest.mark.parametrize(
    ("rows", "shift", "scale"),
    [(500, 0, 1), (60, 0, 1), (300, -4, 1), (300, 4, 1), (200, 0, 8), (200, 1, 0.05)],
    ids=["plain", "few rows", "rare ones", "rare zeros", "large contexts", "small contexts"],
)
def test_coefficients_are_scikit_learns(rows, shift, scale):
    contexts, outcomes = problems(8, rows, 5, 5, seed=rows, shift=shift, scale=scale)
    mixed = (outcomes.min(axis=1) != outcomes.max(axis=1)).all(axis=0)  # scikit-learn needs both classes
    outcomes = outcomes[:, :, mixed]
    assert outcomes.shape[2] >= 3
    found = Logistic().fit(contexts, outcomes).coefficients
    assert np.abs(found - scikit(contexts, outcomes)).max() < 1e-4


def test_the_penalty_is_an_argument():
    contexts, outcomes = problems(2, 100, 3, 4, seed=1)
    for C in (0.01, 100.0):
        found = make_policy("logistic", C=C).fit(contexts, outcomes).coefficients
        assert np.abs(found - scikit(contexts, outcomes, C)).max() < 1e-4


def test_separable_data_have_scikit_learns_finite_optimum():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(3, 80, 2)) * 20
    outcomes = (contexts[:, :, :1] + 3 > 0).astype(float)
    policy = Logistic().fit(contexts, outcomes)
    assert np.isfinite(policy.coefficients).all()
    assert np.abs(policy.coefficients - scikit(contexts, outcomes)).max() < 1e-4
    alone = np.zeros((1, 80, 1))
    alone[0, np.argmax(contexts[0, :, 0])] = 1  # a single one, separable
    assert np.abs(Logistic().fit(contexts[:1], alone).coefficients - scikit(contexts[:1], alone)).max() < 1e-4


def test_one_class_columns_predict_their_constant():
    contexts, outcomes = problems(2, 50, 4, 3, seed=3)
    outcomes[0, :, 1], outcomes[1, :, 2] = 0, 1
    policy = Logistic().fit(contexts, outcomes)
    chances = policy.probability(contexts)
    assert (chances[0, :, 1] == 0).all()
    assert (chances[1, :, 2] == 1).all()
    rest = np.ones((2, 4), bool)
    rest[0, 1] = rest[1, 2] = False
    for b, a in np.argwhere(rest):
        expected = scikit(contexts[b : b + 1], outcomes[b : b + 1, :, a : a + 1])[0, 0]
        assert np.abs(policy.coefficients[b, a] - expected).max() < 1e-4


def test_probabilities_are_scikit_learns_for_one_context_and_for_many():
    contexts, outcomes = problems(3, 200, 2, 4, seed=4)
    policy = Logistic().fit(contexts, outcomes)
    model = LogisticRegression(tol=1e-12, max_iter=10000).fit(contexts[1], outcomes[1, :, 1])
    assert np.allclose(policy.probability(contexts)[1, :, 1], model.predict_proba(contexts[1])[:, 1], atol=1e-6)
    for t in (0, 7):
        assert np.allclose(policy.probability(contexts[:, t]), policy.probability(contexts)[:, t], atol=1e-12)


def test_a_warm_start_changes_the_work_and_not_the_optimum():
    contexts, outcomes = problems(4, 300, 3, 5, seed=5)
    cold = Logistic().fit(contexts, outcomes)
    more = np.concatenate([contexts, contexts[:, :3]], axis=1), np.concatenate([outcomes, outcomes[:, :3]], axis=1)
    warm = Logistic().fit(*more, warm_start=cold)
    assert np.abs(warm.coefficients - Logistic().fit(*more).coefficients).max() < 1e-6
    brief = Logistic(max_iterations=1)
    assert np.abs(brief.fit(*more, warm_start=warm).coefficients - warm.coefficients).max() < 1e-6
    with pytest.warns(UserWarning, match="stopped after 1 steps"):
        brief.fit(*more)


@pytest.mark.parametrize(("shift", "scale"), [(0, 1), (-3, 1), (0, 0.3)])
def test_the_start_is_so_near_that_five_steps_are_enough(shift, scale):
    contexts, outcomes = problems(8, 500, 5, 5, seed=21, shift=shift, scale=scale)
    few = Logistic(max_iterations=5).fit(contexts, outcomes)  # a warning would be an error
    assert np.abs(few.coefficients - Logistic().fit(contexts, outcomes).coefficients).max() < 1e-9


def test_a_bad_warm_start_still_finds_the_optimum():
    contexts, outcomes = problems(2, 100, 2, 3, seed=6)
    good = Logistic().fit(contexts, outcomes)
    start = Logistic().fit(contexts, 1 - outcomes)
    far = type(good)(start.coefficients * 50, constant=good.constant)
    assert np.abs(Logistic().fit(contexts, outcomes, warm_start=far).coefficients - good.coefficients).max() < 1e-6


def test_scores_are_predicted_rewards():
    contexts, outcomes = problems(2, 50, 3, 3, seed=7)
    policy = Logistic(reward_fn=lambda y: 0.9 - 0.7 * y).fit(contexts, outcomes)
    assert np.allclose(policy.scores(contexts), 0.9 - 0.7 * policy.probability(contexts))
    assert np.array_equal(Logistic().fit(contexts, outcomes).scores(contexts), policy.probability(contexts))


def test_a_tasks_fit_does_not_depend_on_its_batch():
    contexts, outcomes = problems(6, 120, 4, 5, seed=8)
    together = Logistic().fit(contexts, outcomes).coefficients
    alone = np.concatenate([Logistic().fit(contexts[i : i + 1], outcomes[i : i + 1]).coefficients for i in range(6)])
    assert np.abs(together - alone).max() < 1e-7


@pytest.mark.parametrize(
    ("contexts", "outcomes", "message"),
    [
        (np.zeros((2, 5)), np.zeros((2, 5, 3)), r"contexts must have shape \(B, T, D\), got \(2, 5\)"),
        (np.zeros((2, 5, 3)), np.zeros((2, 4, 3)), r"outcomes must have shape \(B, T, A\), got \(2, 4, 3\)"),
        (
            np.zeros((2, 5, 3)),
            np.full((2, 5, 3), 0.5),
            "outcomes must be 0 or 1, got 0.5",
        ),
        (np.zeros((2, 0, 3)), np.zeros((2, 0, 3)), "the number of rows T must be at least 1, got 0"),
        (np.zeros((2, 5, 0)), np.zeros((2, 5, 3)), "the context size D must be at least 1, got 0"),
        (np.full((2, 5, 3), np.inf), np.zeros((2, 5, 3)), "contexts must be finite, got inf"),
    ],
)
def test_bad_tables(contexts, outcomes, message):
    with pytest.raises(InputError, match=message):
        Logistic().fit(contexts, outcomes)


def test_saturated_data_are_solved():
    """Separable by the intercept's side alone: its curvature underflows on the way."""
    contexts = np.linspace(-1, 1, 40)[None, :, None] * 1e4
    outcomes = (contexts > 30).astype(float)
    found = Logistic().fit(contexts, outcomes).coefficients
    assert np.abs(found - scikit(contexts, outcomes)).max() < 1e-4


@pytest.mark.parametrize("scale", [1e12, 1e100, 1e200, np.inf])
def test_a_diverged_warm_start_is_left_behind(scale):
    contexts, outcomes = problems(2, 100, 2, 3, seed=6)
    good = Logistic().fit(contexts, outcomes)
    if np.isinf(scale):
        with pytest.raises(InputError, match="warm_start must be finite"):
            Logistic().fit(contexts, outcomes, warm_start=type(good)(good.coefficients * scale, constant=good.constant))
        return
    far = type(good)(np.full_like(good.coefficients, scale), constant=good.constant)
    assert np.abs(Logistic().fit(contexts, outcomes, warm_start=far).coefficients - good.coefficients).max() < 1e-6


def test_duplicated_columns_are_no_obstacle():
    contexts, outcomes = problems(1, 100, 2, 2, seed=9)
    doubled = np.concatenate([contexts, contexts], axis=2)
    found = Logistic().fit(doubled, outcomes).coefficients
    assert np.abs(found - scikit(doubled, outcomes)).max() < 1e-4
    assert np.isfinite(Logistic().fit(doubled * 1e6, outcomes).coefficients).all()
    with pytest.warns(UserWarning, match="logistic fits stopped after 100 steps"):
        assert np.isfinite(Logistic().fit(doubled * 1e8, outcomes).coefficients).all()


def test_weights_are_scikit_learns_sample_weights():
    contexts, outcomes = problems(2, 80, 3, 4, seed=11)
    weights = np.random.default_rng(0).integers(3, size=outcomes.shape).astype(float)
    found = Logistic().fit(contexts, outcomes, weights=weights).coefficients
    for b in range(2):
        for a in range(3):
            model = LogisticRegression(tol=1e-12, max_iter=10000)
            model.fit(contexts[b], outcomes[b, :, a], sample_weight=weights[b, :, a])
            assert np.abs(found[b, a] - [model.intercept_[0], *model.coef_[0]]).max() < 1e-4


def test_a_column_whose_counting_rows_are_equal_is_a_constant():
    contexts, outcomes = problems(1, 30, 2, 3, seed=12)
    weights = np.ones_like(outcomes)
    weights[0, :, 0] = outcomes[0, :, 0]
    assert (Logistic().fit(contexts, outcomes, weights=weights).probability(contexts)[0, :, 0] == 1).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_kernel_and_the_line_search_agree(monkeypatch, weighted):
    contexts, outcomes = problems(4, 90, 3, 4, seed=13)
    weights = np.random.default_rng(0).integers(3, size=outcomes.shape).astype(float) if weighted else None
    fast = Logistic().fit(contexts, outcomes, weights=weights).coefficients
    name = "gents_gym.policies.logistic.fit_logistic"
    monkeypatch.setattr(name, lambda contexts, outcomes, *_: np.zeros(outcomes[:, 0].shape, bool))
    slow = Logistic().fit(contexts, outcomes, weights=weights).coefficients
    assert np.abs(fast - slow).max() < 1e-7


def test_stopping_early_is_said():
    with pytest.warns(UserWarning, match="logistic fits stopped after 1 steps"):
        Logistic(max_iterations=1).fit(*problems(1, 50, 2, 3, seed=0))


def test_bad_options_and_starts():
    with pytest.raises(InputError, match="C must be above 0, got 0"):
        Logistic(C=0)
    with pytest.raises(InputError, match="max_iterations must be at least 1, got 0"):
        Logistic(max_iterations=0)
    start = Logistic().fit(*problems(2, 20, 3, 3, seed=0))
    with pytest.raises(InputError, match=r"warm_start must have shape \(B, A, 1\+D\)=\(2, 4, 4\), got \(2, 3, 4\)"):
        Logistic().fit(*problems(2, 20, 4, 3, seed=0), warm_start=start)


def test_one_outcome_among_those_that_count_is_a_constant_for_any_weights():
    rng = np.random.default_rng(0)
    contexts, outcomes = rng.normal(size=(3, 997, 2)), np.ones((3, 997, 2))
    weights = rng.random((3, 2, 997)).swapaxes(1, 2)
    assert (Logistic().fit(contexts, outcomes, weights=weights).constant == 1).all()
    weights, outcomes = np.full((3, 997, 2), 1e4), outcomes.copy()
    weights[:, 0], outcomes[:, 0] = 1e-4, 0  # too little to show in a rate in float32
    assert np.isnan(Logistic().fit(contexts, outcomes, weights=weights).constant).all()
    with pytest.raises(InputError, match="weights must be at least 0, got -1"):
        Logistic().fit(contexts, outcomes, weights=-np.ones((3, 997, 2)))
