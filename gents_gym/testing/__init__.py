"""Contract tests for classes of one's own: an agent or environment in, a plain account of what is wrong out."""

from gents_gym.testing.agent import check_agent
from gents_gym.testing.contract import ContractError
from gents_gym.testing.vector_env import check_vector_env

__all__ = ["ContractError", "check_agent", "check_vector_env"]
