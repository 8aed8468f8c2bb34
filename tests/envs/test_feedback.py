import numpy as np

from gents_gym.envs.feedback import blank, observed_outcomes, read_feedback, show, without_pads

LATE = {
    "decision": np.array([[0, 2], [1, -1], [-1, -1]]),
    "action": np.array([[4, 5], [6, -1], [-1, -1]]),
    "outcome": np.array([[0.5, 1.0], [2.0, 0.0], [0.0, 0.0]]),
}
ALL = np.ones(3, bool)


def told(feedback):
    return list(zip(feedback.task.tolist(), feedback.decision.tolist(), feedback.outcome.tolist(), strict=True))


def test_late_outcomes_are_read_without_pads():
    assert told(read_feedback(show(LATE, ALL), ALL)) == [(0, 0, 0.5), (0, 2, 1.0), (1, 1, 2.0)]
    assert told(read_feedback(show(LATE, ALL), np.array([False, True, True]))) == [(1, 1, 2.0)]
    assert told(read_feedback({}, ALL)) == []


def test_lists_of_single_environments_are_read_too():
    lists = {name: np.full(3, None, object) for name in LATE}
    for name in LATE:
        for i in range(3):
            lists[name][i] = without_pads(LATE, i)[name]
    info = {"feedback": lists, "_feedback": ALL}
    assert told(read_feedback(info, ALL)) == [(0, 0, 0.5), (0, 2, 1.0), (1, 1, 2.0)]


def test_ended_slots_are_read_from_the_final_info():
    over = np.array([True, False, False])
    info = {**show(blank(LATE, over), ~over), "final_info": show(blank(LATE, ~over), over)}
    assert info["feedback"]["decision"].tolist() == [[-1, -1], [1, -1], [-1, -1]]
    assert info["final_info"]["feedback"]["decision"].tolist() == [[0, 2], [-1, -1], [-1, -1]]
    assert sorted(told(read_feedback(info, ALL))) == [(0, 0, 0.5), (0, 2, 1.0), (1, 1, 2.0)]


def test_outcomes_in_time_are_rewards_if_no_outcome_is_told():
    reward = np.array([1.0, 2.0, 3.0])
    assert observed_outcomes({}, reward).tolist() == [1, 2, 3]
    some = show({"outcome": np.array([7.0, 0.0, 9.0])}, np.array([True, False, True]))
    assert observed_outcomes(some, reward).tolist() == [7, 2, 9]
