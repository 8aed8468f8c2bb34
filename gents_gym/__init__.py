"""Meta-contextual bandits with generative models: Gymnasium environments, agents and honest evaluation."""

from gents_gym import start as _start  # noqa: F401  # first: it guards the imports below

# isort: split

import importlib as _importlib
from typing import Any as _Any

from gents_gym import registry as _registry
from gents_gym.checks import InputError
from gents_gym.construct import make_agent, make_policy, make_tasks
from gents_gym.envs import (
    BanditEnv,
    BanditVectorEnv,
    LateOutcomes,
    PreviousStep,
    VectorLateOutcomes,
    VectorPreviousStep,
)
from gents_gym.envs.register import register as _register
from gents_gym.envs.register import register_tasks
from gents_gym.evaluation.regret import RecordRegret, VectorRecordRegret
from gents_gym.evaluation.rollout import Rollout, rollout
from gents_gym.likelihoods import Bernoulli, Categorical, Gaussian
from gents_gym.types import (
    ActionModel,
    ActionRows,
    Agent,
    Belief,
    Completion,
    Feedback,
    Model,
    Outlook,
    PolicyClass,
    TaskDistribution,
    TaskInfo,
    Tasks,
)

__all__ = [
    "ActionModel",
    "ActionRows",
    "Agent",
    "BanditEnv",
    "BanditVectorEnv",
    "Belief",
    "Bernoulli",
    "CalibrationConfig",
    "Categorical",
    "Completion",
    "Decision",
    "EvaluationConfig",
    "ExactModel",
    "Feedback",
    "Gaussian",
    "InputError",
    "LateOutcomes",
    "Live",
    "Logs",
    "Model",
    "OfflineConfig",
    "Outlook",
    "PerTask",
    "PolicyClass",
    "PreviousStep",
    "RecordRegret",
    "Roles",
    "Rollout",
    "RowSets",
    "SequenceModel",
    "TaskDistribution",
    "TaskInfo",
    "Tasks",
    "TuneConfig",
    "VectorLateOutcomes",
    "VectorPreviousStep",
    "VectorRecordRegret",
    "calibrate",
    "check_model",
    "compare",
    "evaluate",
    "evaluate_offline",
    "load_model",
    "load_results",
    "make_agent",
    "make_policy",
    "make_tasks",
    "preset_config",
    "read_decisions",
    "read_logs",
    "register_tasks",
    "rollout",
    "testing",
    "train",
    "tune",
]
__version__ = "0.1.0"

_LAZY = {  # names that need torch, joblib or pyarrow are imported on first use
    "CalibrationConfig": "gents_gym.calibration.config",
    "calibrate": "gents_gym.calibration.calibrate",
    "compare": "gents_gym.report.comparison",
    "PerTask": "gents_gym.agents.per_task",
    "EvaluationConfig": "gents_gym.evaluation.grid",
    "evaluate": "gents_gym.evaluation.harness",
    "OfflineConfig": "gents_gym.offline.config",
    "evaluate_offline": "gents_gym.offline.answers",
    "load_results": "gents_gym.evaluation.store",
    "Decision": "gents_gym.live.live",
    "Live": "gents_gym.live.live",
    "read_decisions": "gents_gym.live.export",
    "Logs": "gents_gym.logs.record",
    "Roles": "gents_gym.logs.roles",
    "read_logs": "gents_gym.logs.record",
    "load_model": "gents_gym.models.load",
    "ExactModel": "gents_gym.models.exact",
    "SequenceModel": "gents_gym.models.sequence",
    "check_model": "gents_gym.testing.model",
    "RowSets": "gents_gym.training.data",
    "preset_config": "gents_gym.training.config",
    "train": "gents_gym.training.loop",
    "TuneConfig": "gents_gym.tuning.config",
    "tune": "gents_gym.tuning.tune",
}


def __getattr__(name: str) -> _Any:
    if name == "testing":
        return _importlib.import_module("gents_gym.testing")
    if name in _LAZY:
        return getattr(_importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'gents_gym' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


for _id, _arguments in _registry.ENVIRONMENTS.items():
    _register(_id, _arguments)
