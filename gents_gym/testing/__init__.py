"""Checks classes against their contracts; each check raises at the first violation and explains it."""

import importlib as _importlib
from typing import Any as _Any

from gents_gym.testing.agent import check_agent
from gents_gym.testing.contract import ContractError
from gents_gym.testing.vector_env import check_vector_env

__all__ = ["ContractError", "check_agent", "check_model", "check_vector_env"]


def __getattr__(name: str) -> _Any:
    if name == "check_model":  # needs torch, which is imported only on request
        return getattr(_importlib.import_module("gents_gym.testing.model"), name)
    raise AttributeError(f"module 'gents_gym.testing' has no attribute {name!r}")
