"""The Gaussian form against Bayesian linear regression in closed form, and in single precision for long."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from gents_gym import InputError, load_model, make_tasks
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.filter_gaussian import LEAST_NOISE, GaussianForm


def random_model(noise=0.6, **sizes):
    model = FilterModel(FilterConfig(2, 3, likelihood="gaussian", **sizes))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * 0.3
    model.form.set_noise(noise)
    model.form.outcome_scaling = torch.tensor([4.0, 0.5])  # outcomes have mean 4 and standard deviation 2
    return model.eval()


def sequences(n=5, length=40, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((n, 2), (n, length, 3), (n, length))
    z, x, y = (rng.normal(size=shape) for shape in shapes)
    return tuple(torch.tensor(part, dtype=torch.float32) for part in (z, x, 4 + 2 * y))


def closed_form(mean, covariance, noise, x, y, new):
    """Return mean and variance of an outcome at ``new`` given rows x (t, K) and outcomes y (t,): normal equations."""
    precision = np.linalg.inv(covariance)
    posterior = np.linalg.inv(precision + x.T @ x / noise)
    centre = posterior @ (precision @ mean + x.T @ y / noise)
    return new @ centre, new @ posterior @ new + noise


def test_it_is_bayesian_linear_regression():
    model, (z, x, y) = random_model(), sequences()
    with torch.no_grad():
        found, start = model.log_prob(z, x, y).numpy(), model.start(z)
    for i in range(5):
        prior = (start.mean[i].double().numpy(), start.covariance[i].double().numpy())
        rows = np.column_stack([np.ones(40), x[i].double().numpy()])
        scaled = (y[i].double().numpy() - 4) / 2
        for t in range(40):
            mean, variance = closed_form(*prior, 0.6, rows[:t], scaled[:t], rows[t])
            density = norm(4 + 2 * mean, 2 * np.sqrt(variance)).logpdf(float(y[i, t]))
            assert found[i, t] == pytest.approx(density, abs=2e-4)


def test_both_paths_give_the_same_densities_and_follow_where():
    model, (z, x, y) = random_model(context_features=2, context_width=6, prior_width=4), sequences()
    with torch.no_grad():
        parallel = model.log_prob(z, x, y)
        some = model.log_prob(z, x, y, torch.tensor([0, 7, 39]))
        state = model.start(z)
        for t in range(40):
            mean, variance = model.predict(state, x[:, t]).T
            density = torch.distributions.Normal(mean, variance.sqrt()).log_prob(y[:, t])
            assert torch.allclose(density, parallel[:, t], atol=1e-4)
            where = torch.arange(5) < 3
            mixed = model.append(state, x[:, t], y[:, t], where)
            after = model.append(state, x[:, t], y[:, t])
            for part, old, new in zip(mixed, state, after, strict=True):
                assert torch.equal(part[:3], new[:3])
                assert torch.equal(part[3:], old[3:])
            state = after
    assert torch.allclose(some, parallel[:, [0, 7, 39]], atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-3, 1.0])
def test_posteriors_stay_sound_for_thousands_of_steps(noise):
    """Wide prior, hardly any noise, rows that nearly repeat: all that eats up single precision."""
    model = random_model(noise)
    rng = np.random.default_rng(1)
    with torch.no_grad():
        model.prior_scale[:, 0] = 2.0  # variances around 50
        model.prior_lower.zero_()
        state = model.start(torch.zeros(8, 2))
        truth = torch.tensor(rng.normal(size=(8, 4)), dtype=torch.float32)
        base = torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32)
        errors = []
        for t in range(1500):
            x = base + torch.tensor(rng.normal(size=(8, 3)) * (1 if t % 2 else 1e-3), dtype=torch.float32)
            level = (truth * model.rows(x)).sum(1)
            y = 4 + 2 * (level + np.sqrt(noise) * torch.tensor(rng.normal(size=8), dtype=torch.float32))
            mean, variance = model.predict(state, x).T
            assert torch.isfinite(mean).all()
            assert (variance >= 4 * LEAST_NOISE * 0.999).all()
            errors.append(((mean - 4) / 2 - level).abs().max().item())
            state = model.append(state, x, y)
    assert torch.allclose(state.covariance, state.covariance.mT, rtol=0, atol=1e-6)
    assert np.linalg.eigvalsh(state.covariance.double().numpy()).min() > -1e-5
    assert max(errors[-500:]) < 0.02 + 0.5 * np.sqrt(noise)


def test_the_noise_has_a_floor_and_is_learned():
    form = GaussianForm()
    for noise, kept in ((0.0, LEAST_NOISE), (0.5, 0.5), (7.0, 7.0)):
        form.set_noise(noise)
        assert form.noise.item() == pytest.approx(kept, rel=2e-3)
    model, (z, x, y) = random_model(), sequences()
    model.log_prob(z, x, y).sum().backward()
    assert model.form.log_noise.grad.abs() > 0.1


def test_any_unit_of_outcomes_gives_the_same_model():
    """Densities change by the logarithm of the unit, and nothing else."""
    model, (z, x, y) = random_model(), sequences()
    with torch.no_grad():
        before = model.log_prob(z, x, y)
        model.form.outcome_scaling = torch.tensor([4000.0 + 7, 0.5 / 1000])
        after = model.log_prob(z, x, 1000 * y + 7)
    assert torch.allclose(after, before - np.log(1000), atol=1e-3)


def test_the_bundled_model_is_near_the_exact_posterior_predictive():
    """Held-out rows of the synthetic setting; nature's own prior and noise, by a filter in double precision."""
    tasks = make_tasks("synthetic", outcomes="gaussian")
    rows = tasks.sample_actions(1, range(400), 500, "test")
    with torch.no_grad():
        given = (torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))
        found = -load_model("synthetic-filter-gaussian").log_prob(*given).double().numpy()
    mean, variance = tasks.truth.prior(rows.action_features)
    covariance = np.eye(6) * variance[:, None]
    exact = np.empty_like(found)
    for t in range(500):
        x, y = np.column_stack([np.ones(400), rows.contexts[:, t]]), rows.outcomes[:, t]
        direction = (covariance @ x[..., None])[..., 0]
        spread, error = 1 + (direction * x).sum(axis=1), y - (mean * x).sum(axis=1)
        exact[:, t] = -norm(0, np.sqrt(spread)).logpdf(error)
        mean = mean + direction * (error / spread)[:, None]
        covariance = covariance - direction[:, :, None] * direction[:, None] / spread[:, None, None]
    assert -0.0001 < (found - exact).mean() < 0.0003


def test_a_head_is_for_binary_outcomes():
    with pytest.raises(InputError, match="head_width must be 0 for gaussian outcomes, got 3"):
        FilterConfig(2, 5, head_width=3, likelihood="gaussian")
    rule = r"a likelihood must be bernoulli, gaussian or categorical\(C\), got 'poisson'"
    with pytest.raises(InputError, match=rule):
        FilterConfig(2, 5, likelihood="poisson")
