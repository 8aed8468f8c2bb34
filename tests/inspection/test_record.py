import numpy as np
import pytest
from scipy import stats

from gents_gym import load_model, make_agent, rollout
from gents_gym.checks import InputError
from gents_gym.construct import make_policy
from gents_gym.inspection.record import PLACES, inspect_task, make_places
from gents_gym.types import Feedback

SMALL = "gents_gym/Synthetic-v0(horizon=12, n_actions=4)"
STEPS = 7
HIGHEST = ["ts-gen", "ts-gen(m=4, samples=2)", "gen-ucb(samples=3, m=6)", "gen-kg", "bayes-ucb", "greedy(ties=random)"]


@pytest.fixture(scope="module")
def found():
    return inspect_task(SMALL, "ts-gen", task=1, seed=2, steps=STEPS, dims=(2, 4), draws=3)


@pytest.mark.parametrize("agent", [*HIGHEST, "softmax(temperature=0.5)", "ids(samples=3, m=6)"])
def test_what_is_recorded_changes_nothing_and_says_what_decided(agent):
    found = inspect_task(SMALL, agent, task=3, seed=1, steps=STEPS, draws=2)
    played = rollout(SMALL, agent, seed=1, indices=[3], max_steps=STEPS)
    np.testing.assert_array_equal(found.actions, played.actions[0])
    np.testing.assert_array_equal(found.rewards, played.rewards[0])
    scores = np.stack([step.reason.scores for step in found.steps])
    if agent in HIGHEST:
        np.testing.assert_array_equal(scores.argmax(axis=1), found.actions)
        assert all("highest" in step.text for step in found.steps)
    else:
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        chance = scores[-1, found.actions[-1]]
        assert f"Plays action {found.actions[-1]}: it is played with probability {chance:.3f}." in found.steps[-1].text


def test_the_scores_are_those_of_the_agent_that_played(found):
    """A third agent, which plays by hand, says the same at every decision."""
    agent = make_agent("ts-gen")
    agent.reset(found.info, [np.random.default_rng(np.random.SeedSequence(2, spawn_key=(2, 2, 1)))])
    for t, step in enumerate(found.steps):
        context = found.tasks.contexts[:, t]
        np.testing.assert_array_equal(agent.sample_scores(context)[0, 0], step.reason.scores)
        agent.observe(context, found.actions[[t]], found.outcomes[[t]])


def test_predictions_are_those_of_a_belief_that_observed_the_same(found):
    belief = load_model("synthetic-filter").begin(found.info, [np.random.default_rng(0)])
    for t, step in enumerate(found.steps):
        context = found.tasks.contexts[:, t]
        mean, variance = belief.expected(context)[0], belief.variance(context)[0]
        np.testing.assert_allclose(step.expected, mean, rtol=1e-6)
        count = mean * (1 - mean) / variance - 1  # the Beta distribution of these moments
        ends = stats.beta.ppf([[0.05], [0.95]], mean * count, (1 - mean) * count)
        np.testing.assert_allclose(step.interval, ends, atol=1e-6)
        belief.decide(context, found.actions[[t]])
        belief.observe(Feedback(np.zeros(1, int), np.array([t]), found.outcomes[[t]]))


def test_drawn_tables_keep_what_was_seen(found):
    for t, step in enumerate(found.steps):
        rows = np.arange(step.first, t)
        for table in (*step.draws, step.own):
            np.testing.assert_array_equal(table[rows - step.first, found.actions[rows]], found.outcomes[rows])
    last = found.steps[-1]
    assert last.draws.shape == (3, 12, 4)
    assert last.contexts.shape == (12, 5)
    assert (last.draws.std(axis=0) > 0).any()
    np.testing.assert_array_equal(last.own, last.reason.tables.outcomes[0, 0])


def test_only_counted_cells_of_a_truncated_table_are_shown():
    found = inspect_task(SMALL, "ts-gen(m=2)", steps=4)
    own = found.steps[3].own
    assert np.isfinite(own[:3]).sum() == 3
    assert np.isfinite(own[3:5]).all()
    assert np.isnan(own[5:]).all()


def test_maps_are_those_of_the_policy_and_of_the_belief(found):
    step, context = found.steps[0], found.tasks.contexts[:, 0].copy()
    places = make_places(found, context)[0]
    assert places.shape == (PLACES**2, 5)
    np.testing.assert_array_equal(places[:, [0, 1, 3]], np.repeat(context[:, [0, 1, 3]], PLACES**2, axis=0))
    tables = step.reason.tables
    fitted = make_policy("logistic").fit(tables.contexts[:, 0], tables.outcomes[:, 0])
    by_hand = [fitted.scores(place[None])[0].argmax() for place in places]
    np.testing.assert_array_equal(step.reason.policy, by_hand)
    belief = load_model("synthetic-filter").begin(found.info, [np.random.default_rng(0)])
    some = [0, 24, 312, 600, 624]
    np.testing.assert_array_equal(step.best[some], [belief.expected(places[[i]])[0].argmax() for i in some])
    np.testing.assert_array_equal(places[24, [2, 4]], [found.axes[0, -1], found.axes[1, 0]])  # bottom right


def test_the_value_of_information_is_what_is_above_the_prediction():
    found = inspect_task(SMALL, "gen-kg", steps=2)
    for step in found.steps:
        np.testing.assert_allclose(step.reason.predictions, step.expected)
        assert (step.reason.scores >= step.expected).all()
        assert (step.reason.scores > step.expected).any()


class Mute:
    """An agent that has nothing but the three verbs."""

    def reset(self, info, rngs):
        pass

    def act(self, context):
        return np.zeros(len(context), int)

    def observe(self, context, action, outcome):
        pass


def test_agents_without_a_model_are_shown_beside_a_named_one():
    found = inspect_task("gents_gym/Bernoulli-v0(horizon=5)", "random", model="untrained")
    assert (len(found.steps), found.dims, found.steps[0].best) == (5, None, None)
    assert found.steps[0].expected == pytest.approx(0.5)
    said = inspect_task(SMALL, f"{__name__}:Mute", model="filter", steps=2)
    assert "the agent does not say why" in said.steps[0].text
    assert said.steps[0].reason.scores is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agent": "ts-jen"}, "unknown agent 'ts-jen'; did you mean 'ts-gen'"),
        ({"agent": "linucb"}, "agent must name its model, got 'linucb', which does not: name one by --model"),
        ({"env": "gents_gym/Sinthetic-v0"}, "env 'gents_gym/Sinthetic-v0' cannot be made"),
        ({"env": "CartPole-v1"}, "must observe 'context' and 'action_features'"),
        ({"env": "gents_gym/Synthetic-v0(delay=3)"}, "env must show outcomes at once .* with late outcomes"),
        ({"env": "gents_gym/Synthetic-v0(turnover={'live': 5})"}, "with actions that come and go"),
        ({"task": -1}, "task must be at least 0, got -1"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"steps": 13}, "steps must be at most the horizon, 12, got 13"),
        ({"dims": (0, 5)}, "dims must be below the context size, 5, got 5"),
        ({"dims": (-1, 2)}, "dims must be at least 0, got -1"),
        ({"dims": (2, 2)}, "dims must be two different entries of the context, got 2 2"),
        ({"draws": 0}, "draws must be at least 1, got 0"),
        ({"model": "filtre"}, "unknown model"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(options, message):
    played = []
    with pytest.raises(InputError, match=message):
        inspect_task(**{"env": SMALL, "agent": "greedy", **options}, on_step=lambda: played.append(1))
    assert not played
