"""The synthetic distribution against closed forms and a slow sampler that follows the formula word by word."""

import numpy as np
import pytest

from gents_gym import InputError, Tasks
from gents_gym.randomness import SPLITS
from gents_gym.tasks.synthetic import Synthetic


def slow_task(rng, n_actions=10, horizon=500, context_dim=5):
    """One task, one number after the other: (Z, X, P(Y=1))."""
    features = [[rng.normal() for _ in range(2)] for _ in range(n_actions)]
    contexts = [[rng.normal() for _ in range(context_dim)] for _ in range(horizon)]
    chances = np.empty((horizon, n_actions))
    for a, z in enumerate(features):
        constant = rng.normal()
        by_feature = [rng.normal(1, 0.25) for _ in range(2)]
        by_context = [rng.normal(1, 0.25) for _ in range(context_dim)]
        cross = [rng.normal(1, 0.25) for _ in range(2)]
        for t, x in enumerate(contexts):
            logit = constant + sum(u * v for u, v in zip(by_feature, z, strict=True))
            logit += sum(u * v for u, v in zip(by_context, x, strict=True))
            logit += sum(x[j] * cross[j] * z[j] for j in range(2))
            chances[t, a] = 1 / (1 + np.exp(-logit))
    return np.array(features), np.array(contexts), chances


def test_first_tasks_stay_the_same_bits_when_more_are_drawn():
    distribution = Synthetic()
    many, few, one = (distribution.sample(7, indices) for indices in (range(40), range(9), [5]))
    for name in ("action_features", "contexts", "outcomes", "means"):
        assert np.array_equal(getattr(many, name)[:9], getattr(few, name))
        assert np.array_equal(getattr(many, name)[5:6], getattr(one, name))


def test_splits_seeds_and_indices_never_share_a_task():
    distribution = Synthetic(horizon=20)
    hashes = [h for split in SPLITS for seed in (0, 1) for h in distribution.sample(seed, range(50), split).hashes]
    assert len(set(hashes)) == 3 * 2 * 50
    whole = {distribution.sample(0, range(50), split).content_hash for split in SPLITS}
    assert len(whole) == 3
    assert distribution.sample(0, range(50), "train").content_hash in whole


def test_features_and_contexts_are_standard_normal():
    tasks = Synthetic(horizon=100).sample(0, range(400))
    for values in (tasks.action_features, tasks.contexts):
        n = values.size
        assert abs(values.mean()) < 4 / np.sqrt(n)
        assert abs(values.var() - 1) < 4 * np.sqrt(2 / n)


def test_logits_have_the_closed_form_moments():
    """Given Z, an action is logistic regression with known Gaussian coefficients (intercept and slopes)."""
    tasks = Synthetic(n_actions=20, horizon=60).sample(1, range(300))
    rows = np.concatenate([np.ones((300, 60, 1)), tasks.contexts], axis=2).astype(np.float64)
    clear = np.abs(tasks.means - 0.5) < 0.499  # nearer to 0 and 1, float32 rounds the logits away
    means = np.where(clear, tasks.means, 0.5).astype(np.float64)
    logits = np.log(means / (1 - means))
    squares = np.einsum("bta,bti,btj->baij", clear, rows, rows)
    fitted = np.linalg.solve(squares, np.einsum("bta,bti,bta->bai", clear, rows, logits)[..., None])[..., 0]
    assert np.abs(rows @ fitted.swapaxes(1, 2) - logits)[clear].max() < 0.01
    coefficients = fitted.reshape(-1, 6)
    z = tasks.action_features.reshape(-1, 2).astype(np.float64)
    mean = np.ones((len(z), 6))
    mean[:, 0] = z.sum(axis=1)
    mean[:, 1:3] += z
    variance = np.full((len(z), 6), 0.25**2)
    variance[:, 0] = 1 + 0.25**2 * (z**2).sum(axis=1)
    variance[:, 1:3] *= 1 + z**2
    standard = (coefficients - mean) / np.sqrt(variance)
    n = len(standard)
    assert np.abs(standard.mean(axis=0)).max() < 4.5 / np.sqrt(n)
    assert np.abs(np.cov(standard, rowvar=False) - np.eye(6)).max() < 4.5 * np.sqrt(2 / n)


def test_moments_agree_with_the_slow_sampler():
    rng = np.random.default_rng(0)
    slow = [slow_task(rng, n_actions=4, horizon=10) for _ in range(1500)]
    tasks = Synthetic(n_actions=4, horizon=10).sample(3, range(1500))

    def statistics(z, x, p):
        best = p.max(axis=1).mean()
        return [p.mean(), (p**2).mean(), best, (p * x[:, :1]).mean(), (p * z[None, :, 0]).mean(), p.var(axis=0).mean()]

    ours = np.array(
        [statistics(*task) for task in zip(tasks.action_features, tasks.contexts, tasks.means, strict=True)]
    )
    theirs = np.array([statistics(*task) for task in slow])
    error = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / 1500)
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 4 * error).all()


def test_outcomes_are_coin_flips_of_the_means():
    tasks = Synthetic().sample(0, range(100))
    assert set(np.unique(tasks.outcomes)) == {0, 1}
    surprise = (tasks.outcomes - tasks.means).astype(np.float64)
    spread = (tasks.means * (1 - tasks.means)).astype(np.float64)
    for where in (tasks.means < 0.1, (tasks.means > 0.4) & (tasks.means < 0.6), tasks.means > 0.9):
        assert abs(surprise[where].sum()) < 4 * np.sqrt(spread[where].sum())
    neighbours = (surprise[:, 1:] * surprise[:, :-1]).sum() / np.sqrt((spread[:, 1:] * spread[:, :-1]).sum())
    assert abs(neighbours) < 4


def test_single_actions_are_independent_and_follow_the_same_law():
    distribution = Synthetic()
    rows = distribution.sample_actions(0, range(3000), 50)
    assert rows.action_features.shape == (3000, 2)
    assert rows.contexts.shape == (3000, 50, 5)
    assert rows.outcomes.shape == (3000, 50)
    assert np.array_equal(rows.outcomes[17:18], distribution.sample_actions(0, [17], 50).outcomes)
    tasks = Synthetic(n_actions=2, horizon=50).sample(0, range(1500))
    error = np.sqrt(rows.outcomes.mean(axis=1).var() / 3000 + tasks.outcomes.mean(axis=(1, 2)).var() / 1500)
    assert abs(rows.outcomes.mean() - tasks.outcomes.mean()) < 4 * error
    assert rows.content_hash != distribution.sample_actions(0, range(3000), 50, "validation").content_hash


def test_means_are_of_the_reward():
    tasks = Synthetic(n_actions=3, horizon=4, reward_fn=lambda y: 0.8 - 0.5 * y).sample(0, [0])
    plain = Synthetic(n_actions=3, horizon=4).sample(0, [0])
    assert np.allclose(tasks.means, 0.8 - 0.5 * plain.means)
    assert np.allclose(tasks.rewards, 0.8 - 0.5 * plain.outcomes)


def test_single_actions_share_no_numbers_with_tasks():
    task = Synthetic(n_actions=2, horizon=5).sample(0, [0], "train")
    rows = Synthetic(n_actions=2, horizon=5).sample_actions(0, [0], 5, "train")
    assert not np.isin(rows.action_features, task.action_features).any()


def test_rows_carry_the_reward_function():
    assert Synthetic(reward_fn=np.square).sample_actions(0, [0], 3).reward_fn is np.square


@pytest.mark.parametrize(
    ("reward_fn", "message"),
    [
        (np.log, r"reward_fn must map each outcome to a finite reward, got \[-inf, 0\.0\]"),
        (np.sum, r"reward_fn must map each outcome to a finite reward, got 1\.0"),
        (3, "reward_fn must map outcomes to rewards, got 3"),
    ],
)
def test_bad_rewards(reward_fn, message):
    with pytest.raises(InputError, match=message):
        Synthetic(reward_fn=reward_fn)


def test_sizes_are_arguments():
    tasks = Synthetic(n_actions=2, horizon=1, context_dim=2).sample(0, [0, 1])
    assert isinstance(tasks, Tasks)
    assert tasks.outcomes.shape == (2, 1, 2)
    assert tasks.contexts.shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_actions": 1}, "n_actions must be at least 2, got 1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"context_dim": 1}, "context_dim must be at least 2, got 1"),
        ({"n_actions": 2.5}, r"n_actions must be a whole number, got 2\.5"),
        ({"horizon": True}, "horizon must be a whole number, got True"),
    ],
)
def test_bad_sizes(arguments, message):
    with pytest.raises(InputError, match=message):
        Synthetic(**arguments)


def test_bad_rows_and_splits():
    with pytest.raises(InputError, match="n_rows must be at least 1, got 0"):
        Synthetic().sample_actions(0, [0], 0)
    with pytest.raises(InputError, match="unknown split 'dev'"):
        Synthetic().sample(0, [0], "dev")
