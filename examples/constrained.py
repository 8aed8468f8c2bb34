"""What equal treatment of two groups costs: constrained oracles for several ε, and TS-Gen under the constraint."""

import argparse

import gymnasium as gym
import numpy as np

import gents_gym

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tasks", type=int, default=100)
parser.add_argument("--horizon", type=int, default=500)
parser.add_argument("--shift", type=float, default=0.5, help="of the groups' means, up and down")
arguments = parser.parse_args()

# Two groups of 100 contexts each, around different means: a policy fitted without care treats them differently.
rng = np.random.default_rng(0)
shift = arguments.shift * np.array([1, 1, 0, 0, 0])
groups = {"group1": rng.normal(shift, size=(100, 5)), "group2": rng.normal(-shift, size=(100, 5))}


def rate_difference(policy, n_tasks):
    """The largest difference of an action's rates between the groups, per task, (B,)."""
    played = [policy.scores(np.stack([group] * n_tasks)).argmax(axis=2) for group in groups.values()]
    rates = [(actions[..., None] == np.arange(10)).mean(axis=1) for actions in played]  # (B, A) each
    return np.abs(rates[0] - rates[1]).max(axis=1)


# The oracles: fitted to the complete tables of the validation split; rewards are the true expected ones.
tasks = gents_gym.make_tasks("synthetic", horizon=arguments.horizon).sample(0, range(arguments.tasks), "validation")
policies = {"unconstrained": gents_gym.make_policy("logistic")}
for epsilon in (0.2, 0.1, 0.05, 0.02, 0.0):
    policies[f"ε = {epsilon}"] = gents_gym.make_policy("constrained", epsilon=epsilon, **groups)
free = None
for name, policy_class in policies.items():
    policy = policy_class.fit(tasks.contexts, tasks.outcomes)
    played = policy.scores(tasks.contexts).argmax(axis=2)
    reward = np.take_along_axis(tasks.means, played[..., None], axis=2).mean(axis=(1, 2))  # (B,)
    free = reward if free is None else free
    price, error = (free - reward).mean(), (free - reward).std(ddof=1) / np.sqrt(len(reward))
    largest = rate_difference(policy, len(tasks)).max()
    print(f"{name:<14} reward {reward.mean():.4f}, price {price:.4f} ± {error:.4f}, largest difference {largest:.2f}")

# TS-Gen online: the policy fitted at each decision keeps the constraint; regret is against the unconstrained oracle.
envs = gym.make_vec("gents_gym/Synthetic-v0", num_envs=arguments.tasks, horizon=arguments.horizon, split="validation")
for name in ("unconstrained", "ε = 0.05"):
    record = gents_gym.rollout(envs, gents_gym.make_agent("ts-gen", policy=policies[name], m=32), seed=0)
    found = record.summary()["expected"]
    print(f"ts-gen(m=32), {name:<14} expected regret {found['mean']:6.1f} ± {found['se']:.1f}")
