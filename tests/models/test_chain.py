"""The reference of binary outcomes, against quadrature, and its proposals against the Gaussian process."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from gents_gym import Feedback, TaskInfo, make_tasks
from gents_gym.models.process import ProcessPosterior
from gents_gym.models.reference import ReferenceModel

HORIZON = 5
DRAWS = {"walk": 6000, "shared": 20_000}  # enough in the latter to see that the Laplace approximation is one
KINDS = {"walk": ("drifting", {"rate": 0.3}), "shared": ("correlated", {"correlation": 0.6})}


class Case:
    """One task of two actions, in which three outcomes have arrived, the second decision's among the late ones."""

    def __init__(self, kind):
        name, options = KINDS[kind]
        self.tasks = make_tasks(name, n_actions=2, horizon=HORIZON, context_dim=2, **options).sample(3, [0])
        self.actions, self.arrived = np.array([0, 1, 0, 1]), (0, 3, 2)  # decision 1 is still open
        self.model = ReferenceModel(self.tasks.truth, n_draws=DRAWS[kind])
        sizes = self.tasks.n_actions, self.tasks.context_dim, HORIZON
        known = {"truth": self.tasks.truth, "known_contexts": self.tasks.contexts}
        self.info = TaskInfo(self.tasks.action_features, *sizes, **known)
        self.belief = self.model.begin(self.info, [np.random.default_rng(7)])
        for t, action in enumerate(self.actions):
            self.belief.decide(self.tasks.contexts[:, t], np.array([action]))
        for t in self.arrived:
            outcome = self.tasks.outcomes[:1, t, self.actions[t]]
            self.belief.observe(Feedback(np.array([0]), np.array([t]), outcome))

    def quadrature(self, decision, action):
        """Return mean and variance of a cell's chance given the outcomes, by a product rule over four logits."""
        truth, tasks = self.tasks.truth, self.tasks
        cells = [*((t, self.actions[t]) for t in self.arrived), (decision, action)]
        mean, variance = (part[0] for part in truth.prior(tasks.action_features))
        rows = self.model.design(tasks.contexts[0])
        loads = np.array([rows[t] * np.sqrt(variance[a]) for t, a in cells])
        centre = np.array([rows[t] @ mean[a] for t, a in cells])
        kept, c = 1 - truth.rate, truth.correlation
        links = [[kept ** abs(t - s) * (c + (1 - c) * (a == b)) for s, b in cells] for t, a in cells]
        root = np.linalg.cholesky(loads @ loads.T * np.array(links) + 1e-12 * np.eye(4))
        nodes, shares = np.polynomial.hermite_e.hermegauss(20)
        grid = np.stack(np.meshgrid(*[nodes] * 4, indexing="ij"), -1).reshape(-1, 4)
        weights = np.prod(np.meshgrid(*[shares] * 4, indexing="ij"), axis=0).ravel()
        logits = centre + grid @ root.T
        for i, t in enumerate(self.arrived):
            sign = 2 * tasks.outcomes[0, t, self.actions[t]] - 1
            weights = weights * expit(sign * logits[:, i])
        weights, chances = weights / weights.sum(), expit(logits[:, -1])
        first = weights @ chances
        return first, weights @ chances**2 - first**2


@pytest.fixture(scope="module", params=list(KINDS))
def case(request):
    return Case(request.param)


def test_expectations_are_those_of_quadrature(case):
    x = case.tasks.contexts[:, 4]
    found, spread, error = case.belief.expected(x)[0], case.belief.variance(x)[0], case.model.error(case.belief, x)[0]
    for action in (0, 1):
        mean, variance = case.quadrature(4, action)
        assert error[action] == pytest.approx(np.sqrt(variance / case.model.n_draws), rel=0.1)
        assert abs(found[action] - mean) < 4 * error[action]
        assert spread[action] == pytest.approx(variance, rel=0.1)


def test_open_and_missing_cells_of_the_past_are_drawn_from_the_posterior(case):
    table = case.belief.complete(case.tasks.contexts[:, 4], draws=6000, contexts="given").outcomes[0]  # (M, T, A)
    for decision, action in ((1, 1), (0, 1), (2, 1)):
        mean, _ = case.quadrature(decision, action)
        assert abs(table[:, decision, action].mean() - mean) < 4 * np.sqrt(mean * (1 - mean) / 6000)
    assert (table[:, 0, 0] == case.tasks.outcomes[0, 0, 0]).all()


def test_proposals_have_the_covariance_of_the_gaussian_process(case):
    """With the curvature 1 in each cell, q has the covariance of Gaussian outcomes with noise 1."""
    chain = case.belief._posterior
    laplace = chain._approximate()
    there, n = laplace.decision >= 0, laplace.mode.shape[1]
    covariance = laplace.design @ laplace.design.swapaxes(1, 2) * chain._correlations(laplace.decision, laplace.action)
    inverse = np.linalg.inv(np.eye(n) + covariance)
    other = replace(chain, laplace=laplace._replace(weight=there * 1.0, inverse=inverse))
    rngs = [np.random.default_rng(0)]
    n_rows = chain.ledger.time + 1 if case.tasks.truth.rate else 1
    now = other._propose(6000, n_rows, rngs)[:, :, -1] * chain.scale[:, None]  # (1, M, A, K)
    rows = case.model.design(case.tasks.contexts[:, 4:5])
    process = ProcessPosterior.prior(case.tasks.truth, chain.ledger, chain.mean, chain.scale**2)
    process.learn(np.array([0]), None, None, None)
    _, variance = process.predict(rows)
    assert (now @ rows[:, 0, :, None])[0, :, :, 0].var(axis=0) == pytest.approx(variance[0, 0], rel=0.1)
