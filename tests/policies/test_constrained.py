"""The constraint holds on both groups, and the reward is near the best that any tilts reach, by brute force."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest

import gents_gym
from gents_gym import InputError, make_agent, make_policy
from gents_gym.policies import constrained
from gents_gym.policies.constrained import ROUNDING, Constrained
from gents_gym.policies.logistic import Logistic


def problems(n_tasks, n_rows, n_actions, seed, size=3):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(n_tasks, n_rows, size))
    logits = contexts @ rng.normal(size=(n_tasks, size, n_actions)) + rng.normal(size=(n_tasks, 1, n_actions))
    return contexts, (rng.random(logits.shape) < 1 / (1 + np.exp(-logits))).astype(float)


def draw_groups(sizes, seed, shift=0.7, size=3):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=(n, size)) + sign * shift for n, sign in zip(sizes, (1, -1), strict=True))


def differences(policy, group1, group2, n_tasks, n_actions):
    """|rate in group 1 - rate in group 2|, (B, A), by plain loops."""
    found = np.zeros((n_tasks, n_actions))
    played = [policy.scores(np.stack([group] * n_tasks)).argmax(axis=2) for group in (group1, group2)]
    for b in range(n_tasks):
        for a in range(n_actions):
            rates = [sum(row == a for row in actions[b]) / len(actions[b]) for actions in played]
            found[b, a] = abs(rates[0] - rates[1])
    return found


class Known:
    """A base class whose policies are given: predicted rewards σ(w0 + x·w), w of shape (B, 1+D, A)."""

    def __init__(self, w):
        self.w = w

    def fit(self, contexts, outcomes, warm_start=None):
        return self

    def scores(self, context):
        return 1 / (1 + np.exp(-(context @ self.w[:, 1:] + self.w[:, :1])))


def rewards_of(played, rewards, groups, epsilon):
    """Mean rewards of the rows for each of K candidates (K, P), -inf if the constraint is broken."""
    taken = rewards[np.arange(len(rewards)), played]  # (K, P)
    chosen = played[..., None] == np.arange(rewards.shape[1])
    gap = np.abs(chosen[:, groups == 1].mean(axis=1) - chosen[:, groups == 2].mean(axis=1)).max(axis=1)
    return np.where(gap <= epsilon + ROUNDING, taken[:, groups == 0].mean(axis=1), -np.inf)


def small_case(n_actions, seed, epsilon, n_rows=20, n_each=10, **options):
    """One task with known rewards at all points; also the reward that the constrained policy gets."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(1, n_rows, 2))
    group1, group2 = rng.normal((1, 0), size=(n_each, 2)), rng.normal((-1, 0), size=(n_each, 2))
    base = Known(rng.normal(size=(1, 3, n_actions)) * [[1], [2], [1]])
    policy = Constrained(group1, group2, epsilon, base=base, **options).fit(contexts, np.zeros((1, n_rows, n_actions)))
    points = np.concatenate([contexts[0], group1, group2])
    groups = np.repeat([0, 1, 2], [n_rows, n_each, n_each])
    rewards = base.scores(points[None])[0]  # (P, A)
    got = rewards_of(policy.scores(points[None]).argmax(axis=2), rewards, groups, epsilon)[0]
    return rewards, policy.lean(points), groups, got


def best_of_two(rewards, lean, groups, epsilon):
    """The best reward of any tilts of two actions.

    Point p plays action 1 where gap_p + c + d·lean_p > 0: a line in the plane of (c, d). Every cell between
    the lines has a corner where two of them cross, so the four sides of all crossings are all policies there are.
    """
    gap = rewards[:, 1] - rewards[:, 0]
    i, j = np.triu_indices(len(gap), 1)
    d = -(gap[i] - gap[j]) / (lean[i] - lean[j])
    c = -gap[i] - d * lean[i]
    crossings = np.arange(len(i))
    best = -np.inf
    for sides in product((0, 1), repeat=2):
        played = (gap + c[:, None] + d[:, None] * lean > 0).astype(int)
        played[crossings, i], played[crossings, j] = sides
        best = max(best, rewards_of(played, rewards, groups, epsilon).max())
    return best


@pytest.mark.parametrize(("sweeps", "reached", "lost"), [(1, 0.7, 0.06), (2, 0.75, 0.05)])
def test_two_actions_against_all_policies_there_are(sweeps, reached, lost):
    """How often the best tilts are found, and the share that is lost of what they gain over the best single action."""
    gaps, gains = [], []
    for seed in range(300):
        epsilon = (0.0, 0.1, 0.3)[seed % 3]
        rewards, lean, groups, got = small_case(2, seed, epsilon, sweeps=sweeps)
        best = best_of_two(rewards, lean, groups, epsilon)
        gaps.append(best - got)
        gains.append(best - rewards[groups == 0].mean(axis=0).max())
    assert min(gaps) > -1e-9  # nothing beats the enumeration: it is complete
    assert max(np.subtract(gaps, gains)) < 1e-9  # and the best single action is never better
    assert np.mean(np.array(gaps) < 1e-9) > reached
    assert np.mean(gaps) < lost * np.mean(gains)


def test_three_actions_against_a_grid():
    gaps, gains = [], []
    axis = np.linspace(-1.2, 1.2, 13)
    tilts = np.array(list(product(axis, repeat=4)))  # of two actions; those of the third are zero without loss
    for seed in range(10):
        rewards, lean, groups, got = small_case(3, seed, 0.1)
        scores = np.repeat(rewards[None], len(tilts), axis=0)
        for a in range(2):
            scores[:, :, a] += tilts[:, [2 * a]] + tilts[:, [2 * a + 1]] * lean
        best = rewards_of(scores.argmax(axis=2), rewards, groups, 0.1).max()
        single = rewards[groups == 0].mean(axis=0).max()
        gaps.append(max(best, single) - got)
        gains.append(max(best, single) - single)
    assert np.mean(gaps) < 0.1 * np.mean(gains)


@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize(("n_actions", "sizes"), [(2, (20, 20)), (4, (7, 30)), (10, (50, 40))])
def test_the_constraint_holds(epsilon, n_actions, sizes):
    contexts, outcomes = problems(8, 60, n_actions, seed=n_actions)
    groups = draw_groups(sizes, seed=1)
    assert differences(Logistic().fit(contexts, outcomes), *groups, 8, n_actions).max() > 0.3
    policy = Constrained(*groups, epsilon).fit(contexts, outcomes)
    assert differences(policy, *groups, 8, n_actions).max() <= epsilon + ROUNDING
    few = policy.scores(contexts[:, 3])
    assert few.shape == (8, n_actions)
    assert np.allclose(few, policy.scores(contexts)[:, 3])


@pytest.mark.parametrize(
    ("group1", "group2"),
    [
        ([[1.0, 0, 0]], [[-1.0, 0, 0]]),
        ([[1.0, 2, 3]] * 4, [[1.0, 2, 3]] * 3),
        ([[1e6, 0, 0]], [[-1e6, 1, 1], [0, 0, 0]]),
    ],
    ids=["one each", "equal contexts", "far away"],
)
@pytest.mark.parametrize("kind", ["ties", "constant columns", "one row"])
def test_degenerate_cases_hold_too(group1, group2, kind):
    contexts, outcomes = problems(3, 1 if kind == "one row" else 40, 4, seed=5)
    if kind == "ties":
        outcomes[:] = outcomes[:, :, :1]
    elif kind == "constant columns":
        outcomes[0], outcomes[1, :, 1:3] = 1, 1
    policy = Constrained(group1, group2, 0.0).fit(contexts, outcomes)
    assert differences(policy, np.array(group1), np.array(group2), 3, 4).max() == 0


def test_a_policy_that_holds_stays_as_it_is():
    contexts, outcomes = problems(30, 60, 3, seed=2)
    groups = draw_groups((20, 20), seed=3, shift=0.2)
    base, policy = Logistic().fit(contexts, outcomes), Constrained(*groups, 0.2).fit(contexts, outcomes)
    holds = differences(base, *groups, 30, 3).max(axis=1) <= 0.2 + ROUNDING
    assert 5 < holds.sum() < 25
    same = (policy.scores(contexts) == base.scores(contexts)).all(axis=(1, 2))
    assert np.array_equal(same, holds)


def test_named_actions_alone_are_limited():
    contexts, outcomes = problems(10, 80, 4, seed=4)
    groups = draw_groups((40, 40), seed=5)
    some = Constrained(*groups, 0.05, actions=(0, 3)).fit(contexts, outcomes)
    found = differences(some, *groups, 10, 4)
    assert found[:, [0, 3]].max() <= 0.05 + ROUNDING
    assert found[:, [1, 2]].max() > 0.2


def test_a_task_is_fitted_alike_alone_and_in_a_batch():
    contexts, outcomes = problems(5, 60, 4, seed=6)
    policy_class = Constrained(*draw_groups((30, 30), seed=7), 0.05)
    together = policy_class.fit(contexts, outcomes).tilts
    assert np.abs(together).max() > 0
    for b in range(5):
        assert np.allclose(policy_class.fit(contexts[[b]], outcomes[[b]]).tilts[0], together[b], atol=1e-9)


def test_what_the_search_leaves_broken_becomes_the_best_single_action(monkeypatch):
    monkeypatch.setattr(constrained, "search", lambda *arguments: arguments[-1].fill(0))
    contexts, outcomes = problems(6, 60, 4, seed=8)
    groups = draw_groups((30, 30), seed=9)
    policy = Constrained(*groups, 0.0).fit(contexts, outcomes)
    base = Logistic().fit(contexts, outcomes).scores(contexts)
    tilted = np.abs(policy.tilts).max(axis=(1, 2)) > 0
    assert tilted.sum() >= 4
    assert np.array_equal(policy.scores(contexts).argmax(axis=2)[tilted].T[0], base.mean(axis=1).argmax(axis=1)[tilted])
    assert differences(policy, *groups, 6, 4).max() == 0


def test_weights_and_warm_starts_reach_the_base_class():
    asked = {}

    class Spy:
        def fit(self, contexts, outcomes, warm_start=None, weights=None):
            asked.update(warm_start=warm_start, weights=weights)
            return Logistic().fit(contexts, outcomes, warm_start, weights)

    contexts, outcomes = problems(2, 40, 3, seed=10)
    weights = np.random.default_rng(0).integers(2, size=outcomes.shape).astype(float)
    policy_class = Constrained(*draw_groups((10, 10), seed=11), 0.1, base=Spy())
    first = policy_class.fit(contexts, outcomes, weights=weights)
    assert np.array_equal(asked["weights"], weights)
    policy_class.fit(contexts, outcomes, warm_start=first)
    assert asked["warm_start"] is first.base
    assert asked["weights"] is None


@pytest.mark.parametrize("m", [None, 8])
def test_every_decision_of_ts_gen_holds(m):
    groups, found = draw_groups((25, 20), seed=12, size=5), []

    class Spy(Constrained):
        def fit(self, contexts, outcomes, warm_start=None, weights=None):
            policy = super().fit(contexts, outcomes, warm_start, weights)
            broken = differences(policy.base, *groups, 4, 5).max(axis=1) > 0.1
            found.append((broken, differences(policy, *groups, 4, 5).max()))
            return policy

    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=4, n_actions=5, horizon=30)
    gents_gym.rollout(envs, make_agent("ts-gen", policy=Spy(*groups, 0.1), m=m), seed=0)
    assert len(found) == 30
    assert max(largest for _, largest in found) <= 0.1 + ROUNDING
    assert np.mean([broken for broken, _ in found]) > 0.5  # without the constraint it would not hold


def test_groups_from_files_and_nested_specs(tmp_path):
    contexts, outcomes = problems(3, 50, 3, seed=13)
    groups = draw_groups((20, 20), seed=14)
    for name, group in zip(("a", "b"), groups, strict=True):
        np.save(tmp_path / f"{name}.npy", group)
    options = f"group1={tmp_path}/a.npy, group2={tmp_path}/b.npy, epsilon=0.1, actions=[0, 2]"
    agent = make_agent(f"ts-gen(policy='constrained({options}, base=\"logistic(C=0.5)\")', m=4)")
    made = make_policy(agent.policy)
    direct = Constrained(*groups, 0.1, actions=[0, 2], base=Logistic(C=0.5))
    assert np.array_equal(made.fit(contexts, outcomes).tilts, direct.fit(contexts, outcomes).tilts)
    rewarded = make_policy(
        "constrained", reward_fn=lambda y: 1 - y, group1=groups[0].tolist(), group2=groups[1], epsilon=1
    )
    assert np.allclose(
        rewarded.fit(contexts, outcomes).scores(contexts), 1 - Logistic().fit(contexts, outcomes).scores(contexts)
    )


GOOD = {"group1": [[1.0, 0], [2, 0]], "group2": [[0.0, 1]], "epsilon": 0.1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": -0.1}, "epsilon must be at least 0, got -0.1"),
        ({"epsilon": float("nan")}, "epsilon must be finite, got nan"),
        ({"group1": np.zeros((0, 2))}, "the number of contexts in group1 must be at least 1, got 0"),
        ({"group2": np.zeros((0, 2))}, "the number of contexts in group2 must be at least 1, got 0"),
        ({"group1": np.zeros((2, 0)), "group2": np.zeros((2, 0))}, "the context size D of group1 must be at least 1"),
        ({"group1": [1.0, 2]}, r"group1 must have shape \(N, D\), got \(2,\)"),
        ({"group2": [[1.0, 2, 3]]}, "group2 must have group1's context size D=2, got 3"),
        ({"group2": [[1.0, np.inf]]}, r"group2 must be finite, got inf at index \(0, 1\)"),
        ({"group1": [["a", "b"]]}, "group1 must be an array of numbers, got list"),
        (
            {"group1": "no_such.npy"},
            r"group1 must be contexts or the path of an \.npy file, got 'no_such.npy' \(.*No such",
        ),
        ({"group1": __file__}, r"group1 must be contexts or the path of an \.npy file, got .*pickle"),
        ({"actions": (0, 0)}, r"actions must name each action once, got \(0, 0\)"),
        ({"actions": (-1,)}, "actions must be at least 0, got -1"),
        ({"actions": (0.5,)}, "actions must be a whole number, got 0.5"),
        ({"actions": ()}, r"actions must be None or a list of action numbers, got \(\)"),
        ({"actions": 1}, "actions must be None or a list of action numbers, got 1"),
        ({"sweeps": 0}, "sweeps must be at least 1, got 0"),
        ({"base": 3}, "base must be a policy class's id or have fit, got 3"),
        ({"base": "logistik"}, "unknown policy class 'logistik'; did you mean 'logistic'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_policy("constrained", **{**GOOD, **options})


def test_bad_tables():
    contexts, outcomes = problems(2, 10, 3, seed=0, size=2)
    with pytest.raises(InputError, match=r"actions must lie in \[0, 3\), got 3"):
        Constrained(**GOOD, actions=(3,)).fit(contexts, outcomes)
    with pytest.raises(InputError, match="contexts must have group1's context size D=2, got 1"):
        Constrained(**GOOD).fit(contexts[:, :, :1], outcomes)
    with pytest.raises(InputError, match=r"base must have fit\(..., weights\) if weights are given, got"):
        Constrained(**GOOD, base=Known(np.zeros((2, 3, 3)))).fit(contexts, outcomes, weights=np.ones_like(outcomes))


def test_a_base_with_another_reward_is_refused():
    with pytest.raises(InputError, match="base must have the same reward_fn"):
        Constrained(**GOOD, base=Logistic(reward_fn=np.square))
