import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from gents_gym import BanditVectorEnv, InputError, make_agent, rollout
from gents_gym.envs.turnover import Turnover, make_turnover
from gents_gym.models.belief import ActionBelief
from gents_gym.tasks.synthetic import Synthetic

ID = "gents_gym/Synthetic-v0"
POOL = {"live": 3, "rate": 0.2}


def draw(live, rate, n=40, horizon=200, n_actions=8):
    return Turnover(live, rate).draw([np.random.default_rng(i) for i in range(n)], horizon, n_actions)


def test_as_many_are_live_and_leave_at_the_rate():
    available = draw(3, 0.1, n=200)
    assert (available.sum(axis=2) == 3).all()
    left = (available[:, :-1] & ~available[:, 1:]).sum() / available[:, :-1].sum()
    assert abs(left - 0.1) < 0.01  # one that leaves and comes back at once is rare
    assert np.allclose(available.mean(axis=(0, 1)), 3 / 8, atol=0.04)  # all actions alike
    assert np.allclose(available[:, -1].mean(axis=0), 3 / 8, atol=0.12)


def test_tasks_are_drawn_each_by_its_own_generator():
    rngs = [np.random.default_rng(i) for i in (2, 5)]
    assert np.array_equal(Turnover(3, 0.1).draw(rngs, 200, 8), draw(3, 0.1)[[2, 5]])


def test_nothing_moves_without_a_rate_or_a_spare_action():
    for available in (draw(3, 0.0), draw(8, 0.5)):
        assert (available == available[:, :1]).all()
    assert draw(8, 0.5).all()


def test_a_step_shows_the_mask_of_the_next_decision():
    envs = gym.make_vec(ID, num_envs=4, horizon=6, turnover=POOL, autoreset_mode="Disabled")
    observation, info = envs.reset(seed=0)
    for t in range(6):
        mask = envs.tasks.available[:, t]
        for shown in (observation["available"], info["action_mask"], envs.action_masks(), envs.call("action_masks")):
            assert np.array_equal(shown, mask)
        assert info["_action_mask"].all()
        assert observation["available"].dtype == np.int8
        envs.action_space.seed(t)
        observation, *_, info = envs.step(envs.action_space.sample(mask=tuple(info["action_mask"])))
    assert np.array_equal(observation["available"], mask)  # of the last decision


def test_single_and_vector_show_the_same():
    envs, env = gym.make_vec(ID, num_envs=2, horizon=4, turnover=POOL), gym.make(ID, horizon=4, turnover=POOL)
    many, _ = envs.reset(seed=1)
    one, info = env.reset(seed=1, options={"task": 1})
    assert np.array_equal(one["available"], many["available"][1])
    assert np.array_equal(info["action_mask"], one["available"])
    assert np.array_equal(env.unwrapped.action_masks(), one["available"])
    action = int(env.action_space.sample(mask=info["action_mask"]))
    assert info["action_mask"][action] == 1
    env.step(action)


def test_without_turnover_nothing_is_added():
    env = gym.make(ID)
    observation, info = env.reset(seed=0)
    assert observation.keys() == {"context", "action_features"}
    assert info.keys() == {"task"}
    assert env.unwrapped.action_masks().all()


def test_an_action_that_is_not_available_is_refused_and_nothing_is_played():
    env = gym.make(ID, turnover=POOL)
    observation, _ = env.reset(seed=0)
    there = np.flatnonzero(observation["available"])
    missing = int(np.flatnonzero(observation["available"] == 0)[0])
    with pytest.raises(
        InputError, match=f"action must be available .{', '.join(map(str, there))}., got {missing} in task 0"
    ):
        env.step(missing)
    assert np.array_equal(env.step(int(there[0]))[0]["available"], env.unwrapped.tasks.available[0, 1])


def test_a_slot_that_only_resets_may_be_given_any_action():
    envs = gym.make_vec(ID, num_envs=1, horizon=1, turnover={"live": 1})
    observation, _ = envs.reset(seed=0)
    assert envs.step(observation["available"].argmax(axis=1))[2].all()
    observation, *_ = envs.step((observation["available"].argmax(axis=1) + 1) % 10)
    with pytest.raises(InputError, match="action must be available"):
        envs.step((observation["available"].argmax(axis=1) + 1) % 10)


def test_a_distribution_may_say_itself_what_is_available():
    class Newsroom(Synthetic):
        def sample(self, seed, indices, split="test"):
            tasks = super().sample(seed, indices, split)
            available = np.ones(tasks.outcomes.shape, bool)
            available[:, ::2, 0] = False
            return tasks.with_available(available)

    newsroom = Newsroom(n_actions=3, horizon=4)
    envs = BanditVectorEnv(newsroom, 2)
    assert envs.reset(seed=0)[0]["available"].tolist() == [[0, 1, 1]] * 2
    plain = Synthetic(n_actions=3, horizon=4).sample(0, [0, 1])
    assert envs.reset(options={"task": plain})[0]["available"].all()
    with pytest.raises(ResetNeeded, match="reset must be called before action_masks"):
        BanditVectorEnv(newsroom, 2).action_masks()
    with pytest.raises(InputError, match="turnover must be None for tasks that say what is available, got"):
        BanditVectorEnv(newsroom, 2, turnover=POOL)
    with pytest.raises(
        InputError, match=r"options\['task'\].available must be None in an environment without turnover"
    ):
        BanditVectorEnv(Synthetic(n_actions=3, horizon=4), 2).reset(options={"task": newsroom.sample(0, [0, 1])})


@pytest.mark.parametrize(
    ("turnover", "message"),
    [
        (20, r"turnover must be a dict such as \{'live': 20, 'rate': 0.01\}, got 20"),
        ({"rate": 0.1}, "turnover must be a dict such as"),
        ({"live": 0}, "turnover's 'live' must be at least 1, got 0"),
        ({"live": 2.5}, "turnover's 'live' must be a whole number, got 2.5"),
        ({"live": 2, "rate": 1.5}, "turnover's 'rate' must be a probability, at most 1, got 1.5"),
        ({"live": 2, "rate": -1}, "turnover's 'rate' must be at least 0, got -1"),
        ({"live": 2, "speed": 1}, "unknown option of turnover: unexpected keyword argument 'speed'"),
        ({"live": 11}, "turnover's 'live' must be at most n_actions=10, got 11"),
    ],
)
def test_bad_turnover(turnover, message):
    with pytest.raises(InputError, match=message):
        gym.make(ID, turnover=turnover)
    assert make_turnover(None) is None


def test_a_pool_of_a_thousand_headlines_is_completed_only_where_it_is_live(monkeypatch):
    widths = []

    def complete(self, *given, plain=ActionBelief.complete, **options):
        found = plain(self, *given, **options)
        widths.append(found.outcomes.shape[3])
        return found

    monkeypatch.setattr(ActionBelief, "complete", complete)
    envs = gym.make_vec("gents_gym/News-v0", num_envs=2, n_actions=1000, horizon=5, turnover={"live": 20, "rate": 0.1})
    record = rollout(envs, make_agent("ts-gen"), seed=0)
    assert widths == [20] * 5
    assert np.take_along_axis(envs.unwrapped.tasks.available, record.actions[..., None], 2).all()
    assert np.isfinite(record.regret["expected"]).all()
