"""The ``joint`` model: a filter over all actions of a task at once, which share a task effect."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gents_gym.checks import InputError
from gents_gym.models.coefficients import CoefficientBelief
from gents_gym.models.contexts import check_contexts
from gents_gym.models.filter import FilterConfig, FilterModel
from gents_gym.models.filter_form import FilterKernel
from gents_gym.models.joint_posterior import JointPosterior, joint_prior
from gents_gym.models.ledger import Ledger
from gents_gym.models.picked import Bank, imagine
from gents_gym.types import TaskInfo


@dataclass(frozen=True)
class JointConfig(FilterConfig):
    """Sizes of a joint model: those of a filter, without a head and without forgetting."""

    def __post_init__(self) -> None:
        """Check the sizes."""
        super().__post_init__()
        for name in ("head_width", "forgetting"):
            if getattr(self, name):
                raise InputError(f"{name} must be 0 for a joint model, got {getattr(self, name)}")
        if self.likelihood.startswith("categorical"):
            raise InputError(f"outcomes must be bernoulli or gaussian for a joint model, got {self.likelihood}")


class JointModel(FilterModel):
    """A filter whose actions are correlated through a task effect.

    The coefficients of action a of a task are

        β_a = μ(Z_a) + L(Z_a) (√s u + √(1 - s) e_a),

    with the task effect u ~ N(0, I), the action's own part e_a ~ N(0, I), and s in [0, 1] for each coefficient. For a
    single action it equals the filter and is trained as one; s is then learned from whole tasks. Gaussian outcomes of a
    row may also share a part of their noise.
    """

    kind = "joint"
    config_class = JointConfig
    share: Tensor  # s, (K,)
    row_effect: Tensor  # (): the share of Gaussian noise that is common to a row's actions

    def __init__(self, config: JointConfig) -> None:
        """Make a model with a standard normal prior and independent actions."""
        super().__init__(config)
        self.register_buffer("share", torch.zeros(self.size))
        self.register_buffer("row_effect", torch.zeros(()))

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> "JointBelief":  # type: ignore[override]
        """Return the belief of B new tasks."""
        self.check_tasks(info)
        return JointBelief(self, info, rngs)

    def posterior(self, action_features: np.ndarray, ledger: Ledger) -> JointPosterior:
        """Return the posterior of B·A actions (B, A, F) without observations."""
        with torch.no_grad():
            priors = [self.prior(torch.tensor(task)) for task in np.asarray(action_features, np.float32)]
        mean, root = (torch.stack(parts).double().numpy() for parts in list(zip(*priors, strict=True))[:2])
        kernel: Any = self.form.kernel(self)
        effects = self.share.double().numpy(), float(self.row_effect)
        state = joint_prior(*mean.shape)
        return JointPosterior(self.form, kernel, self.likelihood, *effects, ledger, mean, root, *state)

    def design(self, contexts: np.ndarray) -> np.ndarray:
        """Return x = (1, φ̂(X)) in double precision, (..., D) to (..., K)."""
        kernel: Any = self.form.kernel(self)
        assert isinstance(kernel, FilterKernel)
        return kernel.rows(contexts).astype(np.float64)


class JointBelief(CoefficientBelief):
    """What a joint model believes of B tasks."""

    def __init__(self, model: JointModel, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Start with empty histories."""
        super().__init__(model, info, rngs)
        urn, bank = float(model.urn), model.bank.numpy()
        self._bank = Bank(bank, model.design(bank).astype(np.float32), 1 / urn - 1 if urn > 0 else math.inf)

    def _imagine(self, contexts: str | None, end: int, draws: int) -> np.ndarray:
        """Return the contexts so far and imagined ones after them, (B, M, T', D)."""
        check_contexts(contexts)
        kept = self._ledger.time + 1
        return imagine(self._ledger, self._bank, contexts, end - kept, draws, self._rngs, kept)[0]
