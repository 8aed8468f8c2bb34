"""The categorical form against its formulas in plain NumPy, the binary form, and draws of coefficients."""

import numpy as np
import pytest
import torch
from scipy.special import softmax

from gents_gym import InputError
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.numerics.cubature import normal_cubature


def random_model(n_outcomes=3, scale=0.3, **sizes):
    model = FilterModel(FilterConfig(2, 3, likelihood=f"categorical({n_outcomes})", **sizes))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * scale
    return model.eval()


def sequences(n=4, length=30, n_outcomes=3):
    rng = np.random.default_rng(0)
    z, x = (torch.tensor(rng.normal(size=shape), dtype=torch.float32) for shape in ((n, 2), (n, length, 3)))
    return z, x, torch.tensor(rng.integers(n_outcomes, size=(n, length)), dtype=torch.float32)


@pytest.mark.parametrize("n_outcomes", [2, 3, 5])
def test_it_is_its_formula(n_outcomes):
    """One action, word by word, with explicit Kronecker products: the moments of reweighted nodes."""
    model, (z, x, y) = random_model(n_outcomes), sequences(n_outcomes=n_outcomes)
    q = n_outcomes - 1
    nodes, weights = normal_cubature(q)
    with torch.no_grad():
        found, start = model.log_prob(z, x, y).numpy(), model.start(z)
    for i in range(len(z)):
        m, p = start.mean[i].double().numpy(), start.covariance[i].double().numpy()
        for t in range(30):
            row = np.kron(np.eye(q), np.array([[1, *x[i, t].tolist()]]).T)  # (Q·K, Q)
            centre, spread = row.T @ m, row.T @ p @ row
            drawn = centre + nodes @ np.linalg.cholesky(spread).T
            chances = softmax(np.column_stack([np.zeros(len(drawn)), drawn]), axis=1)[:, int(y[i, t])]
            assert found[i, t] == pytest.approx(np.log(weights @ chances), abs=1e-4)
            shares = weights * chances / (weights @ chances)
            after, among = shares @ drawn, np.cov(drawn.T, aweights=shares, ddof=0).reshape(q, q)
            gain = p @ row @ np.linalg.inv(spread)  # of the coefficients on the predictors
            m, p = m + gain @ (after - centre), p + gain @ (among - spread) @ gain.T


def usual_model(n_outcomes):
    """Predictors vary by about 1, as in the synthetic setting."""
    model = random_model(n_outcomes)
    with torch.no_grad():
        model.prior_scale.zero_()[:, 0] = -0.7
    return model


def test_two_categories_are_nearly_the_binary_form():
    model, (z, x, y) = usual_model(2), sequences(n_outcomes=2)
    binary = FilterModel(FilterConfig(2, 3))
    binary.load_state_dict(model.state_dict())
    with torch.no_grad():
        difference = model.log_prob(z, x, y) - binary.log_prob(z, x, y)
    assert difference.abs().max() < 0.2
    assert difference.mean().abs() < 0.01


def test_many_categories_are_refused():
    assert random_model(9).prior_mean.shape == (32, 3)
    with pytest.raises(InputError, match=r"a filter's outcomes must be at most 9 categories, got categorical\(10\)"):
        random_model(10)


def test_both_paths_give_the_same_probabilities_and_follow_where():
    model, (z, x, y) = random_model(context_features=2, context_width=6, prior_width=4), sequences()
    with torch.no_grad():
        parallel, state = model.log_prob(z, x, y), model.start(z)
        for t in range(30):
            chances = model.predict(state, x[:, t])
            assert torch.allclose(chances.sum(1), torch.ones(4), atol=1e-5)
            came = chances.gather(1, y[:, t].long()[:, None])[:, 0]
            assert torch.allclose(came.log(), parallel[:, t], atol=1e-5)
            where = torch.arange(4) < 2
            mixed, after = model.append(state, x[:, t], y[:, t], where), model.append(state, x[:, t], y[:, t])
            for part, old, new in zip(mixed, state, after, strict=True):
                assert torch.equal(part[:2], new[:2])
                assert torch.equal(part[2:], old[2:])
            state = after


def test_covariances_stay_positive_however_wide_the_prior():
    """Predictors that vary a lot and against each other, outcomes that surprise."""
    model = random_model()
    with torch.no_grad():
        model.prior_scale.zero_()[:, 0] = 2.5  # variances around 150
        model.prior_lower.zero_()
        model.prior_lower[4:, :4] = -0.95 * torch.eye(4)
        state = model.start(torch.zeros(6, 2))
        rng = np.random.default_rng(0)
        for _ in range(500):
            x = torch.tensor(rng.normal(size=(6, 3)), dtype=torch.float32)
            state = model.append(state, x, torch.tensor(rng.integers(3, size=6), dtype=torch.float32))
            assert np.linalg.eigvalsh(state.covariance.double().numpy()).min() > -1e-4
    assert np.linalg.eigvalsh(state.covariance.double().numpy()).max() < 10


def test_predictions_are_near_those_of_drawn_coefficients():
    model, (z, x, _) = usual_model(3), sequences(n=3, length=1)
    rng = np.random.default_rng(0)
    with torch.no_grad():
        state = model.start(z)
        found = model.predict(state, x[:, 0]).numpy()
    for i in range(3):
        drawn = rng.multivariate_normal(
            state.mean[i].double().numpy(), state.covariance[i].double().numpy(), size=100_000
        )
        predictors = drawn.reshape(-1, 2, 4) @ np.array([1, *x[i, 0].tolist()])
        exact = softmax(np.column_stack([np.zeros(len(drawn)), predictors]), axis=1).mean(axis=0)
        assert found[i] == pytest.approx(exact, abs=0.02)


def test_sequences_have_nearly_their_exact_probability():
    """p(Y | X, Z) by averaging over many draws of the coefficients; outcomes are drawn from the model itself."""
    model, (z, x, _) = usual_model(3), sequences(n=6, length=10)
    rng, y = np.random.default_rng(1), torch.zeros(6, 10)
    with torch.no_grad():
        start = model.start(z)
        drawn = [
            rng.multivariate_normal(mean.double().numpy(), spread.double().numpy(), size=100_001).reshape(-1, 2, 4)
            for mean, spread in zip(start.mean, start.covariance, strict=True)
        ]
        for i, own in enumerate(drawn):
            rows = np.column_stack([np.ones(10), x[i].numpy()])
            predictors = own @ rows.T  # (S, 2, 10)
            chances = softmax(np.concatenate([np.zeros((len(own), 1, 10)), predictors], axis=1), axis=1)
            came = (rng.random(10) >= np.cumsum(chances[0], axis=0)[:2]).sum(axis=0)  # by the first draw
            y[i] = torch.tensor(came)
            exact = np.log(np.prod(chances[1:, came, np.arange(10)], axis=1).mean())
            found = model.log_prob(z[i : i + 1], x[i : i + 1], y[i : i + 1]).sum().item()
            assert found == pytest.approx(exact, abs=0.1)
