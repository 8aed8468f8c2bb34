"""The compiled transformer against its plain methods, which predict from all rows again at every step."""

import math

import numpy as np
import pytest
import torch

from gents_gym import Feedback, InputError, TaskInfo, make_tasks
from gents_gym.models.belief import ActionBelief
from gents_gym.models.transformer_cache import Cache
from gents_gym.models.transformer_kernel import PAGE, TOKENS, _bend

SIZES = {  # of heads: smaller than a register, one register, more than one, odd
    "small": {"width": 16, "heads": 2},
    "register": {"width": 32, "heads": 2},
    "large": {"width": 20, "heads": 1},
    "odd": {"width": 9, "heads": 3, "layers": 1},
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_each_sequence_sees_its_own_rows(random_model, sizes):
    """Actions with histories of other lengths, among them empty ones, whole pages, and one row more."""
    model, counts = random_model(longest=60, **sizes), [0, 3, PAGE - 1, PAGE, 2 * PAGE + 5]
    rows = make_tasks("synthetic").sample_actions(0, range(len(counts)), 60)
    z, x, y = (torch.tensor(part) for part in (rows.action_features, rows.contexts, rows.outcomes))
    asked = torch.randn(len(counts), TOKENS + 3, 5, generator=torch.Generator().manual_seed(0))  # more than a block has
    with torch.no_grad():
        cache, state = Cache(model, z[None]), model.start(z)
        for t in range(max(counts)):
            for a in np.flatnonzero(np.array(counts) > t):
                cache.append(np.array([0]), np.array([a]), x[a, t][None].numpy(), y[a, t][None].numpy())
            state = model.append(state, x[:, t], y[:, t], torch.tensor(counts) > t)
        tokens = model.query_tokens(cache.features[0, :, None].expand(-1, asked.shape[1], -1), asked)
        found = model.parameters_of(cache.run(tokens, cache.sequences(np.arange(len(counts))[None]), False))
        wanted = torch.stack([model.predict(state, asked[:, k]) for k in range(asked.shape[1])], 1)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.parametrize("outcomes", ["bernoulli", "gaussian", "categorical"])
def test_long_tables_are_those_of_the_general_belief(random_model, outcomes):
    """Generated rows fill the last page of what was observed, and two pages more."""
    model = random_model(outcomes, longest=80, width=32, context_features=2, positions=1)
    if outcomes == "gaussian":
        model.outcome_scaling.copy_(torch.tensor([0.3, 2.0]))
    tasks = make_tasks("synthetic", n_actions=3, horizon=60, outcomes=outcomes).sample(0, range(3))
    info = TaskInfo(tasks.action_features, 3, 5, 60, reward_fn=tasks.reward_fn, likelihood=tasks.likelihood)
    every, found = np.arange(3), []
    for cached in (True, False):
        rngs = [np.random.default_rng(i) for i in range(3)]
        general = ActionBelief(model, info, rngs, model.bank.numpy(), math.inf, model.likelihood)
        belief = model.begin(info, rngs) if cached else general
        for t in range(24):
            action = np.array([0, 1, t % 2])
            belief.decide(tasks.contexts[:, t], action)
            belief.observe(Feedback(every, np.full(3, t), tasks.outcomes[every, t, action]))
        found.append([belief.complete(tasks.contexts[:, 24], *given).outcomes for given in ((None, 2), (36, 2))])
    for fast, slow in zip(*found, strict=True):
        np.testing.assert_allclose(fast, slow, atol=1e-4)
        assert len(np.unique(fast)) > 1


def test_rows_of_a_failed_table_do_not_return(random_model):
    """They lie in memory that the next table uses."""
    model, tasks = random_model("gaussian"), make_tasks("synthetic", horizon=9, outcomes="gaussian").sample(0, range(2))
    info = TaskInfo(tasks.action_features, 10, 5, 9, likelihood=tasks.likelihood)
    one, other = (model.begin(info, [np.random.default_rng(i) for i in range(2)]) for _ in range(2))
    with pytest.raises(InputError, match="what the model predicts"):
        one.complete(np.full((2, 5), 3e38, np.float32), 5)
    one.reseed([np.random.default_rng(i) for i in range(2)])
    found, wanted = (belief.complete(tasks.contexts[:, 0], 4).outcomes for belief in (one, other))
    np.testing.assert_array_equal(found, wanted)


def test_gelu():
    numbers = np.concatenate([np.linspace(-9, 9, 2001), [-1e4, 1e4]])
    found = numbers.astype(np.float32)
    _bend(found)
    wanted = [0.5 * each * (1 + math.erf(each / 2**0.5)) for each in numbers]
    np.testing.assert_allclose(found, wanted, atol=2e-6, rtol=1e-6)
