"""TS-Gen against a slow, obvious version, probability matching, and what its options promise."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import gents_gym
from gents_gym import InputError, TaskInfo, load_model, make_agent, rollout
from gents_gym.agents.ts_gen import GenUCB, TSGen
from gents_gym.bench.plain import PlainTSGen
from gents_gym.models.exact import ExactModel
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.load import as_model
from gents_gym.policies.logistic import Logistic
from gents_gym.randomness import stream
from gents_gym.tasks.logistic import paper_prior
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Feedback

T, A = 30, 3


def make(num_envs=6, **config):
    sizes = {"horizon": T, "n_actions": A, "autoreset_mode": "Disabled", **config}
    return gym.make_vec("gents_gym/Synthetic-v0", num_envs=num_envs, **sizes)


def slow_filter(model, z, rows, outcomes):
    """The filter's moments after some rows, in plain NumPy."""
    w = [p.detach().numpy().astype(float) for p in (model.prior_mean, model.prior_scale, model.prior_lower)]
    mean = w[0] @ [1, *z]
    root = np.diag(np.exp(w[1] @ [1, *z, *z**2])) @ (np.eye(6) + np.tril(w[2], -1))
    covariance = root @ root.T
    for x, y in zip(rows, outcomes, strict=True):
        mean, covariance, _ = slow_step(mean, covariance, x, y)
    return mean, covariance


def slow_step(mean, covariance, x, y):
    row = np.array([1, *x])
    kappa = 1 / np.sqrt(1 + np.pi / 8 * row @ covariance @ row)
    p = expit(kappa * row @ mean)
    y = float(y < p) if isinstance(y, Uniform) else y
    direction = covariance @ row
    gain, weight = kappa * (y - p), kappa**2 * p * (1 - p)
    return mean + direction * gain, covariance - weight * np.outer(direction, direction), y


class Uniform(float):
    """A uniform number that is yet to become an outcome."""


def slow_ts_gen(task, rng, model):
    """One task: explicit loops, every state rebuilt from scratch, scikit-learn fits."""
    bank = model.bank.numpy()
    seen = [([], []) for _ in range(A)]
    played = []
    for t in range(T):
        picked = rng.integers(len(bank), size=T - t - 1)
        contexts = np.concatenate([task.contexts[0, : t + 1], bank[picked]])
        uniform = rng.random((T, A), np.float32)
        scores = []
        for a in range(A):
            mean, covariance = slow_filter(model, task.action_features[0, a].astype(float), *seen[a])
            column = np.zeros(T)
            for i in range(T):
                if i < t and played[i] == a:
                    column[i] = task.outcomes[0, i, a]
                else:
                    x = contexts[i].astype(float)
                    mean, covariance, column[i] = slow_step(mean, covariance, x, Uniform(uniform[i, a]))
            if column.min() == column.max():
                scores.append(column[0])
            else:
                fit = LogisticRegression(tol=1e-10, max_iter=10000).fit(contexts.astype(float), column)
                scores.append(fit.predict_proba(task.contexts[0, t][None].astype(float))[0, 1])
        action = int(np.argmax(scores))
        played.append(action)
        seen[action][0].append(task.contexts[0, t].astype(float))
        seen[action][1].append(float(task.outcomes[0, t, action]))
    return played


def test_the_fast_path_plays_as_the_slow_one():
    """Fed the same random numbers; a float tie may turn a drawn outcome, and the game after it."""
    found = rollout(make(), "ts-gen").actions
    tasks, model = Synthetic(n_actions=A, horizon=T).sample(0, range(6)), load_model("synthetic-filter")
    slow = np.array([slow_ts_gen(tasks[i], stream(0, "agent", i), model) for i in range(6)])
    same = (found == slow).all(axis=1)
    assert same.sum() >= 5


def test_the_paper_models_fast_path_plays_as_the_plain_algorithm():
    """The benchmark's yardstick, fed the same random numbers, in one task after the other."""
    found = rollout(make(), TSGen(model="synthetic-paper")).actions
    tasks, model = Synthetic(n_actions=A, horizon=T).sample(0, range(6)), load_model("synthetic-paper")
    plain = np.zeros_like(found)
    for i in range(6):
        agent, rng = PlainTSGen(model, tasks.action_features[i], T), stream(0, "agent", i)
        for t in range(T):
            plain[i, t] = agent.act(tasks.contexts[i, t], rng)
            agent.observe(tasks.contexts[i, t], plain[i, t], float(tasks.outcomes[i, t, plain[i, t]]))
    assert (found == plain).all(axis=1).sum() >= 5


class AnyModel:
    """A third party's model with the protocol's three methods alone, which here hide the built-in filter."""

    def __init__(self):
        self.inner = load_model("synthetic-filter")
        self.bank = self.inner.bank.numpy()

    def start(self, action_features):
        return self.inner.start(torch.tensor(action_features))

    def predict(self, state, context):
        return self.inner.predict(state, torch.tensor(context)).numpy()

    def append(self, state, context, outcome, where=None):
        return self.inner.append(state, *(torch.tensor(part) for part in (context, outcome, where)))


def test_any_model_takes_the_general_path_and_plays_the_same():
    fast, general = rollout(make(), "ts-gen").actions, rollout(make(), TSGen(model=AnyModel())).actions
    assert (fast == general).all(axis=1).sum() >= 5


def history(n_tasks=4, n_rows=9):
    """Tasks, and actions and outcomes of their first rows."""
    rng = np.random.default_rng(0)
    tasks = Synthetic(n_actions=A, horizon=T).sample(0, range(n_tasks))
    actions = rng.integers(A, size=(n_tasks, n_rows))
    outcomes = np.take_along_axis(tasks.outcomes[:, :n_rows], actions[..., None], axis=2)[..., 0]
    return tasks, actions, outcomes


def generators(n):
    return [np.random.default_rng(i) for i in range(n)]


def believe(model, tasks, actions, outcomes, rngs):
    """The model's belief after the rows, whose contexts to come are known."""
    info = TaskInfo(tasks.action_features, A, 5, T, known_contexts=tasks.contexts)
    belief = as_model(model).begin(info, rngs)
    every = np.arange(len(tasks))
    for t in range(actions.shape[1]):
        belief.decide(tasks.contexts[:, t], actions[:, t])
        belief.observe(Feedback(every, np.full(len(tasks), t), outcomes[:, t]))
    return belief


def complete(model, tasks, actions, outcomes, rows=None):
    """Completed tables (B, T', A) over the tasks' own contexts."""
    belief = believe(model, tasks, actions, outcomes, generators(len(tasks)))
    return belief.complete(tasks.contexts[:, actions.shape[1]], rows, contexts="given").outcomes[:, 0]


@pytest.mark.parametrize("make_model", [
    lambda: load_model("synthetic-filter"),
    lambda: load_model("synthetic-paper"),
    AnyModel,
    lambda: ExactModel(Synthetic().truth),
], ids=["filter", "paper", "any", "exact"])  # fmt: skip
def test_tables_hold_every_observed_outcome_unchanged(make_model):
    tasks, actions, outcomes = history()
    table = complete(make_model(), tasks, actions, outcomes)
    assert table.shape == (4, T, A)
    assert set(np.unique(table)) <= {0, 1}
    kept = np.take_along_axis(table[:, :9], actions[..., None], axis=2)[..., 0]
    assert np.array_equal(kept, outcomes)
    assert complete(make_model(), tasks, actions, outcomes, 5).shape == (4, 9 + 5, A)


def test_the_states_that_are_kept_are_those_of_a_fresh_start():
    """A belief that completes a table before each decision, against ones that never did before."""
    tasks, actions, outcomes = history()
    model = load_model("synthetic-filter")
    info = TaskInfo(tasks.action_features, A, 5, T, known_contexts=tasks.contexts)
    kept = model.begin(info, rngs := generators(4))
    for t in range(10):
        starts = [rng.bit_generator.state for rng in rngs]
        table = kept.complete(tasks.contexts[:, t], contexts="given").outcomes
        fresh_rngs = generators(4)
        for rng, start in zip(fresh_rngs, starts, strict=True):
            rng.bit_generator.state = start
        fresh = believe(model, tasks, actions[:, :t], outcomes[:, :t], fresh_rngs)
        assert np.array_equal(table, fresh.complete(tasks.contexts[:, t], contexts="given").outcomes)
        if t < 9:
            kept.decide(tasks.contexts[:, t], actions[:, t])
            kept.observe(Feedback(np.arange(4), np.full(4, t), outcomes[:, t]))


def test_imputed_outcomes_have_the_models_probabilities():
    """The first imputed row, over many draws, against the model's prediction given the history."""
    tasks, actions, outcomes = history(1, 9)
    belief = believe(load_model("synthetic-filter"), tasks, actions, outcomes, generators(1))
    new = tasks.contexts[:, 20]
    table = belief.complete(new, 1, 4000).outcomes[0, :, 9]
    expected = belief.expected(new)[0]
    assert (np.abs(table.mean(axis=0) - expected) < 4 * np.sqrt(expected * (1 - expected) / 4000)).all()


def test_probability_matching_with_the_exact_model():
    """Proposition 1: TS-Gen with p* plays a as often as the oracle would, given the history.

    The reference draws coefficients from the prior and weighs them by the likelihood: another sampler.
    """
    rng = np.random.default_rng(3)
    horizon, n = 8, 12_000
    z = np.array([[0.3, -0.2], [-0.1, 0.4]], np.float32)
    contexts = rng.normal(size=(3, 2)).astype(np.float32)
    actions, outcomes = np.array([0, 1]), np.array([0.0, 1.0], np.float32)
    agent = TSGen(model="exact")
    truth = Synthetic(context_dim=2).truth
    info = TaskInfo(np.repeat(z[None], n, 0), 2, 2, horizon, truth=truth)
    agent.reset(info, [np.random.default_rng([1, i]) for i in range(n)])
    for t in range(2):
        agent.act(np.repeat(contexts[t][None], n, 0))
        agent.observe(np.repeat(contexts[t][None], n, 0), np.full(n, actions[t]), np.full(n, outcomes[t]))
    found = (agent.act(np.repeat(contexts[2][None], n, 0)) == 1).mean()

    mean, variance = paper_prior(z, 2)
    beta = mean + np.sqrt(variance) * rng.normal(size=(n, 2, 3))  # (n, A, K)
    x = np.concatenate([np.repeat(contexts[None], n, 0), rng.normal(size=(n, horizon - 3, 2))], axis=1)
    rows = np.concatenate([np.ones((n, horizon, 1)), x], axis=2)
    chances = expit(rows @ beta.swapaxes(1, 2))  # (n, T, A)
    table = (rng.random(chances.shape) < chances).astype(float)
    weights = np.ones(n)
    for t in range(2):
        p = chances[:, t, actions[t]]
        weights *= p if outcomes[t] else 1 - p
        table[:, t, actions[t]] = outcomes[t]
    oracle = gents_gym.make_policy("logistic").fit(x, table).scores(x[:, 2]).argmax(axis=1)
    share = weights / weights.sum()
    expected = (share * (oracle == 1)).sum()
    error = np.sqrt((share**2 * ((oracle == 1) - expected) ** 2).sum() + expected * (1 - expected) / n)
    assert 0.05 < expected < 0.95
    assert abs(found - expected) < 4 * error


def test_several_tables_are_averaged_and_one_is_a_draw():
    agent = TSGen(samples=5)
    tasks = Synthetic(n_actions=A, horizon=T).sample(0, range(2))
    info = TaskInfo(tasks.action_features, A, 5, T)
    agent.reset(info, [np.random.default_rng(i) for i in range(2)])
    scores = agent.sample_scores(tasks.contexts[:, 0])
    assert scores.shape == (2, 5, A)
    assert scores.std(axis=1).min() > 0
    agent.reset(info, [np.random.default_rng(i) for i in range(2)])
    assert np.array_equal(agent.act(tasks.contexts[:, 0]), scores.mean(axis=1).argmax(axis=1))
    bound = GenUCB(samples=5, m=None, quantile=0.9)
    bound.reset(info, [np.random.default_rng(i) for i in range(2)])
    assert np.array_equal(bound.act(tasks.contexts[:, 0]), np.quantile(scores, 0.9, axis=1).argmax(axis=1))


@pytest.mark.parametrize("env", ["Synthetic", "News"])  # policies on contexts, and on the model's features of them
def test_fitted_policies_score_any_context(env):
    envs = gym.make_vec(f"gents_gym/{env}-v0", num_envs=2, horizon=8, autoreset_mode="Disabled")
    observation, _ = envs.reset(seed=0)
    info = TaskInfo(observation["action_features"], 10, 5, 8)
    agent, context = TSGen(samples=3, m=6), observation["context"]
    agent.reset(info, [stream(0, "agent", i) for i in range(2)])
    with pytest.raises(InputError, match="scores_at must follow act"):
        agent.scores_at(context[:, None])
    scores = agent.sample_scores(context)  # (B, M, A)
    found = agent.scores_at(np.stack([context, context[::-1]], axis=1))  # (B, M, 2, A)
    assert found.shape == (2, 3, 2, 10)
    np.testing.assert_allclose(found[:, :, 0], scores, rtol=1e-5)
    assert np.abs(found[:, :, 1] - scores).max() > 0.01


def test_a_truncated_horizon_fits_the_observed_rows_and_m_imputed_ones():
    asked = []

    class Spy:
        def fit(self, contexts, outcomes, warm_start=None, weights=None):
            asked.append((contexts, outcomes, weights))
            return gents_gym.make_policy("logistic").fit(contexts, outcomes, warm_start, weights)

    record = rollout(make(2), TSGen(m=4, policy=Spy()), max_steps=6)
    contexts, outcomes, weights = asked[-1]
    assert contexts.shape == (2, 5 + 4, 5)
    tasks = Synthetic(n_actions=A, horizon=T).sample(0, range(2))
    assert np.array_equal(contexts[:, :6], tasks.contexts[:, :6])  # the current context is the first imputed row's
    assert (weights[:, 5:] == 1).all()
    assert (weights[:, :5].sum(axis=2) == 1).all()
    assert np.array_equal(weights[:, :5].argmax(axis=2), record.actions[:, :5])
    assert np.array_equal((outcomes * weights)[:, :5].sum(axis=2), record.rewards[:, :5])


@pytest.mark.parametrize("cut", [False, True])
def test_the_imputed_rows_end_at_the_horizon_if_they_are_cut(cut):
    lengths = []

    class Spy:
        def fit(self, contexts, outcomes, warm_start=None, weights=None):
            lengths.append(contexts.shape[1])
            return gents_gym.make_policy("logistic").fit(contexts, outcomes, warm_start, weights)

    rollout(make(2), TSGen(m=4, policy=Spy(), cut=cut))
    assert lengths == [min(t + 4, T) if cut else t + 4 for t in range(T)]


def test_an_unknown_horizon_needs_m_and_then_plays_on():
    info = TaskInfo(np.zeros((1, A, 2), np.float32), A, 5)
    rngs = [np.random.default_rng(0)]
    with pytest.raises(InputError, match="m must be given if the horizon is not known"):
        TSGen().reset(info, rngs)
    with pytest.raises(InputError, match="cut must be False if the horizon is not known, got True"):
        TSGen(m=3, cut=True).reset(info, rngs)
    agent = TSGen(m=3)
    agent.reset(info, rngs)
    for _ in range(7):
        action = agent.act(np.ones((1, 5)))
        agent.observe(np.ones((1, 5)), action, np.ones(1))


def test_a_warm_start_changes_no_action():
    assert np.array_equal(rollout(make(), TSGen(warm_start=False)).actions, rollout(make(), "ts-gen").actions)


def test_models_rank_as_they_should():
    """On 60 tasks of 100 decisions: TS-Gen beats LinUCB with an intercept by more than its error."""
    envs = make(60, horizon=100, n_actions=10)
    difference = [rollout(envs, name).regret["expected"].sum(axis=1) for name in ("linucb(intercept=True)", "ts-gen")]
    paired = difference[0] - difference[1]
    assert paired.mean() > 4 * paired.std() / np.sqrt(60)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 0}, "samples must be at least 1, got 0"),
        ({"m": 0}, "m must be at least 1, got 0"),
        ({"warm_start": 1}, "warm_start must be True or False, got 1"),
        ({"m": 3, "cut": 1}, "cut must be True or False, got 1"),
        ({"cut": True}, "cut must be given with m, .*, got m=None"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(InputError, match=message):
        TSGen(**options)


def test_bad_models_policies_and_turns():
    rngs = [np.random.default_rng(0)]
    with pytest.raises(InputError, match="unknown model or folder 'synthetic-filtr'"):
        rollout(make(), make_agent("ts-gen(model=synthetic-filtr)"))
    with pytest.raises(InputError, match="unknown policy class 'logistik'"):
        rollout(make(), make_agent("ts-gen(policy=logistik)"))
    with pytest.raises(InputError, match=r"contexts of 3 entries and .*; synthetic-filter has 2 and 5"):
        rollout(make(context_dim=3), "ts-gen")
    with pytest.raises(InputError, match="contexts must have 5 entries for this model, got 4"):
        rollout(make(context_dim=4), TSGen(load_model("synthetic-filter")))
    with pytest.raises(InputError, match=r"action_features must have shape \(N, 2\) for this model, got \(3, 1\)"):
        TSGen(load_model("synthetic-filter")).reset(TaskInfo(np.zeros((1, A, 1), np.float32), A, 5, 4), rngs)
    with pytest.raises(InputError, match=r"quantile must be at most 1, got 1\.5"):
        make_agent("gen-ucb(quantile=1.5)")

    class Plain:
        def fit(self, contexts, outcomes, warm_start=None):
            raise AssertionError

    with pytest.raises(InputError, match=r"policy must accept weights in fit to use m imputed rows"):
        TSGen(policy=Plain(), m=3).reset(TaskInfo(np.zeros((1, A, 2), np.float32), A, 5, 4), rngs)
    agent = TSGen()
    agent.reset(TaskInfo(np.zeros((1, A, 2), np.float32), A, 5, 2), rngs)
    with pytest.raises(InputError, match="observe must follow act"):
        agent.observe(np.zeros((1, 5)), np.zeros(1, int), np.zeros(1))
    agent.act(np.zeros((1, 5)))
    with pytest.raises(InputError, match=r"outcome must be 0 or 1, got 0\.5"):
        agent.observe(np.zeros((1, 5)), np.zeros(1, int), np.full(1, 0.5))
    agent.observe(np.zeros((1, 5)), np.zeros(1, int), np.zeros(1))
    with pytest.raises(InputError, match="observe must follow act"):
        agent.observe(np.zeros((1, 5)), np.zeros(1, int), np.zeros(1))
    agent.act(np.zeros((1, 5)))
    agent.observe(np.zeros((1, 5)), np.zeros(1, int), np.zeros(1))
    with pytest.raises(InputError, match="act must be called at most 2 times, the horizon, got one more"):
        agent.act(np.zeros((1, 5)))


def test_a_filter_with_a_head_takes_the_general_path():
    """Its tables are those of the same model behind the protocol's three methods."""
    model = FilterModel(type(load_model("synthetic-filter").config)(2, 5, head_width=4))
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) / 2
    model.bank = torch.zeros(3, 5)
    hidden = AnyModel()
    hidden.inner = model
    seen = history()
    tables = [complete(each, *seen) for each in (model, hidden)]
    assert np.mean(tables[0] != tables[1]) < 0.01
    model.head = None
    assert np.mean(tables[0] != complete(model, *seen)) > 0.02


def test_a_model_that_overrides_a_built_in_one_is_asked_itself():
    class Stubborn(FilterModel):
        def append(self, state, context, outcome, where=None):
            return state

    model = Stubborn(load_model("synthetic-filter").config)
    model.load_state_dict(
        load_model("synthetic-filter").state_dict() | {"bank": model.bank, "action_bank": model.action_bank}
    )
    belief = model.begin(TaskInfo(np.zeros((1, 2, 2)), 2, 5), generators(1))
    before = belief.expected(np.ones((1, 5)))
    belief.decide(np.ones((1, 5)), np.zeros(1, int))
    belief.observe(Feedback(np.zeros(1, int), np.zeros(1, int), np.zeros(1)))
    assert np.array_equal(belief.expected(np.ones((1, 5))), before)


@pytest.mark.parametrize("model", ["synthetic-filter", "synthetic-paper"])
def test_first_states_are_the_same_bits_in_any_batch(model):
    tasks = Synthetic().sample(0, range(100))
    info, model = TaskInfo(tasks.action_features, 10, 5), load_model(model)
    together = model.begin(info, generators(100)).state()
    for i in (0, 37, 99):
        alone = model.begin(info[i], generators(1)).state()
        assert together.keys() == alone.keys()
        for name in (name for name in alone if name.startswith("state.")):
            assert np.array_equal(together[name][10 * i : 10 * i + 10], alone[name])


def test_another_history_of_the_same_tasks_begins_anew():
    """An agent that is reset forgets: its second game is the first one of a new agent."""
    tasks, actions, outcomes = history()
    info, agent = TaskInfo(tasks.action_features, A, 5, T), TSGen()

    def play(agent, outcomes):
        agent.reset(info, generators(4))
        for t in range(9):
            agent.act(tasks.contexts[:, t])
            agent.observe(tasks.contexts[:, t], actions[:, t], outcomes[:, t])
        return agent.sample_scores(tasks.contexts[:, 9])

    first, second = play(agent, outcomes), play(agent, 1 - outcomes)
    assert np.array_equal(second, play(TSGen(), 1 - outcomes))
    assert not np.array_equal(first, second)


def test_the_warm_start_is_the_last_policy_or_nothing():
    given = []

    class Spy:
        def fit(self, contexts, outcomes, warm_start=None):
            given.append(warm_start)
            return gents_gym.make_policy("logistic").fit(contexts, outcomes)

    rollout(make(2), TSGen(policy=Spy(), warm_start=False), max_steps=3)
    assert given == [None] * 3
    given.clear()
    rollout(make(2), TSGen(policy=Spy()), max_steps=3)
    assert given[0] is None
    assert all(policy is not None for policy in given[1:])


def test_a_policy_class_with_another_reward_is_refused():
    envs = make(2)
    with pytest.raises(InputError, match="policy must have the task's reward_fn"):
        rollout(envs, TSGen(policy=Logistic(reward_fn=np.square)))
    with pytest.raises(InputError, match="oracle must have the task's reward_fn"):
        rollout(envs, "random", oracle=Logistic(reward_fn=np.square))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": 3}, "policy must be a policy class with fit, or its id, got 3"),
        ({"policy": Logistic}, "policy must be a policy class with fit, or its id, got <class"),
        (
            {"model": 3},
            "model must be a model's id, preset or folder, or have start, predict and append.*, got 3",
        ),
    ],
)
def test_what_is_no_policy_class_or_model(options, message):
    with pytest.raises(InputError, match=message):
        TSGen(**options)


def test_bad_banks():
    model = AnyModel()
    model.bank = np.zeros((9, 1), np.float32)
    with pytest.raises(InputError, match=r"the model's bank must have shape \(n, D\), got \(9, 1\)"):
        rollout(make(), TSGen(model=model))
    model.bank = np.zeros((0, 5), np.float32)
    with pytest.raises(InputError, match="contexts must be 'seen' or 'given' for a model without a bank, got 'bank'"):
        rollout(make(), TSGen(model=model, contexts="bank"))
    assert rollout(make(), TSGen(model=model), max_steps=2).actions.shape == (6, 2)


def test_bad_generators_features_and_scores():
    info, rngs = TaskInfo(np.zeros((3, A, 2), np.float32), A, 5, 4), [np.random.default_rng(i) for i in range(3)]
    for name in ("ts-gen", "gen-ucb", "epsilon-greedy", "softmax", "lints", "random", "neural-linear-ts"):
        with pytest.raises(InputError, match="rngs must be one generator per task, B=3, got 1"):
            make_agent(name).reset(info, rngs[:1])
    bad = TaskInfo(np.full((3, A, 2), np.nan, np.float32), A, 5, 4)
    for name in ("ts-gen", "greedy"):
        with pytest.raises(InputError, match="action_features must be finite"):
            make_agent(name).reset(bad, rngs)

    class Odd:
        def fit(self, contexts, outcomes, warm_start=None):
            return self

        def scores(self, context):
            return np.zeros((A, len(context)))

    agent = TSGen(policy=Odd())
    agent.reset(TaskInfo(np.zeros((2, A, 2), np.float32), A, 5, 4), rngs[:2])
    with pytest.raises(InputError, match="the policy's scores must have shape"):
        agent.act(np.zeros((2, 5)))


@pytest.mark.parametrize("options", [{}, {"m": 6}, {"samples": 3, "m": 6}, {"policy": "features(base=least-squares)"}])
def test_policies_on_features_are_policies_on_contexts_that_were_mapped_by_hand(options):
    """A model with φ̂ in the tasks' contexts, and its twin without in contexts φ̂(X), choose the same actions."""
    torch.manual_seed(0)
    n_tasks, horizon, n_actions = 3, 20, 4
    model = FilterModel(FilterConfig(action_dim=2, context_dim=3, context_features=5))
    twin = FilterModel(FilterConfig(action_dim=2, context_dim=5))
    rng = np.random.default_rng(0)
    bank, contexts = (rng.normal(size=shape).astype(np.float32) for shape in ((50, 3), (n_tasks, horizon, 3)))
    model.bank, twin.bank = torch.from_numpy(bank), torch.from_numpy(model.context_features(bank).copy())
    features, outcomes = rng.normal(size=(n_tasks, n_actions, 2)), rng.integers(2, size=(n_tasks, horizon, n_actions))
    policy = options.get("policy", "features(base=logistic)")
    plain = policy.removeprefix("features(base=").removesuffix(")")
    found = []
    for given, name, x in ((model, policy, contexts), (twin, plain, model.context_features(contexts))):
        agent = TSGen(model=given, **{**options, "policy": name})
        agent.reset(
            TaskInfo(features, n_actions, x.shape[2], horizon), [np.random.default_rng(i) for i in range(n_tasks)]
        )
        played = []
        for t in range(horizon):
            played.append(agent.act(x[:, t]))
            agent.observe(x[:, t], played[-1], outcomes[np.arange(n_tasks), t, played[-1]])
        found.append(np.stack(played, axis=1))
    assert np.array_equal(*found)
    assert len(np.unique(found[0])) > 1
