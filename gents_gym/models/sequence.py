"""The base class of trained models: recurrent and parallel evaluation, banks of contexts and actions, weight files."""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save
from torch import Tensor, nn

from gents_gym.checks import InputError
from gents_gym.files import check_target
from gents_gym.likelihoods import Bernoulli, Gaussian, Likelihood, make_likelihood
from gents_gym.models.belief import ActionBelief
from gents_gym.seals import check_described, read_tensors, write_described
from gents_gym.types import TaskInfo

FORMAT = "gents_gym.model.1"
CONFIG, TENSORS = "config.json", "model.safetensors"  # the files of a model's folder
LATER = ("action_bank", "urn")  # tensors that older files lack; then they keep their defaults


class SequenceModel(nn.Module, ABC):
    """A trained p_θ: it predicts an action's outcomes from its features, history and context; N actions at once.

    The recurrent path (``start``, ``predict``, ``append``) is for generation, the parallel path (``log_prob``) for
    training; both give the same probabilities. Contexts come from ``bank``, the empirical distribution of training
    contexts.

    A subclass defines its name, ``kind``; a frozen dataclass of sizes, ``config_class``, with fields ``action_dim`` and
    ``context_dim`` among others; and the three methods of the recurrent path. Everything else has a default.
    """

    kind: ClassVar[str]
    config_class: ClassVar[type]
    scans: ClassVar[bool] = True  # whether ``log_prob`` makes a state for each row
    bank: Tensor  # (n, D)
    action_bank: Tensor  # (n, F): training action features
    urn: Tensor  # (): 1 / (1 + α), where α is the mass of the bank in the urn of the context model "seen"
    context_scaling: Tensor  # (2, D): what is subtracted from a context, and what the result is multiplied by
    action_scaling: Tensor  # (2, F): the same for action features
    ordered: bool = False  # whether rows have an order, and the last entry of contexts is the time
    banked: bool = True  # whether training contexts are like those of the tasks that it plays, and kept in a bank
    space: str | None = None  # the name of the space if action features are embeddings

    def __init__(self, config: Any) -> None:
        """Make a model with empty banks and no scaling."""
        super().__init__()
        self.config = config
        self.register_buffer("bank", torch.zeros(0, config.context_dim))
        self.register_buffer("action_bank", torch.zeros(0, config.action_dim))
        self.register_buffer("urn", torch.zeros(()))
        for name, size in (("context_scaling", config.context_dim), ("action_scaling", config.action_dim)):
            self.register_buffer(name, torch.zeros(2, size))
            getattr(self, name)[1].fill_(1)  # no arithmetic: on the meta device, torch would import its compiler for it

    @abstractmethod
    def start(self, action_features: Tensor) -> Any:
        """Return the state of N actions with empty histories, (N, F)."""

    @abstractmethod
    def predict(self, state: Any, context: Tensor) -> Tensor:
        """Return the likelihood's parameters in the contexts (N, D): (N,) P(Y=1) for binary outcomes."""

    @abstractmethod
    def append(self, state: Any, context: Tensor, outcome: Tensor, where: Tensor | None = None) -> Any:
        """Return the state with (N, D) contexts and (N,) outcomes appended, in the rows that ``where`` (N,) picks."""

    @property
    def likelihood(self) -> Likelihood:
        """What outcomes are: the configuration's field ``likelihood``, or binary if it has none."""
        return make_likelihood(getattr(self.config, "likelihood", "bernoulli"))

    def log_prob(self, action_features: Tensor, contexts: Tensor, outcomes: Tensor, at: Tensor | None = None) -> Tensor:
        """Return log-probabilities along whole sequences: entry t is predicted only from the rows before t.

        Args:
            action_features: (N, F).
            contexts: (N, T, D).
            outcomes: (N, T).
            at: The entries to return, in rising order, (n,); None: all.

        Returns:
            (N, n), or (N, T).
        """
        check_sequences(action_features, contexts, outcomes)
        state, found = self.start(action_features), []
        wanted = set(range(contexts.shape[1]) if at is None else at.tolist())
        for t in range(max(wanted) + 1):
            if t in wanted:
                found.append(log_prob(self.likelihood, self.predict(state, contexts[:, t]), outcomes[:, t]))
            state = self.append(state, contexts[:, t], outcomes[:, t])
        return torch.stack(found, 1)

    def features(self, action_features: Tensor, context: Tensor) -> Tensor | None:
        """Return the features that predict with an empty history, (N, F) and (N, D) to (N, K), or None."""
        return None

    def begin(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> ActionBelief:
        """Return the belief of B new tasks."""
        self.check_tasks(info)
        bank, urn = self.bank.numpy(), float(self.urn)
        alpha = 1 / urn - 1 if urn > 0 else math.inf
        return ActionBelief(self, info, rngs, bank, alpha, self.likelihood)

    def context_features(self, contexts: np.ndarray) -> np.ndarray | None:
        """Return the learned features that predictions are linear in, (..., D) to (..., K); None if there are none."""
        return None

    def action_context_features(self, action_features: np.ndarray, contexts: np.ndarray) -> np.ndarray | None:
        """Return the features that predict with an empty history, (..., F) and (..., D) to (..., K)."""
        lead = np.broadcast_shapes(action_features.shape[:-1], contexts.shape[:-1])
        rows = []
        for part in (action_features, contexts):
            each = np.broadcast_to(part, (*lead, part.shape[-1])).reshape(-1, part.shape[-1])  # (N, F), (N, D)
            rows.append(torch.tensor(each, dtype=torch.float32))
        with torch.no_grad():
            found = self.features(*rows)  # (N, K)
        return None if found is None else found.double().numpy().reshape(*lead, -1)

    def parameter_groups(self, learning_rate: float, weight_decay: float) -> list[dict[str, Any]]:
        """Return the optimiser's parameter groups; those with ``"muon": True``, of matrices, are trained with Muon."""
        return [{"params": list(self.parameters()), "lr": learning_rate, "weight_decay": weight_decay}]

    def fits(self, n_features: int, n_context: int) -> bool:
        """Return whether the model is of actions with so many features, and contexts of so many entries."""
        return bool((self.config.action_dim, self.config.context_dim) == (n_features, n_context))

    def describe_sizes(self) -> str:
        """Return the sizes that fit, in words."""
        return f"{self.config.action_dim} and {self.config.context_dim}"

    def check_tasks(self, info: TaskInfo) -> None:
        """Raise unless the tasks' contexts have the model's size, and action features are of its space."""
        if self.config.context_dim != info.context_dim:
            wanted, got = self.config.context_dim, info.context_dim
            raise InputError(f"contexts must have {wanted} entries for this model, got {got}")
        self.check_space(info.space)

    def check_space(self, space: str | None) -> None:
        """Raise unless the model was trained on embeddings of ``space``; None: it is not known."""
        if self.space is not None and space is not None and space != self.space:
            rule = f"action_features must come from the space {self.space!r} for this model, got {space!r}"
            raise InputError(f"{rule}: train a model on this corpus, or prepare the corpus in that space (--space)")

    def scale_features(self, action_features: Tensor) -> Tensor:
        """Check that action features have the model's size; return them in the model's units."""
        if action_features.ndim != 2 or action_features.shape[1] != self.config.action_dim:
            wanted, got = f"(N, {self.config.action_dim})", tuple(action_features.shape)
            cure = "choose a model of this environment, or train one (gents-gym train --env)"
            raise InputError(f"action_features must have shape {wanted} for this model, got {got}: {cure}")
        return (action_features - self.action_scaling[0]) * self.action_scaling[1]

    def scale_contexts(self, contexts: Tensor) -> Tensor:
        """Check that contexts have the model's size; return them in the model's units."""
        if contexts.shape[-1] != self.config.context_dim:
            wanted, got = self.config.context_dim, contexts.shape[-1]
            raise InputError(f"contexts must have {wanted} entries for this model, got {got}")
        return (contexts - self.context_scaling[0]) * self.context_scaling[1]

    def save_pretrained(self, folder: str | Path, notes: dict[str, Any] | None = None) -> Path:
        """Write ``model.safetensors`` and, last, ``config.json`` with both sha256 into ``folder``, each whole."""
        folder = check_target("folder", folder)
        if os.path.lexists(folder) and not folder.is_dir():
            raise InputError(f"folder must be a folder, got the file '{folder}'")
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        notes = {**(notes or {}), **({} if self.space is None else {"space": self.space})}
        config = {"format": FORMAT, "kind": self.kind, "config": asdict(self.config), "notes": notes}
        write_described(folder, CONFIG, config, {TENSORS: save(tensors)})
        return folder

    @classmethod
    def from_config(cls, values: dict[str, Any], path: Path) -> Self:
        """Return a new model of this kind with the configuration ``values`` from the file ``path``."""
        known = {field.name for field in fields(cls.config_class)}
        optional = {field.name for field in fields(cls.config_class) if field.default is not MISSING}
        if not known - optional <= values.keys() <= known:
            odd = ", ".join(sorted(values.keys() - known | known - optional - values.keys()))
            raise InputError(f"'{path}' must configure {', '.join(sorted(known))}; missing or unknown: {odd}")
        try:
            with torch.device("meta"):  # sizes only: no memory is allocated before the tensors are known to fit
                return cls(cls.config_class(**values))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"'{path}' must have the sizes of a {cls.kind} model ({error})") from error

    def _default(self, name: str) -> Tensor:
        sizes = {"action_bank": (0, self.config.action_dim), "urn": ()}
        return torch.zeros(sizes[name])

    def load_tensors(self, path: Path, sha256: str | None = None) -> None:
        """Load the tensors of a safetensors file. Raises if they are not exactly those of the model.

        Args:
            path: The file.
            sha256: The sha256 that its bytes must have, if known.
        """
        try:
            check_described(path, sha256)
            tensors, _ = read_tensors(path, "pt")
        except (SafetensorError, OSError) as error:
            raise InputError(f"'{path}' must be a whole safetensors file ({error})") from error
        own = self.state_dict()
        tensors = {**{name: self._default(name) for name in LATER}, **tensors}
        if tensors.keys() != own.keys():
            odd = sorted(tensors.keys() ^ own.keys())
            named = ", ".join(odd[:3]) + (f" and {len(odd) - 3} more" if len(odd) > 3 else "")
            raise InputError(f"'{path}' must hold the tensors of a {self.kind} model; missing or unexpected: {named}")
        self.bank, self.action_bank = tensors["bank"], tensors["action_bank"]
        for name, tensor in tensors.items():
            wanted, got = tuple(own[name].shape), tuple(tensor.shape)
            first = 1 if name in ("bank", "action_bank") else 0  # banks may have any number of rows
            if wanted[first:] != got[first:] or len(wanted) != len(got) or tensor.dtype != torch.float32:
                raise InputError(f"'{path}' must hold {name} of shape {wanted} in float32, got {got} in {tensor.dtype}")
            if not torch.isfinite(tensor).all():
                raise InputError(f"'{path}' must hold finite numbers, got others in {name}")
        if not 0 <= float(tensors["urn"]) <= 1:
            raise InputError(f"'{path}' must hold an urn of 0 to 1, got {float(tensors['urn']):g}")
        self.load_state_dict(tensors, assign=True)


def check_sequences(action_features: Tensor, contexts: Tensor, outcomes: Tensor) -> None:
    """Raise unless the sequences belong to N actions with T rows each: (N, F), (N, T, D) and (N, T)."""
    sizes = tuple(contexts.shape[:2])
    if contexts.ndim != 3 or tuple(outcomes.shape) != sizes or len(action_features) != sizes[0]:
        got = ", ".join(str(tuple(part.shape)) for part in (action_features, contexts, outcomes))
        raise InputError(f"action_features, contexts and outcomes must be (N, F), (N, T, D) and (N, T), got {got}")


def log_prob(likelihood: Likelihood, parameters: Tensor, outcomes: Tensor) -> Tensor:
    """Return the log-probabilities of outcomes (N,) under a likelihood's parameters (N, ...)."""
    if isinstance(likelihood, Bernoulli):
        return torch.log(torch.where(outcomes == 1, parameters, 1 - parameters))
    if isinstance(likelihood, Gaussian):
        mean, variance = parameters[:, 0], parameters[:, 1]
        return -0.5 * (torch.log(2 * torch.pi * variance) + (outcomes - mean) ** 2 / variance)
    return torch.log(parameters.gather(1, outcomes.long()[:, None])[:, 0])


def network(inputs: int, width: int, outputs: int) -> nn.Sequential:
    """Return an MLP of two hidden layers."""
    hidden = (nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
    return nn.Sequential(*hidden, nn.Linear(width, outputs))
