"""An environment whose outcomes depend on sines and products of contexts, which no linear model sees."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

import gents_gym
from gents_gym.randomness import stream

FEATURES = 6  # of the context


def true_features(contexts):
    """Return what logits are linear in, (..., 8) to (..., 6), each of variance near 1."""
    x = np.moveaxis(contexts, -1, 0)
    sines = (1.4 * np.sin(2 * x[0]), 1.4 * np.sin(2 * x[1] + x[2]), 2 * np.sin(x[6]) * x[7])
    return np.stack([*sines, x[2] * x[3], x[4] * x[5], x[0] * x[7]], axis=-1)


@dataclass(frozen=True)
class Nonlinear:
    """Actions weigh the features as theirs say, up to noise of their own."""

    n_actions: int = 6
    horizon: int = 200

    def sample(self, seed, indices, split="test"):
        rngs = [stream(seed, "task", index, split) for index in indices]
        z, x, y, chances = self.draw(rngs, self.n_actions, self.horizon)
        return gents_gym.Tasks(z, x, y, means=chances, oracle="mlp")

    def sample_actions(self, seed, indices, n_rows, split="train"):
        rngs = [stream(seed, "actions", index, split) for index in indices]
        z, x, y, _ = self.draw(rngs, 1, n_rows)
        return gents_gym.ActionRows(z[:, 0], x, y[:, :, 0])

    def draw(self, rngs, n_actions, n_rows):
        z = np.stack([rng.normal(size=(n_actions, FEATURES)) for rng in rngs])  # (B, A, 6)
        own = np.stack([rng.normal(size=(n_actions, FEATURES)) for rng in rngs])
        x = np.stack([rng.normal(size=(n_rows, 8)) for rng in rngs])  # (B, T, 8)
        noise = np.stack([rng.random((n_rows, n_actions)) for rng in rngs])
        chances = expit(0.3 + true_features(x) @ (1.2 * z + 0.5 * own).swapaxes(1, 2))  # (B, T, A)
        return z, x, (noise < chances).astype(np.float32), chances


gents_gym.register_tasks("tests/Nonlinear-v0", "nonlinear:Nonlinear")


def noise_loss(distribution, seed, count, n_rows, split):
    """Return the loss of the true probabilities, which no model reaches: it knows each action's own coefficients."""
    rngs = [stream(seed, "actions", index, split) for index in range(count)]
    chances = distribution.draw(rngs, 1, n_rows)[-1]
    return float(-(xlogy(chances, chances) + xlogy(1 - chances, 1 - chances)).mean())
