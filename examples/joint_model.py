"""Bring a model of all actions of a task at once: a class with `begin`, and a belief with the verbs agents use."""

import argparse
import copy

import gymnasium as gym
import numpy as np
from scipy.special import expit

import gents_gym
from gents_gym import Bernoulli, Completion
from gents_gym.models.contexts import CONTEXT_MODELS, Sources
from gents_gym.models.ledger import Ledger


class Pooled:
    """One logistic regression on (1, Z, X) for all actions of a task; its coefficients are one of K prior draws."""

    likelihood = Bernoulli()

    def __init__(self, n_draws=300, mean=1.0, spread=0.5):
        self.n_draws, self.mean, self.spread = n_draws, mean, spread

    def begin(self, info, rngs):
        return PooledBelief(self, info, rngs)

    def coefficients(self, n_features, context_dim):  # of 1, Z and X, the same for all tasks: (K,), (K, F), (K, D)
        rng = np.random.default_rng(0)
        shapes = [(self.n_draws,), (self.n_draws, n_features), (self.n_draws, context_dim)]
        return [rng.normal(self.mean, self.spread, shape) for shape in shapes]

    def context_features(self, contexts):  # predictions are linear in the contexts themselves
        return None

    def action_context_features(self, action_features, contexts):  # no hidden layer for neural-linear-ts
        return None


class PooledBelief:
    """How likely each of the K regressions is in each of B tasks, given all that was observed there."""

    def __init__(self, model, info, rngs):
        self.model, self.info, self.rngs = model, info, list(rngs)
        self.features = np.array(info.action_features)  # (B, A, F)
        self.coefficients = model.coefficients(self.features.shape[2], info.context_dim)
        self.ledger = Ledger(info, lambda contexts: contexts)  # contexts, actions and outcomes of earlier decisions

    def chances(self, contexts):
        """Return P(Y=1) by each regression, (B, C, D) to (B, C, A, K)."""
        constant, by_action, by_context = self.coefficients
        return expit(constant + (self.features @ by_action.T)[:, None] + (contexts @ by_context.T)[:, :, None])

    def shares(self):
        """Return the posterior probability of each regression, (B, K)."""
        t = self.ledger.time
        seen, outcome = self.ledger.seen[:, :t, None], self.ledger.outcomes[:, :t, None]  # (B, t, 1)
        played = np.take_along_axis(self.features, np.maximum(seen, 0), 1)  # (B, t, F)
        constant, by_action, by_context = self.coefficients
        chance = expit(constant + played @ by_action.T + self.ledger.contexts[:, :t] @ by_context.T)  # (B, t, K)
        fit = np.log(np.where(outcome == 1, chance, 1 - chance)) * (seen >= 0)  # -1: the outcome has not arrived
        weights = np.exp(fit.sum(1) - fit.sum(1).max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def expected(self, contexts, actions=None):
        chances = np.einsum("bk,bcak->bca", self.shares(), self.chances(self.ledger.check_contexts(contexts)))
        means = self.model.likelihood.expected_reward(self.info.reward_fn, chances)
        if actions is not None:  # some of a pool's alone
            means = np.take_along_axis(means, actions[:, None], axis=2)
        return means if np.ndim(contexts) == 3 else means[:, 0]

    def variance(self, contexts, actions=None):  # not known
        return None

    def decide(self, context, action):
        self.ledger.decide(context, action)

    def observe(self, feedback):
        self.ledger.arrive(feedback, self.model.likelihood)

    def complete(self, context, rows=None, draws=1, contexts=None, actions=None):
        t, end = self.ledger.time, self.ledger.end(rows)
        self.ledger.face(context)
        imagined, shares = self.imagine(contexts or "seen", draws, end), self.shares()
        picks = zip(self.rngs, shares, strict=True)
        which = np.stack([rng.choice(len(share), size=draws, p=share) for rng, share in picks])  # one for a whole table
        constant, by_action, by_context = (part[which] for part in self.coefficients)  # (B, M), (B, M, F), (B, M, D)
        levels = constant[..., None] + np.einsum("baf,bmf->bma", self.features, by_action)
        chances = expit(levels[:, :, None] + np.einsum("bmtd,bmd->bmt", imagined, by_context)[..., None])
        table = (np.stack([rng.random(chances.shape[1:]) for rng in self.rngs]) < chances).astype(np.float32)
        known = self.ledger.seen[:, :t, None] == np.arange(table.shape[3])  # (B, t, A)
        table[:, :, :t] = np.where(known[:, None], self.ledger.outcomes[:, None, :t, None], table[:, :, :t])
        weights = np.ones_like(table)  # earlier cells that were not observed do not count if rows is given
        weights[:, :, :t] = known[:, None]
        if actions is not None:
            table, weights = (np.take_along_axis(part, actions[:, None, None], 3) for part in (table, weights))
        return Completion(imagined, table, None if rows is None else weights, None, t)

    def imagine(self, name, draws, end):
        """Return the contexts up to the current one, followed by imagined ones, (B, M, T', D)."""
        t, own = self.ledger.time, self.ledger.contexts[:, None]
        sources = Sources(n_bank=0, n_seen=t + 1, n_known=self.ledger.n_known, alpha=0.0)
        picks = -1 - CONTEXT_MODELS[name](sources, end - t - 1, draws, self.rngs)  # rows of the ledger, (B, M, n)
        past = np.broadcast_to(np.arange(t + 1), (*picks.shape[:2], t + 1))
        return np.take_along_axis(own, np.concatenate([past, picks], 2)[..., None], 2)

    def fork(self, tasks):
        other = copy.copy(self)
        other.info, other.rngs = self.info[tasks], [self.rngs[i].spawn(1)[0] for i in tasks]
        other.features, other.ledger = self.features[tasks], self.ledger.pick(tasks)
        return other

    def add(self, action_features):
        self.features = np.concatenate([self.features, action_features], axis=1)
        self.ledger.widen(self.features.shape[1])

    def state(self):
        return self.ledger.state()

    def restore(self, state):
        self.ledger.restore(state)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--horizon", type=int, default=200)
    arguments = parser.parse_args()

    gents_gym.testing.check_model(Pooled)  # says in plain words what is wrong, if something is

    envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon)
    for spec in ("ts-gen(m=16)", "greedy"):
        found = gents_gym.rollout(envs, gents_gym.make_agent(spec, model=Pooled()), seed=0).summary()["expected"]
        print(f"{spec:<16} expected regret {found['mean']:6.1f} ± {found['se']:.1f}")
