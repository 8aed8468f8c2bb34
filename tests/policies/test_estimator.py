"""scikit-learn estimators as policy classes, against direct use and against the batched logistic fit."""

import gymnasium as gym
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gents_gym
from gents_gym import InputError, make_policy
from gents_gym.policies.estimator import Estimator
from gents_gym.policies.logistic import Logistic

EXACT = LogisticRegression(tol=1e-10, max_iter=10000)


def problems(n_tasks, n_rows, n_actions, seed, size=3):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n_tasks, n_rows, size)).astype(np.float32)
    logits = contexts @ rng.normal(size=(n_tasks, size, n_actions))
    return contexts, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(np.float32)


def reward(outcome):
    return 0.9 - 0.7 * outcome


@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_regression_gives_the_scores_of_the_batched_class(weighted):
    contexts, outcomes = problems(3, 80, 4, seed=0)
    outcomes[0, :, 1], outcomes[1, :, 2] = 0, 1  # one-class columns
    weights = np.random.default_rng(1).integers(3, size=outcomes.shape) if weighted else None
    if weighted:
        weights[2, :, 3] = 0  # no row counts
    slow = Estimator(EXACT, reward).fit(contexts, outcomes, weights=weights)
    fast = Logistic(reward_fn=reward).fit(contexts, outcomes, weights=weights)
    assert np.abs(slow.scores(contexts) - fast.scores(contexts)).max() < 1e-5
    assert np.abs(slow.scores(contexts[:, 5]) - fast.scores(contexts[:, 5])).max() < 1e-5


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(5, random_state=0), DecisionTreeClassifier(max_depth=3), GaussianNB()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_classifiers_predict_expected_rewards(estimator):
    contexts, outcomes = problems(2, 60, 2, seed=2)
    outcomes += np.float32(outcomes[:, ::-1] == 1)  # three classes: R is asked for each
    policy = Estimator(estimator, np.sqrt).fit(contexts, outcomes)
    alone = type(estimator)(**estimator.get_params()).fit(contexts[1], outcomes[1, :, 0])
    expected = alone.predict_proba(contexts[1]) @ np.sqrt([0.0, 1, 2])
    assert np.allclose(policy.scores(contexts)[1, :, 0], expected)


@pytest.mark.parametrize("estimator", [LinearRegression(), DecisionTreeRegressor(max_depth=3)])
def test_regressors_learn_rewards(estimator):
    contexts, outcomes = problems(2, 60, 3, seed=3)
    policy = Estimator(estimator, reward).fit(contexts, outcomes)
    alone = type(estimator)(**estimator.get_params()).fit(contexts[1], reward(outcomes[1, :, 2]))
    assert np.allclose(policy.scores(contexts)[1, :, 2], alone.predict(contexts[1]), atol=1e-6)
    assert not hasattr(estimator, "n_features_in_")  # the user's own object stays unfitted


def test_rows_of_weight_zero_are_left_out_for_estimators_without_weights():
    contexts, outcomes = problems(1, 60, 2, seed=4)
    weights = np.ones_like(outcomes)
    weights[:, 30:] = 0
    for estimator in (KNeighborsClassifier(), make_pipeline(StandardScaler(), GaussianNB())):
        found = Estimator(estimator).fit(contexts, outcomes, weights=weights).scores(contexts)
        assert np.allclose(found, Estimator(estimator).fit(contexts[:, :30], outcomes[:, :30]).scores(contexts))
        with pytest.raises(InputError, match="weights must be 0 or 1 for an estimator without sample_weight, got 2"):
            Estimator(estimator).fit(contexts, outcomes, weights=2 * weights)


def test_ts_gen_plays_an_estimator_named_in_a_spec():
    tree = "sklearn.tree:DecisionTreeClassifier(max_depth=2, random_state=0)"
    agent = gents_gym.make_agent(f"""ts-gen(policy='estimator(estimator="{tree}")', m=8)""")
    made = make_policy(agent.policy, reward_fn=reward)
    assert isinstance(made.estimator, DecisionTreeClassifier)
    assert made.estimator.max_depth == 2
    assert made.reward_fn is reward
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, n_actions=3, horizon=5)
    assert gents_gym.rollout(envs, agent, seed=0).actions.shape == (2, 5)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (3, "estimator must be an object with fit and predict, got 3"),
        (LinearRegression, "estimator must be an object with fit and predict, got <class"),
        (StandardScaler(), r"estimator must be an object with fit and predict, got StandardScaler\(\)"),
        ("sklearn.tree:Nope", "cannot import estimator 'sklearn.tree:Nope'"),
        ("tree", "unknown estimator 'tree'"),
        ("sklearn.tree:DecisionTreeClassifier(depth=3)", "unknown option of estimator .*'depth'"),
    ],
)
def test_bad_estimators(estimator, message):
    with pytest.raises(InputError, match=message):
        make_policy("estimator", estimator=estimator)


def test_bad_tables():
    contexts, outcomes = problems(1, 20, 2, seed=5)
    with pytest.raises(InputError, match="estimator must have predict_proba if it is a classifier, got LinearSVC"):
        Estimator(LinearSVC()).fit(contexts, outcomes)
    with pytest.raises(InputError, match=r"outcomes must have shape \(B, T, A\), got \(1, 19, 2\)"):
        Estimator(EXACT).fit(contexts, outcomes[:, 1:])
    with pytest.raises(InputError, match=r"weights must have shape \(B, T, A\)=\(1, 20, 2\), got \(1, 20, 1\)"):
        Estimator(EXACT).fit(contexts, outcomes, weights=np.ones((1, 20, 1)))
    with pytest.raises(InputError, match="the number of rows T must be at least 1, got 0"):
        Estimator(EXACT).fit(contexts[:, :0], outcomes[:, :0])
