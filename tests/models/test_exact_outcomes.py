"""The exact p* of all three kinds of outcomes: what beliefs promise, whom they play for, and what their losses are."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chisquare, multivariate_normal, norm

import gents_gym
from gents_gym import InputError
from gents_gym.agents.ts_gen import TSGen
from gents_gym.models.exact import ExactModel
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.testing import check_model
from gents_gym.types import Feedback, TaskInfo

KINDS = ("bernoulli", "gaussian", "categorical")
every_kind = pytest.mark.parametrize("kind", KINDS)


def generators(n):
    return [np.random.default_rng(i) for i in range(n)]


class Play:
    """Tasks and random actions in them, with as many beliefs of p* as are asked for."""

    def __init__(self, kind, n_tasks=4, n_actions=3, context_dim=2, horizon=30, **options):
        distribution = Synthetic(outcomes=kind, n_actions=n_actions, context_dim=context_dim, horizon=horizon)
        self.truth, self.tasks = distribution.truth, distribution.sample(0, range(n_tasks))
        self.model = ExactModel(self.truth, **options)
        self.actions = np.random.default_rng(0).integers(n_actions, size=(n_tasks, horizon))
        self.outcomes = np.take_along_axis(self.tasks.outcomes, self.actions[..., None], axis=2)[..., 0]

    def begin(self, **changes):
        tasks = self.tasks
        info = TaskInfo(tasks.action_features, tasks.n_actions, tasks.context_dim, tasks.horizon, tasks.reward_fn)
        return self.model.begin(replace(info, likelihood=tasks.likelihood, **changes), generators(len(tasks)))

    def feedback(self, task, decision):
        task, decision = np.broadcast_arrays(task, decision)
        return Feedback(task.ravel(), decision.ravel(), self.outcomes[task, decision].ravel())

    def learn(self, belief, start, stop):
        every = np.arange(len(self.tasks))
        for t in range(start, stop):
            belief.decide(self.tasks.contexts[:, t], self.actions[:, t])
            belief.observe(self.feedback(every, t))
        return belief


def summary(belief, contexts):
    """All that a belief says, with the same random numbers each time."""
    other = belief.fork(np.arange(len(contexts)))
    other._rngs = generators(len(contexts))
    return np.concatenate(
        [other.expected(contexts), other.variance(contexts), other.draw(2).reshape(len(contexts), -1)], 1
    )


@every_kind
def test_the_contract_of_models(kind):
    check_model("exact", tasks=f"synthetic(n_actions=3, horizon=8, outcomes={kind})", steps=4)


@every_kind
def test_late_outcomes_states_and_forks_are_what_was_learned_in_time(kind):
    play = Play(kind, n_weighted=8)
    now = play.tasks.contexts[:, 12]
    wanted = summary(play.learn(play.begin(), 0, 12), now)
    late, every = play.learn(play.begin(), 0, 4), np.arange(4)
    for t in range(4, 12):
        late.decide(play.tasks.contexts[:, t], play.actions[:, t])
    assert not np.allclose(summary(late, now), wanted)
    late.observe(play.feedback(np.array([2, 0, 1, 3]), np.array([11, 11, 9, 4])))
    late.observe(play.feedback(np.empty(0, int), np.empty(0, int)))
    late.observe(play.feedback(every[:, None], [10, 8, 7, 6, 5]))
    rest = [(0, 4), (1, 4), (2, 4), (0, 9), (2, 9), (3, 9), (1, 11), (3, 11)]
    late.observe(play.feedback(*np.array(rest[::-1]).T))
    assert np.allclose(summary(late, now), wanted, atol=1e-9)
    restored = play.learn(play.begin(), 0, 3)
    restored.restore(late.state())
    assert np.allclose(summary(restored, now), wanted, atol=1e-9)
    after = summary(play.learn(restored, 12, 14), now)
    assert not np.allclose(after, wanted)
    assert np.allclose(summary(play.learn(play.begin(), 0, 14), now), after, atol=1e-9)
    assert np.allclose(summary(late, now), wanted, atol=1e-9)


@every_kind
def test_added_actions_are_as_if_they_had_been_there(kind):
    play = Play(kind, n_actions=5, n_weighted=8)
    play.actions %= 3
    few = play.tasks.action_features[:, :3]
    belief = play.learn(play.begin(action_features=few, n_actions=3), 0, 6)
    belief.add(play.tasks.action_features[:, 3:])
    whole = play.learn(play.begin(), 0, 6)
    play.actions[:, 6:] = np.random.default_rng(1).integers(5, size=play.actions[:, 6:].shape)
    play.outcomes = np.take_along_axis(play.tasks.outcomes, play.actions[..., None], axis=2)[..., 0]
    now = play.tasks.contexts[:, 9]
    assert np.allclose(summary(play.learn(belief, 6, 9), now), summary(play.learn(whole, 6, 9), now), atol=1e-9)


def calibration(kind, n_rows, n_tasks=400, n_draws=9):
    """Ranks of true coefficients among posterior draws, (B·A, Q), after random actions."""
    rng, model = np.random.default_rng(n_rows), ExactModel(Synthetic(outcomes=kind, context_dim=2).truth)
    z = rng.normal(size=(n_tasks, 2, 2)).astype(np.float32)
    mean, variance = model.prior(z)
    beta = mean + np.sqrt(variance) * rng.normal(size=mean.shape)  # (B, A, Q)
    likelihood = model.likelihood
    belief = model.begin(
        TaskInfo(z, 2, 2, likelihood=likelihood), [np.random.default_rng([1, i]) for i in range(n_tasks)]
    )
    for t in range(n_rows):
        context, action = rng.normal(size=(n_tasks, 2)).astype(np.float32), rng.integers(2, size=n_tasks)
        row = np.concatenate([np.ones((n_tasks, 1)), context], axis=1)
        own = beta[np.arange(n_tasks), action].reshape(n_tasks, -1, 3)
        linear = np.einsum("bk,bck->bc", row, own)  # (B, C-1)
        if kind == "gaussian":
            outcome = linear[:, 0] + rng.normal(size=n_tasks)
        else:
            outcome = (np.pad(linear, ((0, 0), (1, 0))) + rng.gumbel(size=(n_tasks, linear.shape[1] + 1))).argmax(
                axis=1
            )
        belief.decide(context, action)
        belief.observe(Feedback(np.arange(n_tasks), np.full(n_tasks, t), outcome))
    return (belief.draw(n_draws) < beta[:, None]).sum(axis=1).reshape(-1, beta.shape[2])


@pytest.mark.parametrize("kind", ["gaussian", "categorical"])
@pytest.mark.parametrize("n_rows", [1, 12, 40])
def test_simulation_based_calibration(kind, n_rows):
    for ranks in calibration(kind, n_rows).T:
        assert chisquare(np.bincount(ranks, minlength=10)).pvalue > 1e-4


def test_gaussian_marginals_are_the_sums_of_a_beliefs_one_step_predictions():
    play, every = Play("gaussian", n_tasks=6), np.arange(6)
    play.actions[:] = 1
    play.outcomes = play.tasks.outcomes[:, :, 1]
    belief, total = play.begin(), np.zeros(6)
    for t in range(20):
        context = play.tasks.contexts[:, t]
        mean, variance = belief.expected(context)[:, 1], belief.variance(context)[:, 1]
        total += norm.logpdf(play.outcomes[:, t], mean, np.sqrt(variance + 1))
        play.learn(belief, t, t + 1)
    z, x, y = play.tasks.action_features[:, 1], play.tasks.contexts[:, :20], play.outcomes[:, :20]
    found, error = play.model.estimate_marginal(z, x, y, np.random.default_rng(0))
    assert np.allclose(found, total, rtol=1e-9)
    assert (error == 0).all()
    mean, variance = play.truth.prior(z)
    for b in every:
        rows = np.concatenate([np.ones((20, 1)), x[b]], axis=1).astype(float)
        whole = multivariate_normal(rows @ mean[b], rows * variance[b] @ rows.T + np.eye(20))
        assert found[b] == pytest.approx(whole.logpdf(y[b]), rel=1e-9)


def test_probability_matching_with_gaussian_outcomes():
    """Proposition 1: TS-Gen with p* plays a as often as the oracle would, given the history.

    The reference draws coefficients from the prior and weighs them by the likelihood: another sampler.
    """
    rng, horizon, n = np.random.default_rng(3), 7, 8000
    z = np.array([[0.3, -0.2], [-0.1, 0.4]], np.float32)
    contexts, seen = rng.normal(size=(3, 2)).astype(np.float32), np.array([1.2, -0.7], np.float32)
    truth = Synthetic(context_dim=2, outcomes="gaussian").truth
    info = TaskInfo(np.repeat(z[None], n, 0), 2, 2, horizon, likelihood=truth.likelihood, truth=truth)
    agent = TSGen(model="exact")
    agent.reset(info, [np.random.default_rng([1, i]) for i in range(n)])
    for t in range(2):  # action t in decision t
        agent.act(np.repeat(contexts[t][None], n, 0))
        agent.observe(np.repeat(contexts[t][None], n, 0), np.full(n, t), np.full(n, seen[t]))
    found = (agent.act(np.repeat(contexts[2][None], n, 0)) == 1).mean()
    mean, variance = truth.prior(z)
    beta = mean + np.sqrt(variance) * rng.normal(size=(n, 2, 3))  # (n, A, K)
    x = np.concatenate([np.repeat(contexts[None], n, 0), rng.normal(size=(n, horizon - 3, 2))], axis=1)
    linear = np.concatenate([np.ones((n, horizon, 1)), x], axis=2) @ beta.swapaxes(1, 2)  # (n, T, A)
    table, weights = linear + rng.normal(size=linear.shape), np.ones(n)
    for t in range(2):
        weights *= norm.pdf(seen[t], linear[:, t, t])
        table[:, t, t] = seen[t]
    plays = gents_gym.make_policy("least-squares").fit(x, table).scores(x[:, 2]).argmax(axis=1) == 1
    share = weights / weights.sum()
    expected = (share * plays).sum()
    error = np.sqrt((share**2 * (plays - expected) ** 2).sum() + expected * (1 - expected) / n)
    assert 0.05 < expected < 0.95
    assert abs(found - expected) < 4 * error


@every_kind
@pytest.mark.parametrize("agent", ["greedy", "softmax", "epsilon-greedy", "ts-gen", "gen-ucb"])
def test_agents_play_with_p_star(kind, agent):
    options = {"n_actions": 4, "context_dim": 2, "horizon": 12, "outcomes": kind}

    def rewards(spec):
        envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=60, autoreset_mode="Disabled", **options)
        return gents_gym.rollout(envs, gents_gym.make_agent(spec), seed=0).rewards.sum(axis=1)

    extra = ", samples=2, m=6" if agent == "gen-ucb" else ""
    gain = rewards(f"{agent}(model=exact{extra})") - rewards("random")
    assert gain.mean() > 3 * gain.std() / np.sqrt(60)


def test_the_noise_of_the_truth_counts():
    """Beside the direct formula with another noise, and refused if it is none."""
    play = Play("gaussian", n_tasks=1)
    truth = replace(play.truth, noise=0.05)
    play.model = ExactModel(truth)
    belief = play.learn(play.begin(), 0, 10)
    mean, variance = truth.prior(play.tasks.action_features[0])
    now = np.append(1, play.tasks.contexts[0, 10]).astype(float)
    for a in range(3):
        mine = play.actions[0, :10] == a
        rows = np.concatenate([np.ones((10, 1)), play.tasks.contexts[0, :10]], axis=1).astype(float)[mine]
        covariance = np.linalg.inv(np.diag(1 / variance[a]) + rows.T @ rows / 0.05)
        slow = now @ covariance @ (mean[a] / variance[a] + rows.T @ play.outcomes[0, :10][mine] / 0.05)
        assert belief.expected(play.tasks.contexts[:, 10])[0, a] == pytest.approx(slow, rel=1e-6)
        assert belief.variance(play.tasks.contexts[:, 10])[0, a] == pytest.approx(now @ covariance @ now, rel=1e-6)
    with pytest.raises(InputError, match="the truth's noise must be above 0, got 0"):
        ExactModel(replace(truth, noise=0))


def test_p_star_of_other_outcomes_than_the_tasks_is_refused():
    play = Play("gaussian")
    with pytest.raises(InputError, match=r"model must be of categorical\(3\) outcomes for these tasks, got gaussian"):
        play.model.begin(
            TaskInfo(np.zeros((1, 2, 2)), 2, 2, likelihood=Play("categorical").tasks.likelihood), generators(1)
        )
