"""Agents that were not reset say so, whatever they are asked for."""

import copy
import pickle

import numpy as np
import pytest

from gents_gym import InputError, make_agent, registry
from gents_gym.agents.base import ResetError

NEEDS_MORE = {
    "per-task",
    "callable",
    "sb3",
    "mabwiser",
    "vw",
    "online",
    "distilled",
}  # what they are made of is tested elsewhere


@pytest.mark.parametrize("name", sorted(registry.AGENTS.keys() - NEEDS_MORE))
def test_acting_before_reset_is_an_error_that_says_so(name):
    agent = make_agent(name)
    zeros = np.zeros((1, 5), np.float32)
    with pytest.raises(InputError, match="reset must be called before act and observe, got a "):
        agent.act(zeros)
    if name not in ("random", "oracle"):  # these learn nothing
        with pytest.raises(ResetError):
            agent.observe(zeros, np.zeros(1, int), np.zeros(1))
    assert not hasattr(agent, "_held_by_nobody")
    assert not hasattr(agent, "colour")
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        assert twin == agent


def test_objects_per_task_too():
    agent = make_agent("per-task", agent=lambda: type("One", (), {"act": lambda self, observation: 0})())
    with pytest.raises(ResetError, match="got a PerTask without it"):
        agent.act(np.zeros((1, 5), np.float32))
