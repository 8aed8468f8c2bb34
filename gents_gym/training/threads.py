"""Sets the number of threads of a training, so that results do not depend on environment variables."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import torch
from threadpoolctl import threadpool_limits

from gents_gym.training.config import TrainConfig

Function = TypeVar("Function", bound=Callable[..., Any])


def with_threads(function: Function) -> Function:
    """Make a function of (rows, validation, config, ...) use ``config.threads`` threads, and restore them after."""

    @wraps(function)
    def limited(rows: Any, validation: Any, config: TrainConfig, *args: Any, **options: Any) -> Any:
        before = torch.get_num_threads()
        with threadpool_limits(config.threads):  # those of NumPy, SciPy and scikit-learn
            torch.set_num_threads(config.threads)
            try:
                return function(rows, validation, config, *args, **options)
            finally:
                torch.set_num_threads(before)

    return cast(Function, limited)
