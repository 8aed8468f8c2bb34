import numpy as np

from gents_gym.agents.ahead import Ahead, draw_actions, one_hot, vote_share


def test_what_was_looked_at_is_taken_once():
    calls = []

    def find(context):
        calls.append(context.copy())
        return len(calls)

    ahead, context = Ahead(find), np.zeros((2, 3))
    assert [ahead.look(context), ahead.look(context), ahead.take(context)] == [1, 1, 1]
    assert [ahead.take(context), ahead.take(context)] == [2, 3]  # equal contexts of later decisions
    assert ahead.look(context) == 4
    context += 1  # the caller's own array
    assert ahead.take(context) == 5


def test_votes_and_one_hot():
    votes = [one_hot(np.array(action), 3) for action in ([0, 2], [0, 1], [1, 1], [0, 1])]
    assert vote_share(votes).tolist() == [[0.75, 0.25, 0], [0, 0.75, 0.25]]


def test_actions_are_drawn_with_their_probabilities():
    chances = np.array([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    drawn = draw_actions(np.tile(chances, (10_000, 1)), (np.arange(10_000) + 0.5) / 10_000)
    assert (np.bincount(drawn, minlength=6) / 10_000).tolist() == chances.tolist()
    ends = draw_actions(np.tile(chances / 3, (2, 1)), np.array([0.0, np.nextafter(1, 0)]))
    assert ends.tolist() == [1, 4]
