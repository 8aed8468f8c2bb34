"""The MLP policy class against scikit-learn and against a slow version with the same random numbers."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from gents_gym import InputError, make_policy, make_tasks
from gents_gym.policies.mlp import MLP


def tables(n_tasks=2, n_rows=60, n_actions=3, context_dim=5, seed=0):
    tasks = make_tasks("synthetic", horizon=n_rows, n_actions=n_actions, context_dim=context_dim)
    drawn = tasks.sample(seed, range(n_tasks), "validation")
    return drawn.contexts, drawn.outcomes


def first_weights(policy_class, contexts, outcomes):
    """The weights before any training, found by a step that moves nothing."""
    still = MLP(width=policy_class.width, seed=policy_class.seed, learning_rate=1e-30, max_epochs=1)
    return still.fit(contexts, outcomes)


def as_sklearn(policy, b, a, size, **options):
    """A scikit-learn network that holds weights of ours, ready to go on training."""
    model = MLPClassifier(warm_start=True, shuffle=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rng = np.random.default_rng(0)
        model.set_params(max_iter=1, batch_size="auto").fit(rng.normal(size=(4, size)).astype(np.float32), [0, 1, 0, 1])
    model.set_params(**options)
    units = policy.units[b, a]
    model.coefs_ = [units[:, 1 : 1 + size].T.copy(), units[:, -1:].copy()]
    model.intercepts_ = [units[:, 0].copy(), policy.biases[b, a : a + 1].copy()]
    model.loss_curve_, model.best_loss_, model._no_improvement_count, model.n_iter_, model.t_ = [], np.inf, 0, 0, 0
    return model


@pytest.mark.parametrize(("context_dim", "width", "n_rows"), [(2, 20, 60), (5, 20, 75), (7, 20, 60), (12, 150, 75)])
def test_training_follows_scikit_learn_step_by_step(context_dim, width, n_rows):
    """In one batch the order of the rows is no matter, so both take the same steps."""
    contexts, outcomes = tables(n_rows=n_rows, context_dim=context_dim)
    policy_class = MLP(batch=n_rows, max_epochs=25, alpha=0.01, width=width)
    start, found = first_weights(policy_class, contexts, outcomes), policy_class.fit(contexts, outcomes)
    for b, a in ((0, 0), (1, 2)):
        model = as_sklearn(start, b, a, context_dim, batch_size=n_rows, alpha=0.01, hidden_layer_sizes=(width,))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.set_params(max_iter=25).fit(contexts[b], outcomes[b, :, a])
        theirs = np.column_stack([model.intercepts_[0], model.coefs_[0].T])
        assert np.allclose(found.units[b, a, :, : 1 + context_dim], theirs, atol=2e-5)
        assert np.allclose(found.units[b, a, :, -1], model.coefs_[1][:, 0], atol=2e-5)
        expected = model.predict_proba(contexts[b])[:, 1]
        assert np.allclose(found.probability(contexts)[b, :, a], expected, atol=1e-5)


def slow_fit(x, y, units, bias, uniform, policy_class):
    """One network, trained in plain float64 NumPy; returns its outputs and the epochs."""
    inner, up, bias = units[:, :-1].astype(float), units[:, -1].astype(float), float(bias)
    x = np.concatenate([np.ones((len(x), 1)), x], axis=1).astype(float)
    inner = inner[:, : x.shape[1]]
    parameters = [inner, up, np.array([bias])]
    moments = [[np.zeros_like(p), np.zeros_like(p)] for p in parameters]
    order, best, stale, steps, epochs = np.arange(len(x)), np.inf, 0, 0, 0
    for epoch in range(uniform.shape[1]):
        for i in range(len(x) - 1, 0, -1):
            j = int(uniform[i, epoch] * (i + 1))
            order[[i, j]] = order[[j, i]]
        total = 0.0
        for here in np.split(order, range(policy_class.batch, len(x), policy_class.batch)):
            hidden = np.maximum(x[here] @ parameters[0].T, 0)
            chance = expit(hidden @ parameters[1] + parameters[2])
            penalised = [np.column_stack([np.zeros(len(inner)), parameters[0][:, 1:]]), parameters[1], np.zeros(1)]
            squares = sum((p**2).sum() for p in penalised)
            total += -np.log(np.where(y[here] == 1, chance, 1 - chance)).sum() + 0.5 * policy_class.alpha * squares
            slope = (chance - y[here]) / len(here)
            back = slope[:, None] * parameters[1] * (hidden > 0)
            gradients = [back.T @ x[here], hidden.T @ slope, np.array([slope.sum()])]
            steps += 1
            rate = policy_class.learning_rate * np.sqrt(1 - 0.999**steps) / (1 - 0.9**steps)
            for p, g, share, (first, second) in zip(parameters, gradients, penalised, moments, strict=True):
                g = g + policy_class.alpha * share / len(here)
                first[:] = 0.9 * first + 0.1 * g
                second[:] = 0.999 * second + 0.001 * g**2
                p -= rate * first / (np.sqrt(second) + 1e-8)
        epochs += 1
        stale = stale + 1 if total / len(x) > best - policy_class.tolerance else 0
        best = min(best, total / len(x))
        if stale > policy_class.patience:
            break
    return expit(np.maximum(x @ parameters[0].T, 0) @ parameters[1] + parameters[2]), epochs


@pytest.mark.parametrize("tolerance", [1e-4, 3e-3])
def test_batches_orders_penalty_and_stopping_are_those_of_a_slow_version(tolerance):
    contexts, outcomes = tables()
    policy_class = MLP(batch=25, max_epochs=40, alpha=0.5, width=10, tolerance=tolerance, patience=3)
    start, found = first_weights(policy_class, contexts, outcomes), policy_class.fit(contexts, outcomes)
    uniform = np.random.default_rng([0, 1]).random((60, 40))
    for b, a in ((0, 0), (1, 1)):
        given = (contexts[b], outcomes[b, :, a], start.units[b, a], start.biases[b, a], uniform, policy_class)
        expected, epochs = slow_fit(*given)
        assert found.epochs[b, a] == epochs
        assert np.allclose(found.probability(contexts)[b, :, a], expected, atol=1e-4)
    assert (found.epochs < 40).any() == (tolerance == 3e-3)


def test_oracles_earn_what_scikit_learns_do():
    """16 tasks: the paired 95 % interval of the difference in mean reward lies inside ±5 %."""
    contexts, outcomes = tables(16, 100)
    ours = make_policy("mlp").fit(contexts, outcomes).scores(contexts).argmax(axis=2)
    theirs = np.empty_like(ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for b in range(16):
            fits = [MLPClassifier(random_state=b).fit(contexts[b], column) for column in outcomes[b].T]
            scores = [fit.predict_proba(contexts[b])[:, -1] * fit.classes_[-1] for fit in fits]
            theirs[b] = np.argmax(scores, axis=0)
    rewards = [np.take_along_axis(outcomes, picked[..., None], 2).mean(axis=(1, 2)) for picked in (ours, theirs)]
    difference = rewards[0] - rewards[1]
    reach = abs(difference.mean()) + 1.96 * difference.std(ddof=1) / np.sqrt(16)
    assert reach < 0.05 * rewards[1].mean()


def test_a_table_has_one_policy_alone_and_in_any_batch():
    contexts, outcomes = tables(5)
    together = MLP().fit(contexts, outcomes)
    alone = MLP().fit(contexts[3:4], outcomes[3:4])
    assert np.array_equal(alone.units[0], together.units[3])
    assert np.array_equal(alone.scores(contexts[3:4])[0], together.scores(contexts)[3])
    assert not np.array_equal(MLP(seed=1).fit(contexts, outcomes).units, together.units)


def test_rows_of_weight_zero_are_left_out():
    contexts, outcomes = tables()
    weights = np.zeros_like(outcomes)
    weights[:, :30] = 1
    part = MLP(max_epochs=5).fit(contexts, np.where(weights, outcomes, 1 - outcomes), weights=weights)
    assert np.array_equal(part.units, MLP(max_epochs=5).fit(contexts[:, :30], outcomes[:, :30]).units)
    with pytest.raises(InputError, match="weights must be 0 or 1 for the MLP policy class"):
        MLP().fit(contexts, outcomes, weights=weights / 2)


def test_a_warm_start_shortens_the_training_and_leaves_nothing_else():
    contexts, outcomes = tables()
    earlier = MLP(max_epochs=3).fit(contexts, 1 - outcomes)
    short = MLP(short_epochs=4, short_batch=30, short_learning_rate=0.02).fit(contexts, outcomes, warm_start=earlier)
    fresh = MLP(max_epochs=4, batch=30, learning_rate=0.02).fit(contexts, outcomes)
    assert np.array_equal(short.units, fresh.units)
    assert np.array_equal(short.biases, fresh.biases)
    assert (short.epochs == 4).all()
    full = MLP(max_epochs=6, full=True).fit(contexts, outcomes, warm_start=earlier)
    assert np.array_equal(full.units, MLP(max_epochs=6).fit(contexts, outcomes).units)


def test_a_short_training_chooses_as_a_long_one_nearly_as_often_as_another_seed_does():
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(12, 500, 5))
    chances = 1 / (1 + np.exp(-(contexts @ rng.normal(size=(12, 5, 4)) + 1)))
    outcomes = (rng.random(chances.shape) < chances).astype(np.float32)
    long = MLP().fit(contexts, outcomes)
    choices = {
        "long": long,
        "seed": MLP(seed=1).fit(contexts, outcomes),
        "short": MLP().fit(contexts, outcomes, warm_start=long),
        "shorter": MLP(short_epochs=2).fit(contexts, outcomes, warm_start=long),
    }
    best = {name: policy.logits(contexts).argmax(2) for name, policy in choices.items()}
    agree = {name: (best[name] == best["long"]).mean() for name in ("seed", "short", "shorter")}
    assert agree["short"] > agree["seed"] - 0.03
    assert agree["shorter"] < agree["seed"] - 0.03


def test_columns_of_one_outcome_predict_it_and_rewards_are_applied():
    contexts, outcomes = tables()
    outcomes = outcomes.copy()
    outcomes[0, :, 1], outcomes[1, :, 0] = 1, 0
    policy = make_policy("mlp", reward_fn=lambda y: 1 - y / 2).fit(contexts, outcomes)
    assert (policy.scores(contexts)[0, :, 1] == 0.5).all()
    assert (policy.scores(contexts)[1, :, 0] == 1).all()
    alone = [policy.scores(contexts[:, t]) for t in range(60)]
    assert np.array_equal(np.stack(alone, axis=1), policy.scores(contexts))
    assert np.allclose(policy.scores(contexts), 1 - policy.probability(contexts) / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be at least 1, got 0"),
        ({"max_epochs": 0}, "max_epochs must be at least 1, got 0"),
        ({"learning_rate": 0}, "learning_rate must be above 0, got 0"),
        ({"short_learning_rate": -1}, "short_learning_rate must be above 0, got -1"),
        ({"short_batch": 0}, "short_batch must be at least 1, got 0"),
        ({"full": 1}, "full must be True or False, got 1"),
        ({"alpha": -1}, "alpha must be at least 0, got -1"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        MLP(**options)


def test_bad_tables():
    contexts, outcomes = tables()
    with pytest.raises(InputError, match=r"outcomes must be 0 or 1, got 0\.5"):
        MLP().fit(contexts, outcomes / 2)
    with pytest.raises(InputError, match=r"outcomes must have shape"):
        MLP().fit(contexts, outcomes[:, 1:])


def test_contexts_of_another_size_are_refused():
    contexts, outcomes = tables()
    policy = MLP(max_epochs=1).fit(contexts, outcomes)
    for wrong in (contexts[..., :3], contexts[:1], np.concatenate([contexts, contexts], axis=2)):
        with pytest.raises(InputError, match=r"contexts must have shape \(B, C, D\)"):
            policy.scores(wrong)


def test_a_batch_larger_than_the_table_is_the_table():
    contexts, outcomes = tables()
    whole, larger = (MLP(max_epochs=2, batch=batch).fit(contexts, outcomes) for batch in (60, 10**9))
    assert np.array_equal(whole.units, larger.units)


def test_units_that_no_row_reaches_do_not_shrink_to_subnormal_numbers():
    rng = np.random.default_rng(0)
    contexts, outcomes = rng.normal(size=(1, 30, 2)) + 5, rng.integers(2, size=(1, 30, 2))
    policy = MLP(width=30, max_epochs=3000, patience=3000, batch=30, learning_rate=0.01).fit(contexts, outcomes)
    found = np.abs(policy.units[..., :3])  # biases and weights of the context; then zeros
    assert (found < 1e-6).any()  # there are such units
    assert found[found > 0].min() > 1e-16
