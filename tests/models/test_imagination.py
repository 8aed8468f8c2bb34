import numpy as np
import pytest

from gents_gym.likelihoods import BERNOULLI
from gents_gym.models.action import PerAction
from gents_gym.models.exact import ExactModel
from gents_gym.models.imagination import imagine_tables
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import identity

B, T, A = 3, 12, 4
SETTING = Synthetic(outcomes="gaussian")


class Shy:
    """The exact model without the means that it could return."""

    def __init__(self, model):
        self.model, self.likelihood = model, model.likelihood

    def begin(self, info, rngs):
        return ShyBelief(self.model.begin(info, rngs))

    def context_features(self, contexts):
        return None

    def action_context_features(self, action_features, contexts):
        return None


class ShyBelief:
    def __init__(self, belief):
        for verb in ("expected", "variance", "decide", "observe", "complete", "add", "state", "restore"):
            setattr(self, verb, getattr(belief, verb))
        self._belief = belief

    def fork(self, tasks):
        return ShyBelief(self._belief.fork(tasks))


class Torn:
    """Predicts by a product whose rounding depends on how many rows there are."""

    likelihood = BERNOULLI

    def start(self, action_features):
        return np.repeat(action_features[:, :1], 40, axis=1)

    def predict(self, state, context):
        mixed = state.astype(np.float32) @ np.linspace(-1, 1, 40 * 40, dtype=np.float32).reshape(40, 40)
        return 1 / (1 + np.exp(-(mixed.sum(axis=1) + context[:, 0] + state[:, 1])))

    def append(self, state, context, outcome, where=None):
        state = state.copy()
        state[:, 1] += np.where(True if where is None else where, 0.01 * (outcome - 0.5), 0)
        return state


def draw(model, n_tasks=B, further=30, features=None, contexts=None, at=None):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n_tasks, A, 2)).astype(np.float32)
    contexts = rng.normal(size=(n_tasks, T, 5)).astype(np.float32)
    at = range(n_tasks) if at is None else at
    rngs = [np.random.default_rng(i) for i in at]
    given = (features[list(at)], contexts[list(at)])
    return given, imagine_tables(model, *given, rngs, reward_fn=identity, further=further)


def test_the_exact_models_means_are_those_of_the_drawn_coefficients():
    _, (outcomes, means) = draw(ExactModel(SETTING.truth), 400)
    noise = outcomes - means
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    between = np.corrcoef(noise.reshape(400, -1, A)[:, :, 0].T)
    assert np.abs(between - np.eye(T)).max() < 0.25


def test_learned_means_are_the_posterior_means_of_all_rows():
    """Against ridge regression on the same rows, from the random numbers up."""
    model, further = Shy(ExactModel(SETTING.truth)), 30
    (features, contexts), (outcomes, means) = draw(model, further=further)
    for i in range(B):
        rng = np.random.default_rng(i)
        more = rng.spawn(1)[0].integers(T, size=further)
        x = np.concatenate([contexts[i], contexts[i][more]]).astype(np.float64)
        rows = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        centre, variance = SETTING.truth.prior(features[i])
        coefficients = centre + np.sqrt(variance) * rng.standard_normal((1, A, 6))[0]
        table = rows @ coefficients.T + rng.standard_normal((len(x), A))
        assert np.allclose(outcomes[i], table[:T], atol=1e-5)
        for a in range(A):
            precision = np.diag(1 / variance[a]) + rows.T @ rows
            fitted = np.linalg.solve(precision, centre[a] / variance[a] + rows.T @ table[:, a])
            assert np.allclose(means[i, :, a], rows[:T] @ fitted, atol=1e-4)


def test_more_rows_bring_means_closer_to_the_truth():
    errors = []
    for further in (0, 300):
        model = ExactModel(SETTING.truth)
        _, (_, exact) = draw(model, 20, further)
        _, (_, learned) = draw(Shy(model), 20, further)
        errors.append(float(np.sqrt(np.mean((exact - learned) ** 2))))
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize("model", [ExactModel(SETTING.truth), PerAction(Torn())], ids=["exact", "torn"])
def test_a_task_does_not_depend_on_the_others(model):
    _, (outcomes, means) = draw(model, 5)
    _, (alone, its) = draw(model, 5, at=[3])
    assert np.array_equal(outcomes[3], alone[0])
    assert np.allclose(means[3], its[0], rtol=1e-5)


def test_chunks_do_not_show(monkeypatch):
    model = Shy(ExactModel(SETTING.truth))
    whole = draw(model, 5)[1]
    monkeypatch.setattr("gents_gym.models.imagination.CELLS", 2 * A * (T + 30))
    for one, other in zip(whole, draw(model, 5)[1], strict=True):
        assert np.allclose(one, other, atol=1e-6)


def test_rows_beyond_the_table_do_not_change_it():
    model = Shy(ExactModel(SETTING.truth))
    assert np.array_equal(draw(model, further=0)[1][0], draw(model, further=20)[1][0])


def test_no_means_are_learned_if_none_are_wanted():
    (_, _), (outcomes, means) = draw(Shy(ExactModel(SETTING.truth)), further=None)
    assert outcomes.shape == (B, T, A)
    assert means is None
