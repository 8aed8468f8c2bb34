"""Gymnasium environments: thin views of a batch of tasks."""

from gents_gym.envs.bandit import BanditEnv, BanditVectorEnv
from gents_gym.envs.previous import PreviousStep, VectorPreviousStep

__all__ = ["BanditEnv", "BanditVectorEnv", "PreviousStep", "VectorPreviousStep"]
