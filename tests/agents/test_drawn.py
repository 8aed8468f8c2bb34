import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from gents_gym.agents.drawn import DrawnBest


def test_votes_of_draws_agree_with_quadrature():
    mean, deviation = np.array([0.1, 0.3, 0.25, -1.0]), np.array([0.3, 0.1, 0.2, 0.3])

    def density(x, a):
        others = np.delete(np.arange(4), a)
        return norm.pdf(x, mean[a], deviation[a]) * norm.cdf(x, mean[others], deviation[others]).prod()

    exact = [quad(density, -2, 2, args=(a,))[0] for a in range(4)]
    best = DrawnBest(lambda context: (mean[None], deviation[None]), [np.random.default_rng(0)], 4, 40_000)
    np.testing.assert_allclose(best.probabilities(np.zeros((1, 2)))[0], exact, atol=4 * 0.5 / 200)


def test_votes_leave_the_generators_and_what_is_played_alone():
    def played(ask):
        rngs = [np.random.default_rng(i) for i in range(3)]
        best = DrawnBest(lambda context: (np.zeros((3, 4)), np.ones((3, 4))), rngs, 4, 8)
        actions = []
        for _ in range(100):
            if ask:
                best.probabilities(np.zeros((3, 2)))
            actions.append(best.act(np.zeros((3, 2))).tolist())
        return actions, [rng.random() for rng in rngs]

    assert played(ask=True) == played(ask=False)
