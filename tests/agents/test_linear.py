"""LinUCB, LinTS and the fitted prior against slow, obvious versions."""

import gymnasium as gym
import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LinearRegression

from gents_gym import ActionRows, InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.linear import LinearPosterior, LinearPrior
from gents_gym.agents.lints import LinTS
from gents_gym.randomness import stream
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.testing import check_agent
from gents_gym.types import Fittable

TASKS = Synthetic(horizon=200).sample(0, range(6))


def fit(rows, intercept=False):
    return LinTS(prior="fitted", intercept=intercept).fit(rows).fitted


def record(spec, fitted=None, **options):
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=6, horizon=200, autoreset_mode="Disabled", **options)
    agent = make_agent(spec)
    if fitted is not None:
        agent.fitted = fitted
    return rollout(envs, agent)


def play(spec, fitted=None):
    return record(spec, fitted).actions


def slow_play(contexts, rewards, prior, score, intercept):
    """One task: rebuild every posterior from all its rows by explicit inverses, at every step."""
    rows = np.column_stack([np.ones(len(contexts)), contexts]) if intercept else contexts
    seen = [([], []) for _ in range(rewards.shape[1])]
    actions = []
    for x, row in zip(rows.astype(float), rewards, strict=True):
        scores = []
        for xs, ys in seen:
            X, y = np.array(xs).reshape(-1, len(x)), np.array(ys)
            precision = np.linalg.inv(prior.covariance) + X.T @ X / prior.noise
            covariance = np.linalg.inv(precision)
            mean = covariance @ (np.linalg.inv(prior.covariance) @ prior.mean + X.T @ y / prior.noise)
            scores.append((x @ mean, np.sqrt(x @ covariance @ x)))
        action = int(np.argmax(score(np.array(scores))))
        seen[action][0].append(x)
        seen[action][1].append(row[action])
        actions.append(action)
    return actions


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_linucb_is_the_slow_version(alpha, intercept):
    found = play(f"linucb(alpha={alpha}, intercept={intercept})")
    prior = LinearPrior.isotropic(5 + intercept, 1.0)
    for i in range(6):
        slow = slow_play(TASKS.contexts[i], TASKS.rewards[i], prior, lambda s: s[:, 0] + alpha * s[:, 1], intercept)
        assert found[i].tolist() == slow


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["isotropic", "fitted"])
def test_lints_is_the_slow_version_fed_the_same_normals(kind, intercept):
    prior = LinearPrior.isotropic(5 + intercept, 0.25)
    if kind == "fitted":
        prior = fit(Synthetic().sample_actions(0, range(100), 200), intercept)
    found = play(f"lints(prior={kind}, intercept={intercept})", fitted=prior)
    for i in range(6):
        rng = stream(0, "agent", i)
        score = lambda s, rng=rng: s[:, 0] + s[:, 1] * rng.standard_normal(10)  # noqa: E731
        assert found[i].tolist() == slow_play(TASKS.contexts[i], TASKS.rewards[i], prior, score, intercept)


def test_lints_plays_as_if_it_drew_whole_coefficient_vectors():
    """Action frequencies at one decision, against draws of β from N(m, P) by Cholesky factors."""
    rng = np.random.default_rng(0)
    B, A, D = 20_000, 3, 4
    info = TaskInfo(np.zeros((B, A, 1)), A, D)
    agent = LinTS(intercept=True)
    agent.reset(info, [np.random.default_rng(i) for i in range(B)])
    rows, arms, rewards = rng.normal(size=(12, D)), rng.integers(A, size=12), rng.integers(2, size=12)
    for x, a, r in zip(rows, arms, rewards, strict=True):
        agent.observe(np.tile(x, (B, 1)), np.full(B, a), np.full(B, float(r)))
    query = rng.normal(size=D)
    found = np.bincount(agent.act(np.tile(query, (B, 1))), minlength=A) / B
    draws = np.empty((B, A))
    full = np.column_stack([np.ones(12), rows])
    for a in range(A):
        X, y = full[arms == a], rewards[arms == a]
        covariance = np.linalg.inv(np.eye(D + 1) + X.T @ X / 0.25)
        mean = covariance @ X.T @ y / 0.25
        beta = mean + rng.normal(size=(B, D + 1)) @ np.linalg.cholesky(covariance).T
        draws[:, a] = beta @ [1, *query]
    expected = np.bincount(draws.argmax(axis=1), minlength=A) / B
    assert (np.abs(found - expected) < 4 * np.sqrt(2 * expected * (1 - expected) / B)).all()
    assert (expected > 0.01).all()


def test_posterior_is_scikit_learns_bayesian_ridge():
    """With the noise and the prior held fixed, scikit-learn's BayesianRidge has the same posterior."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 5)), rng.normal(size=300)
    noise = 0.25
    posterior = LinearPosterior(LinearPrior.isotropic(5, noise), TaskInfo(np.zeros((1, 2, 1)), 2, 5))
    for x, r in zip(X, y, strict=True):
        posterior.update(x[None], np.array([1]), np.array([r]))
    huge = 1e12  # Gamma hyperpriors so sharp that the two precisions stay where they are put
    ridge = BayesianRidge(
        alpha_1=huge / noise, alpha_2=huge, lambda_1=huge, lambda_2=huge, alpha_init=1 / noise, lambda_init=1.0,
        fit_intercept=False,
    ).fit(X, y)  # fmt: skip
    query = rng.normal(size=(1, 5))
    mean, deviation = posterior.predict(query)
    theirs, spread = ridge.predict(query, return_std=True)
    assert mean[0, 1] == pytest.approx(theirs[0], abs=1e-6)
    assert deviation[0, 1] ** 2 == pytest.approx(spread[0] ** 2 - noise, rel=1e-4)
    assert mean[0, 0] == 0
    assert deviation[0, 0] == pytest.approx(np.linalg.norm(query))


def test_posteriors_on_each_actions_own_features_are_the_closed_form():
    rng = np.random.default_rng(2)
    B, A, K, n = 3, 4, 30, 90
    root = rng.normal(size=(K, K)) / K**0.5
    prior = LinearPrior(rng.normal(size=K), root @ root.T + 0.1 * np.eye(K), 0.3)
    info = TaskInfo(np.zeros((B, A, 1)), A, 1, reward_fn=lambda y: 2 * y - 1)
    posterior = LinearPosterior(prior, info)
    actions, outcomes = rng.integers(A, size=(n, B)), rng.normal(size=(n, B))
    rows = rng.normal(size=(n, B, K))  # of the played actions
    for x, a, y in zip(rows, actions, outcomes, strict=True):
        posterior.update(x, a, y)
    queries = rng.normal(size=(500, B, A, K))  # more than a covariance has entries of its own, so they tell all of it
    means, deviations = (np.array(part) for part in zip(*map(posterior.predict, queries), strict=True))
    shared, spread = posterior.predict(queries[0, :, 0])
    start = np.linalg.inv(prior.covariance)
    for b, a in np.ndindex(B, A):
        X, r = rows[actions[:, b] == a, b], 2 * outcomes[actions[:, b] == a, b] - 1
        covariance = np.linalg.inv(start + X.T @ X / prior.noise)
        mean = covariance @ (start @ prior.mean + X.T @ r / prior.noise)
        q = queries[:, b, a]
        assert np.allclose(means[:, b, a], q @ mean, rtol=1e-9, atol=1e-9)
        assert np.allclose(deviations[:, b, a] ** 2, ((q @ covariance) * q).sum(axis=1), rtol=1e-9)
        q = queries[0, b, 0]
        assert shared[b, a] == pytest.approx(q @ mean, rel=1e-9)
        assert spread[b, a] ** 2 == pytest.approx(q @ covariance @ q, rel=1e-9)


@pytest.mark.parametrize("intercept", [False, True])
def test_fitted_prior_is_scikit_learns_least_squares(intercept):
    rows = Synthetic().sample_actions(0, range(700), 100)
    found = fit(rows, intercept)
    coefficients, residuals = [], []
    for x, y in zip(rows.contexts, rows.outcomes, strict=True):
        model = LinearRegression(fit_intercept=intercept).fit(x[:80], y[:80])
        coefficients.append([model.intercept_, *model.coef_] if intercept else model.coef_)
        residuals.append(y[80:] - model.predict(x[80:]))
    assert np.allclose(found.mean, np.mean(coefficients, axis=0), atol=1e-6)
    assert np.allclose(found.covariance, np.cov(coefficients, rowvar=False), atol=1e-6)
    assert found.noise == pytest.approx(np.var(residuals, ddof=1), rel=1e-5)


def test_agents_learn_from_rewards_and_not_from_outcomes():
    """With R(y) = 1 − y on outcomes y, all agents and priors are as with R(y) = y on outcomes 1 − y."""
    rng = np.random.default_rng(0)
    contexts, outcomes = rng.normal(size=(50, 3, 5)), rng.integers(2, size=(50, 3)).astype(float)
    flipped = TaskInfo(rng.normal(size=(3, 2, 2)), 2, 5, reward_fn=lambda y: 1 - y)
    plain = TaskInfo(flipped.action_features, 2, 5)
    rows = rng.normal(size=(9, 30, 5)), rng.integers(2, size=(9, 30)).astype(float)
    for spec in ("linucb", "lints", "lints(prior=fitted)", "neural-linear-ts", "neural-linear-ts(prior=fitted)"):
        played = []
        for info, sign in ((flipped, outcomes), (plain, 1 - outcomes)):
            agent = make_agent(spec)
            history = ActionRows(np.zeros((9, 2)), rows[0], rows[1] if info is flipped else 1 - rows[1], info.reward_fn)
            if isinstance(agent, Fittable):
                agent.fit(history)
            agent.reset(info, [np.random.default_rng(i) for i in range(3)])
            for x, y in zip(contexts, sign, strict=True):
                played.append(agent.act(x))
                agent.observe(x, played[-1], y)
        assert np.array_equal(played[:50], played[50:])


def test_contexts_in_any_memory_order_give_the_same_bits():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6, 5))
    found = []
    for order in ("C", "F"):
        posterior = LinearPosterior(LinearPrior.isotropic(5, 1.0), TaskInfo(np.zeros((6, 2, 1)), 2, 5))
        for row in x:
            posterior.update(np.array(row, order=order), np.zeros(6, int), row[:, 0])
        found.append(posterior.predict(np.array(x[0], order=order)))
    assert np.array_equal(found[0][0], found[1][0])
    assert np.array_equal(found[0][1], found[1][1])


def test_constant_outcomes_fit_a_prior_that_plays():
    rows = ActionRows(np.zeros((5, 1)), np.random.default_rng(0).normal(size=(5, 50, 3)), np.zeros((5, 50)))
    prior = fit(rows)
    assert prior.noise > 0
    posterior = LinearPosterior(prior, TaskInfo(np.zeros((1, 2, 1)), 2, 3))
    posterior.update(np.ones((1, 3)), np.array([0]), np.array([0.0]))
    assert np.isfinite(posterior.predict(np.ones((1, 3)))).all()


def test_fitting_wants_enough_rows_and_actions():
    rows = Synthetic().sample_actions(0, range(5), 6)
    with pytest.raises(InputError, match="rows must have at least 7 rows per action to fit 5 coefficients, got 6"):
        fit(rows)
    fit(Synthetic().sample_actions(0, range(5), 7))
    with pytest.raises(InputError, match="the number of actions in rows must be at least 2, got 1"):
        fit(ActionRows(np.zeros((1, 2)), np.zeros((1, 50, 5)), np.zeros((1, 50))))


def test_playing_before_fitting_and_with_another_size():
    info, rngs = TaskInfo(np.zeros((1, 2, 1)), 2, 3), [np.random.default_rng(0)]
    with pytest.raises(InputError, match=r"lints\(prior='fitted'\) has no prior yet: call fit\(rows\)"):
        make_agent("lints(prior=fitted)").reset(info, rngs)
    agent = make_agent("lints(prior=fitted)").fit(Synthetic().sample_actions(0, range(5), 50))
    with pytest.raises(InputError, match="the prior must have 3 coefficients for these features, got 5"):
        agent.reset(info, rngs)


def test_posteriors_stay_sound_over_a_long_time():
    rng = np.random.default_rng(0)
    posterior = LinearPosterior(LinearPrior.isotropic(3, 1e-4), TaskInfo(np.zeros((1, 2, 1)), 2, 3))
    rows = rng.normal(size=(5000, 3))
    for x in rows:
        posterior.update(x[None], np.array([0]), np.array([x.sum()]))
    mean, deviation = posterior.predict(np.ones((1, 3)))
    exact = np.linalg.inv(np.eye(3) + rows.T @ rows / 1e-4)
    assert mean[0, 0] == pytest.approx(3, abs=1e-4)
    assert deviation[0, 0] == pytest.approx(np.sqrt(exact.sum()), rel=1e-6)


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
@pytest.mark.parametrize("intercept", [False, True])
def test_other_outcomes_are_played_as_the_slow_version_plays(outcomes, intercept):
    """They learn from R(Y), whatever Y is."""
    distribution = Synthetic(horizon=200, outcomes=outcomes)
    tasks = distribution.sample(0, range(6))
    prior = LinearPrior.isotropic(5 + intercept, 1.0)
    found = record(f"linucb(intercept={intercept})", outcomes=outcomes)
    for i in range(6):
        slow = slow_play(tasks.contexts[i], tasks.rewards[i], prior, lambda s: s[:, 0] + 0.1 * s[:, 1], intercept)
        assert found.actions[i].tolist() == slow
    steps = np.arange(200)
    for i in range(6):
        played, means = found.actions[i], tasks.means[i].astype(float)
        rows = np.column_stack([np.ones(200), tasks.contexts[i]])
        fits = np.linalg.lstsq(rows, tasks.rewards[i].astype(float), rcond=None)[0]
        best_fit = (rows @ fits).argmax(axis=1)
        expected = means[steps, best_fit] - means[steps, played]
        assert np.allclose(found.regret["expected"][i], expected, atol=1e-6)
        assert np.allclose(found.regret["best"][i], means.max(axis=1) - means[steps, played], atol=1e-6)
        earned = tasks.rewards[i]
        assert np.allclose(found.regret["oracle"][i], earned[steps, best_fit] - earned[steps, played], atol=1e-6)
        assert np.allclose(found.rewards[i], earned[steps, played])


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
@pytest.mark.parametrize("spec", ["linucb", "lints", "lints(prior=fitted, intercept=True)"])
def test_the_contract_holds_for_other_outcomes(spec, outcomes):
    check_agent(spec, f"synthetic(n_actions=4, horizon=30, outcomes={outcomes})")


@pytest.mark.parametrize("outcomes", ["gaussian", "categorical"])
def test_a_fitted_prior_helps_with_other_outcomes_too(outcomes):
    """The prior is about R(Y): in the Gaussian setting, fitted noise is 1 and the error of 6 coefficients."""
    fitted = fit(Synthetic(outcomes=outcomes).sample_actions(0, range(300), 200), intercept=True)
    if outcomes == "gaussian":
        assert fitted.noise == pytest.approx(1 + 6 / 160, abs=0.05)
    ours = record("lints(prior=fitted, intercept=True)", fitted, outcomes=outcomes).regret["expected"].sum()
    assert ours < record("lints", outcomes=outcomes).regret["expected"].sum()
