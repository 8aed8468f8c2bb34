"""Estimates how many sequences fit into memory at once during training."""

import numpy as np
import torch
from torch import Tensor

from gents_gym.checks import check_memory
from gents_gym.models.sequence import SequenceModel
from gents_gym.models.tree import tree_leaves
from gents_gym.training.config import TrainConfig
from gents_gym.training.data import RowSets

MOST = 500  # largest number of sequences at once
GIGABYTE = 10**9
LOST = 3  # states per row whose memory the allocator cannot reuse, because kept tensors lie between them


def fitting_batch(model: SequenceModel, rows: RowSets, config: TrainConfig) -> int:
    """Return how many sequences of ``rows`` fit into the configured memory, from 1 to 500."""
    each = max(1, sequence_bytes(model, rows, config))
    return int(np.clip(config.memory * GIGABYTE // each, 1, MOST))


def sequence_bytes(model: SequenceModel, rows: RowSets, config: TrainConfig) -> int:
    """Return the most bytes that one of the longest sequences takes until its gradient is computed.

    It counts what automatic differentiation keeps for a second sequence in addition to the first, without weights, and
    three states of the model per row if it makes one for each. States are freed, but measurements showed that up to
    that much is lost to fragmentation.
    """
    counts = np.diff(rows.offsets)
    one, two = (_kept_bytes(model, rows, np.full(n, np.argmax(counts)), config) for n in (1, 2))
    if not model.scans:
        return two - one
    state = model.start(torch.from_numpy(rows.action_features[:1].copy()))
    length = config.longest if config.replacement else min(config.longest, int(counts.max()))
    return two - one + LOST * length * sum(leaf.nbytes for leaf in tree_leaves(state))


def _kept_bytes(model: SequenceModel, rows: RowSets, actions: np.ndarray, config: TrainConfig) -> int:
    """Return the bytes of all tensors that automatic differentiation keeps for the actions' sequences."""
    if config.replacement:
        name = "horizon" if config.longest == config.horizon else "lengths"
        check_memory(4 * config.longest * rows.contexts.shape[1], **{name: config.longest})
    batch = rows.resample(actions, config.longest, config.replacement, np.random.default_rng(0))
    length = batch.outcomes.shape[1]
    at = None if config.steps is None else torch.linspace(0, length - 1, min(config.steps, length)).long()
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model.log_prob(batch.action_features, batch.contexts, batch.outcomes, at)
    return sum(kept.values())
