import sys

import gymnasium as gym
import numpy as np
import pytest

from gents_gym import InputError, TaskInfo, make_agent, rollout
from gents_gym.agents.adapters.vw import ARGS, REFUSED
from gents_gym.evaluation.grid import weights_hash

vowpalwabbit = pytest.importorskip("vowpalwabbit")


def lines(context, features):
    """An example in Vowpal Wabbit's text format: two context features, three actions of one feature."""
    shared = f"shared |c x0:{context[0]:.8g} x1:{context[1]:.8g}"
    return [shared, *(f"|a number={i} z0:{z:.8g}" for i, z in enumerate(features))]


def test_each_task_is_played_as_by_a_workspace_of_ones_own():
    """Against the library by hand: its text format, its chances, and draws of the task's generator."""
    args, features = "--cb_explore_adf -q ca -b 10 --epsilon 0.3", np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -3.0]])
    agent, contexts = make_agent("vw", args=args), np.random.default_rng(0).normal(size=(30, 2, 2))
    agent.reset(TaskInfo(features[..., None], 3, 2), [np.random.default_rng(i) for i in range(2)])
    rngs = [np.random.default_rng(i) for i in range(2)]
    mine = [vowpalwabbit.Workspace(args, quiet=True, random_seed=int(rng.integers(2**31))) for rng in rngs]
    played = []
    for context in contexts:
        actions = agent.act(context)
        for i in range(2):
            example = lines(context[i], features[i])
            chances = mine[i].predict(example)
            action = np.searchsorted(np.cumsum(chances) / np.sum(chances), rngs[i].random(), side="right")
            assert actions[i] == action
            example[1 + action] = f"0:{-float(action == 1)}:{chances[action]} {example[1 + action]}"
            mine[i].learn(example)
        agent.observe(context, actions, (actions == 1).astype(float))
        played.append(actions)
    assert np.bincount(np.ravel(played), minlength=3).argmax() == 1


def test_it_learns():
    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=6, horizon=150)
    found = rollout(envs, make_agent("vw"), seed=0).summary()["expected"]["mean"]
    assert found < 0.8 * rollout(envs, make_agent("random"), seed=0).summary()["expected"]["mean"]


def test_a_manifest_tells_the_librarys_version():
    assert weights_hash(make_agent("vw")).startswith("vowpalwabbit==")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("--cb_explore 3", "args must be Vowpal Wabbit's and include --cb_explore_adf, got '--cb_explore 3'"),
        (3, "args must be Vowpal Wabbit's and include .*, got 3"),
        ("--cb_explore_adf --nonsense", "agent 'vw' cannot be made: RuntimeError: unrecognised option '--nonsense'"),
        (
            "--cb_explore_adf --random_seed 0",
            "args must neither name files, ports or a seed nor print, got '--random_se",
        ),
        ("--cb_explore_adf -f model.vw", "args must neither name files, .* got '-f' in"),
        ("--cb_explore_adf -pout.txt", "args must neither name files, .* got '-pout.txt' in"),
        ("--cb_explore_adf --cache_file=c", "args must neither name files, .* got '--cache_file=c' in"),
        (
            "--daemon --cb_explore_adf",
            "args must neither name files, .* got '--daemon' in",
        ),  # would open a port and wait
        ("--cb_explore_adf --version", "args must neither name files, .* got '--version' in"),  # would end the process
    ],
)
def test_bad_arguments(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        make_agent("vw", args=args)
    assert not list(tmp_path.iterdir())


def test_arguments_that_would_wait_or_end_the_process_are_among_those():
    """They are not passed to Vowpal Wabbit here, because a test might hang."""
    assert all(
        REFUSED.fullmatch(arg) for arg in ("--daemon", "--help", "-h", "--version", "--passes=2", "--data", "-d")
    )
    assert not any(REFUSED.fullmatch(arg) for arg in (*ARGS.split(), "--quiet", "--squarecb", "-C", "-P", "-1", "-0.5"))


def test_a_missing_library_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(InputError, match=r"needs the package 'vowpalwabbit': pip install 'gents-gym\[vw\]'"):
        make_agent("vw")
