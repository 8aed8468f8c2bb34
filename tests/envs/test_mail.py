import numpy as np
import pytest

from gents_gym.envs.delay import NEVER, make_delay
from gents_gym.envs.mail import Mail

B, T = 3, 90  # more decisions than a mail without a horizon has room for at first
RANDOM = {"geometric": 0.2, "lost": 0.3}


def generators(first=0):
    return [np.random.default_rng(first + i) for i in range(B)]


def play(mail, steps, last=True, playing=None):
    """The feedback of each step, as lists of (slot, decision, action, outcome), and the rewards."""
    playing = np.ones(B, bool) if playing is None else playing
    found, rewards = [], []
    for t in range(steps):
        action = np.arange(B) + t
        ended = np.full(B, last and t == steps - 1)
        paid, shown = mail.exchange(action, action / 7, action / 3, playing, ended)
        task, place = np.nonzero(shown["decision"] >= 0)
        found.append(
            [(int(b), *(shown[name][b, k].item() for name in shown)) for b, k in zip(task, place, strict=True)]
        )
        rewards.append(paid)
        pads = shown["decision"] < 0
        assert (shown["action"][pads] == -1).all()
        assert (shown["outcome"][pads] == 0).all()
    return found, np.array(rewards)


def slow(delay, steps, batch=1):
    """The same, one decision after the other."""
    rule = make_delay(delay, batch)
    found, rewards = [[] for _ in range(steps)], np.zeros((steps, B))
    for b, rng in enumerate(generators()):
        uniform = rng.random((steps, 2)) if rule.is_random else None
        due = rule.shown(uniform, 0, steps)
        for s in range(steps):
            for t in range(steps):
                if due[t] == s or (s == steps - 1 and s < due[t] < NEVER):
                    found[s].append((b, t, b + t, (b + t) / 7))
                    rewards[s, b] += (b + t) / 3
    return found, rewards


@pytest.mark.parametrize(("delay", "batch"), [(0, 4), (5, 1), (100, 1), (RANDOM, 1), (RANDOM, 4)])
@pytest.mark.parametrize("horizon", [T, None])
def test_it_is_the_slow_version(delay, batch, horizon):
    mail = Mail(make_delay(delay, batch), B, horizon)
    mail.begin(np.arange(B), generators())
    found, rewards = play(mail, T)
    expected, paid = slow(delay, T, batch)
    assert [sorted(step) for step in found] == [sorted(step) for step in expected]
    assert np.allclose(rewards, paid, rtol=1e-12)


def test_an_episode_may_end_at_any_time_without_a_horizon():
    mail = Mail(make_delay(10), B)
    mail.begin(np.arange(B), generators())
    found, _ = play(mail, 4)
    assert [[t for b, t, *_ in step if b == 0] for step in found] == [[], [], [], [0, 1, 2, 3]]


def test_slots_begin_again_by_themselves():
    mail, other = Mail(make_delay(RANDOM), B, T), Mail(make_delay(RANDOM), B, T)
    mail.begin(np.arange(B), generators())
    play(mail, 20, last=False)
    mail.begin(np.array([1]), generators(50)[:1])
    other.begin(np.arange(B), generators(49))
    one, two = play(mail, 30)[0], play(other, 30)[0]
    mine, theirs = ([[entry[1] for entry in step if entry[0] == 1] for step in part] for part in (one, two))
    assert mine == theirs


def test_slots_that_do_not_play_are_shown_nothing_and_stay():
    mail = Mail(make_delay(1), B, T)
    mail.begin(np.arange(B))
    playing = np.array([True, False, True])
    found, rewards = play(mail, 3, last=False, playing=playing)
    assert {entry[0] for step in found for entry in step} == {0, 2}
    assert not rewards[:, 1].any()
    assert [entry[1] for entry in play(mail, 2, last=False)[0][1] if entry[0] == 1] == [0]
