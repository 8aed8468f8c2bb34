"""Gymnasium environments: thin views of a batch of tasks."""

from gents_gym.envs.bandit import BanditEnv
from gents_gym.envs.late import LateOutcomes, VectorLateOutcomes
from gents_gym.envs.previous import PreviousStep, VectorPreviousStep
from gents_gym.envs.vector import BanditVectorEnv

__all__ = [
    "BanditEnv",
    "BanditVectorEnv",
    "LateOutcomes",
    "PreviousStep",
    "VectorLateOutcomes",
    "VectorPreviousStep",
]
