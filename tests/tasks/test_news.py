"""The news distribution against closed forms, a slow sampler's formula and the corpus's files as they are."""

import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest

from gents_gym import InputError, make_tasks
from gents_gym.randomness import SPLITS
from gents_gym.tasks.headlines.corpus import BUNDLED, load_corpus
from gents_gym.tasks.news import News, context_features

TABLE = pq.read_table(BUNDLED / "headlines.parquet").to_pydict()
SCORES = {
    text: scores
    for text, *scores in zip(TABLE["headline"], TABLE["sentiment"], TABLE["formality"], strict=True)
}  # fmt: skip
SPLIT = dict(zip(TABLE["headline"], TABLE["split"], strict=True))


def test_actions_are_distinct_headlines_of_the_stream_s_split_with_their_own_embeddings():
    corpus = load_corpus()
    embedding = dict(zip(corpus.texts, corpus.embeddings, strict=True))
    for split in SPLITS:
        tasks = News(horizon=2).sample(0, range(30), split)
        for texts, features, hidden in zip(tasks.texts, tasks.action_features, tasks.hidden_features, strict=True):
            assert len(set(texts)) == 10
            assert {SPLIT[text] for text in texts} == {split}
            assert np.array_equal(hidden, np.float32([SCORES[text] for text in texts]))
            assert np.array_equal(features, [embedding[text] for text in texts])


def test_first_tasks_stay_the_same_bits_when_more_are_drawn():
    distribution = News(horizon=20)
    many, few, one = (distribution.sample(7, indices) for indices in (range(20), range(9), [5]))
    assert many[:9].hashes == few.hashes
    assert many[5].hashes == one.hashes
    assert many.texts[5].tolist() == one.texts[0].tolist()


def test_context_features_are_the_paper_s():
    x = np.array([[1.0, -2, 3, 4, -0.5], [1, -2, 3, 4, 0.1]])
    assert context_features(x).tolist() == [[-1, 2, -3, -4], [1, -2, 3, 4]]


def test_logits_have_the_closed_form_moments():
    """Given φ_Z, an action is logistic regression on (1, φ_X) with known Gaussian coefficients."""
    tasks = News(n_actions=20, horizon=60).sample(1, range(300))
    x = tasks.contexts.astype(np.float64)
    rows = np.concatenate([np.ones((300, 60, 1)), x[..., :4] * np.where(x[..., 4:] > 0, 1, -1)], axis=2)
    clear = np.abs(tasks.means - 0.5) < 0.499  # nearer to 0 and 1, float32 rounds the logits away
    means = np.where(clear, tasks.means, 0.5).astype(np.float64)
    logits = np.log(means / (1 - means))
    squares = np.einsum("bta,bti,btj->baij", clear, rows, rows)
    enough = (clear.sum(axis=1) >= 20).reshape(-1)
    squares += 1e-9 * np.eye(5)
    fitted = np.linalg.solve(squares, np.einsum("bta,bti,bta->bai", clear, rows, logits)[..., None])[..., 0]
    coefficients = fitted.reshape(-1, 5)[enough]
    z = np.array([SCORES[text] for text in tasks.texts.flat])[enough]
    assert enough.mean() > 0.99
    mean = np.ones((len(z), 5))
    mean[:, 0] = z.sum(axis=1)
    mean[:, 1:3] += z
    variance = np.full((len(z), 5), 0.25**2)
    variance[:, 0] = 1 + 0.25**2 * (z**2).sum(axis=1)
    variance[:, 1:3] *= 1 + z**2
    standard = (coefficients - mean) / np.sqrt(variance)
    n = len(standard)
    assert np.abs(standard.mean(axis=0)).max() < 5 / np.sqrt(n)
    assert np.abs(np.cov(standard, rowvar=False) - np.eye(5)).max() < 5 * np.sqrt(2 / n)


def test_outcomes_are_coin_flips_of_the_formula():
    """Where sentiment and formality are high, clicks are as frequent as the formula's mean over its own draws."""
    tasks = News(n_actions=10, horizon=100).sample(2, range(200))
    surprise = (tasks.outcomes - tasks.means).astype(np.float64)
    spread = (tasks.means * (1 - tasks.means)).astype(np.float64)
    for where in (tasks.means < 0.1, (tasks.means > 0.4) & (tasks.means < 0.6), tasks.means > 0.9):
        assert abs(surprise[where].sum()) < 4 * np.sqrt(spread[where].sum())
    z = np.array([SCORES[text] for text in tasks.texts.flat]).reshape(200, 10, 2)
    rng = np.random.default_rng(0)
    for where in (z.sum(axis=2) > 1, z.sum(axis=2) < -1):
        rates = tasks.outcomes.mean(axis=1)[where]  # (m,) per action
        phi = z[where]  # (m, 2)
        expected = []
        for s, f in phi:
            x = rng.normal(size=(50, 5))
            x = x[:, :4] * np.sign(x[:, 4:])
            u_z, u_x, u_c = rng.normal(1, 0.25, (50, 2)), rng.normal(1, 0.25, (50, 4)), rng.normal(1, 0.25, (50, 2))
            w = (
                rng.normal(size=50)
                + u_z @ [s, f]
                + (u_x * x).sum(axis=1)
                + x[:, 0] * u_c[:, 0] * s
                + x[:, 1] * u_c[:, 1] * f
            )
            expected.append((1 / (1 + np.exp(-w))).mean())
        error = np.sqrt((rates.var() + np.var(expected)) / len(rates))
        assert abs(rates.mean() - np.mean(expected)) < 4.5 * error


def test_single_actions_go_through_the_split_once_before_any_comes_again():
    distribution = News()
    n = len(distribution.headlines.splits["validation"])
    rows = distribution.sample_actions(0, range(n + 3), 2, "validation")
    pool = distribution.headlines.embeddings[distribution.headlines.splits["validation"]]
    assert np.array_equal(np.sort(rows.action_features[:n], axis=0), np.sort(pool, axis=0))
    assert np.array_equal(rows.action_features[n:], rows.action_features[:3])
    assert not np.array_equal(rows.contexts[n:], rows.contexts[:3])
    again = distribution.sample_actions(0, [n + 1, 4], 2, "validation")
    assert np.array_equal(again.action_features, rows.action_features[[1, 4]])
    assert np.array_equal(again.outcomes, rows.outcomes[[n + 1, 4]])
    assert np.array_equal(again.hidden_features, rows.hidden_features[[1, 4]])
    other = distribution.sample_actions(1, range(5), 2, "validation")
    assert not np.array_equal(other.action_features, rows.action_features[:5])


def test_the_setting_s_oracle_is_mlp_and_the_reward_counts():
    tasks = make_tasks("news", horizon=3, reward_fn="numpy:square").sample(0, [0])
    assert tasks.oracle == "mlp"
    assert tasks.reward_fn is np.square


def test_a_distribution_pickles_as_its_corpus_folder():
    distribution = News(horizon=3)
    data = pickle.dumps(distribution)
    assert len(data) < 2000
    assert pickle.loads(data).sample(0, [0]).hashes == distribution.sample(0, [0]).hashes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_actions": 1}, "n_actions must be at least 2, got 1"),
        (
            {"n_actions": 3000},
            "n_actions must be at most the 2400 headlines of the corpus's split 'validation', got 3000",
        ),
        ({"context_dim": 2}, "context_dim must be at least 3, got 2"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        (
            {"corpus": "/no/where"},
            r"corpus must be a folder that `gents-gym news prepare` has finished, got '/no/where'",
        ),
        ({"corpus": 3}, "corpus must be a folder's name or None, got 3"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        News(**arguments)


def test_bad_rows_and_splits():
    with pytest.raises(InputError, match="n_rows must be at least 1, got 0"):
        News().sample_actions(0, [0], 0)
    for sample in (lambda: News().sample(0, [0], "dev"), lambda: News().sample_actions(0, [0], 2, "dev")):
        with pytest.raises(InputError, match="unknown split 'dev'"):
            sample()
