"""Meta-contextual bandits with generative models: Gymnasium environments, agents and honest evaluation."""

import gymnasium as _gym

from gents_gym import registry as _registry
from gents_gym.checks import InputError
from gents_gym.construct import make_agent, make_policy, make_tasks
from gents_gym.envs import BanditEnv, BanditVectorEnv, PreviousStep, VectorPreviousStep
from gents_gym.evaluation.regret import RecordRegret, VectorRecordRegret
from gents_gym.evaluation.rollout import Rollout, rollout
from gents_gym.types import ActionRows, Agent, PolicyClass, TaskDistribution, TaskInfo, Tasks

__all__ = [
    "ActionRows",
    "Agent",
    "BanditEnv",
    "BanditVectorEnv",
    "InputError",
    "PolicyClass",
    "PreviousStep",
    "RecordRegret",
    "Rollout",
    "TaskDistribution",
    "TaskInfo",
    "Tasks",
    "VectorPreviousStep",
    "VectorRecordRegret",
    "make_agent",
    "make_policy",
    "make_tasks",
    "rollout",
]
__version__ = "0.1.0"

for _id, _arguments in _registry.ENVIRONMENTS.items():
    _gym.register(
        _id,
        entry_point="gents_gym.envs.bandit:BanditEnv",
        vector_entry_point="gents_gym.envs.bandit:BanditVectorEnv",
        kwargs=_arguments,
    )
