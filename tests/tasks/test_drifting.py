import numpy as np
import pytest

from gents_gym import InputError, Tasks, make_tasks

T = 40


def draw(n_tasks=4, **options):
    return make_tasks("drifting", **{"horizon": T, **options}).sample(3, range(n_tasks))


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("drift", ["walk", "jump"])
def test_without_drift_tasks_are_the_synthetic_ones_to_the_bit(drift, outcomes):
    plain = make_tasks("synthetic", horizon=T, outcomes=outcomes)
    still = make_tasks("drifting", horizon=T, outcomes=outcomes, drift=drift, rate=0, time=False)
    assert still.sample(3, range(4)).content_hash == plain.sample(3, range(4)).content_hash
    assert still.sample_actions(3, range(4), 9).content_hash == plain.sample_actions(3, range(4), 9).content_hash
    timed, tasks = draw(outcomes=outcomes, drift=drift, rate=0), plain.sample(3, range(4))
    assert np.array_equal(timed.contexts[..., :-1], tasks.contexts)
    for name in ("action_features", "outcomes", "means"):
        assert np.array_equal(getattr(timed, name), getattr(tasks, name))
    assert np.allclose(timed.contexts[..., -1], np.arange(T) / T)


@pytest.mark.parametrize("drift", ["walk", "jump"])
def test_tasks_begin_as_the_synthetic_ones(drift):
    moved, plain = draw(drift=drift, rate=0.2), make_tasks("synthetic", horizon=T).sample(3, range(4))
    assert np.array_equal(moved.contexts[..., :-1], plain.contexts)
    assert np.allclose(moved.means[:, 0], plain.means[:, 0], atol=1e-5)
    assert np.abs(moved.means[:, -1] - plain.means[:, -1]).max() > 0.1


@pytest.mark.parametrize("drift", ["walk", "jump"])
def test_coefficients_have_the_priors_spread_and_fade_at_the_rate(drift):
    """With constant contexts of 0 a mean is the intercept, which has variance 1 if Z has no effect."""
    options = {"outcomes": "gaussian", "drift": drift, "rate": 0.05, "n_actions": 50, "context_spread": 0.0}
    tasks = make_tasks("drifting", horizon=T, **options).sample(1, range(200))
    truth = make_tasks("drifting", **options).truth
    rows = np.concatenate([np.ones((200, 1, 1)), tasks.contexts[:, :1, :-1]], axis=2)  # (B, 1, K)
    mean, variance = truth.prior(tasks.action_features)  # (B, A, K) each
    scaled = (tasks.means - (rows @ mean.swapaxes(1, 2))) / np.sqrt(rows**2 @ variance.swapaxes(1, 2))  # (B, T, A)
    for t in (0, 10, T - 1):
        assert abs(scaled[:, t].var() - 1) < 0.04
        assert abs((scaled[:, 0] * scaled[:, t]).mean() - 0.95**t) < 0.1


def test_times_are_known_ahead():
    known = draw(rate=0.1).known_contexts
    assert np.isnan(known[..., :-1]).all()
    assert np.allclose(known[..., -1], np.arange(T) / T)
    assert draw(time=False).known_contexts is None


def test_what_is_known_ahead_is_kept_in_files_and_batches(tmp_path):
    tasks = draw()
    assert Tasks.load(tasks.save(tmp_path / "tasks.safetensors")).known_columns == (5,)
    assert tasks.put(np.array([0]), tasks[1]).known_columns == (5,)
    assert tasks.put(np.array([0]), Tasks(*(getattr(tasks[1], n) for n in ("action_features", "contexts", "outcomes")))
                     ).known_columns == ()  # fmt: skip


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": -0.1}, "rate must be at least 0, got -0.1"),
        ({"rate": 1.5}, "rate must be at most 1, got 1.5"),
        ({"drift": "walks"}, "unknown drift 'walks'; did you mean 'walk'"),
        ({"outcomes": "categorical"}, "unknown outcomes 'categorical'; known: bernoulli, gaussian"),
        ({"time": 1}, "time must be True or False, got 1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        make_tasks("drifting", **options)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((9,), "known_columns must lie below 6, the context size, got 9"),
        ((1, 1), r"known_columns must be a list of different columns, got \(1, 1\)"),
        ((0.5,), "known_columns must be a whole number, got 0.5"),
    ],
)
def test_bad_columns(columns, message):
    tasks = draw()
    with pytest.raises(InputError, match=message):
        Tasks(tasks.action_features, tasks.contexts, tasks.outcomes, known_columns=columns)
