"""The reference of binary outcomes with a jump or row effects, against simulated tables that agree with the data."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from gents_gym import Feedback, TaskInfo, make_tasks
from gents_gym.models.reference import ReferenceModel

T, NOW, TABLES, DRAWS = 8, 6, 300_000, 6000
ACTIONS, ARRIVED = np.array([0, 1, 0, 1, 1, 0]), (0, 3, 2, 4, 5)  # the outcome of decision 1 is still open
KINDS = {
    "jump": ("drifting", {"drift": "jump", "rate": 0.15}),
    "rows": ("correlated", {"correlation": 0.5, "row_effect": 0.7}),
}


def simulate(kind, mean, variance, x):
    """Return simulated chances and outcomes from the prior of one task, (N, T, A) each."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((2, TABLES, *mean.shape))
    if kind == "jump":
        before, after = np.einsum("tk,snak->snta", x, mean + np.sqrt(variance) * normal)
        late = np.arange(T) >= rng.geometric(0.15, TABLES)[:, None]
        chances, uniform = expit(np.where(late[..., None], after, before)), rng.random(after.shape)
    else:
        mixed = np.sqrt(0.5) * normal[0] + np.sqrt(0.5) * normal[1][:, :1]
        chances = expit(np.einsum("tk,nak->nta", x, mean + np.sqrt(variance) * mixed))
        effects = rng.standard_normal((TABLES, T, 1))
        uniform = ndtr(np.sqrt(0.7) * effects + np.sqrt(0.3) * rng.standard_normal(chances.shape))
    return chances, uniform < chances


class Case:
    """A belief of one task of two actions, and all simulated tables with the outcomes that it has observed."""

    def __init__(self, kind):
        name, options = KINDS[kind]
        self.tasks = tasks = make_tasks(name, n_actions=2, horizon=T, context_dim=2, **options).sample(3, [0])
        self.model = ReferenceModel(tasks.truth, n_steps=4, n_draws=DRAWS)
        info = TaskInfo(tasks.action_features, 2, tasks.context_dim, T, known_contexts=tasks.contexts)
        self.belief = self.model.begin(info, [np.random.default_rng(7)])
        for t, action in enumerate(ACTIONS):
            self.belief.decide(tasks.contexts[:, t], np.array([action]))
        for t in ARRIVED:
            self.belief.observe(Feedback(np.array([0]), np.array([t]), tasks.outcomes[:1, t, ACTIONS[t]]))
        prior = (part[0] for part in tasks.truth.prior(tasks.action_features))
        chances, outcomes = simulate(kind, *prior, self.model.design(tasks.contexts[0]))
        agree = [outcomes[:, t, ACTIONS[t]] == tasks.outcomes[0, t, ACTIONS[t]] for t in ARRIVED]
        kept = np.all(agree, axis=0)
        self.chances, self.outcomes = chances[kept], outcomes[kept].astype(np.float64)


@pytest.fixture(scope="module", params=list(KINDS))
def case(request):
    return Case(request.param)


def test_expectations_are_those_of_the_simulated_tables(case):
    x, simulated = case.tasks.contexts[:, NOW], case.chances[:, NOW]
    error = np.hypot(case.model.error(case.belief, x)[0], simulated.std(axis=0) / np.sqrt(len(simulated)))
    assert np.all(np.abs(case.belief.expected(x)[0] - simulated.mean(axis=0)) < 4 * error)
    assert np.sqrt(case.belief.variance(x)[0]) == pytest.approx(simulated.std(axis=0), rel=0.06)


def test_completed_tables_are_distributed_as_the_simulated_ones(case):
    """Pairs of cells too: those of a row, which row effects join, and those of an action, which a jump separates."""
    found = case.belief.complete(case.tasks.contexts[:, NOW], draws=DRAWS, contexts="given").outcomes[0]  # (M, T, A)
    for t in ARRIVED:
        assert (found[:, t, ACTIONS[t]] == case.tasks.outcomes[0, t, ACTIONS[t]]).all()
    for select in (
        lambda table: table,
        lambda table: table[..., 0] * table[..., 1],
        lambda table: table[:, :-1] * table[:, 1:],
        lambda table: table[:, :-2] * table[:, 2:],
    ):
        drawn, simulated = select(found), select(case.outcomes)
        error = simulated.std(axis=0) * np.sqrt(1 / DRAWS + 1 / len(simulated))
        assert np.all(np.abs(drawn.mean(axis=0) - simulated.mean(axis=0)) <= 4 * error)
