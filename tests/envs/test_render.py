import gymnasium as gym
import numpy as np
import pytest

from gents_gym.envs.render import ROWS, draw_table, write_table
from gents_gym.tasks.synthetic import Synthetic
from gents_gym.types import Tasks

TASKS = Synthetic(n_actions=3, horizon=40).sample(0, [0])


def test_text_fills_in_the_played_cells_alone():
    actions = np.array([2, 0])
    lines = write_table(TASKS, actions).splitlines()
    means = TASKS.means[0]
    regret = means[0].max() - means[0, 2] + means[1].max() - means[1, 0]
    assert lines[0] == f"decision 3 of 40, best regret so far {regret:.2f}"
    cells = [line.split("|")[2].split() for line in lines[2:]]
    assert cells == [["?", "?", f"{TASKS.outcomes[0, 0, 2]:g}"], [f"{TASKS.outcomes[0, 1, 0]:g}", "?", "?"], []]
    assert lines[-1].split("|")[1].split() == [f"{x:.1f}" for x in TASKS.contexts[0, 2]]


def test_text_shows_a_window_and_the_end():
    lines = write_table(TASKS, np.zeros(40, int)).splitlines()
    assert lines[0].startswith("ended after 40 decisions, best regret so far")
    assert len(lines) == ROWS + 2
    assert lines[-1].split("|")[0].strip() == "40"
    unknown = Tasks(TASKS.action_features, TASKS.contexts, TASKS.outcomes)
    assert write_table(unknown, np.zeros(0, int)).startswith("decision 1 of 40\n")


def test_picture_is_rgb_and_changes_with_what_is_played():
    before, after = draw_table(TASKS, np.zeros(0, int)), draw_table(TASKS, np.array([1]))
    assert before.dtype == np.uint8
    assert before.ndim == 3
    assert before.shape[2] == 3
    assert before.shape == after.shape
    assert (before != after).any()


@pytest.mark.parametrize(("mode", "kind"), [("ansi", str), ("rgb_array", np.ndarray)])
def test_both_views_render(mode, kind):
    env = gym.make("gents_gym/Synthetic-v0", render_mode=mode)
    env.reset(seed=0)
    env.step(4)
    assert isinstance(env.render(), kind)
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=2, render_mode=mode)
    envs.reset(seed=0)
    frames = envs.render()
    assert len(frames) == 2
    assert np.any(frames[0] != frames[1])
    assert all(isinstance(frame, kind) for frame in frames)


def test_rendering_without_a_mode_warns():
    env = gym.make("gents_gym/Synthetic-v0").unwrapped
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="render needs a render_mode"):
        assert env.render() is None
