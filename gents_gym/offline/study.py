"""Compares the estimators with the truth, on logs that a known policy made in the synthetic setting.

Run it by ``python -m gents_gym.offline.study``; docs/offline.md has its table.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from gents_gym.construct import make_tasks
from gents_gym.logs.record import Logs
from gents_gym.offline.answers import agent_maker, evaluate_offline
from gents_gym.offline.config import OfflineConfig
from gents_gym.offline.verdicts import Answer
from gents_gym.randomness import stream
from gents_gym.types import Agent, TaskInfo, Tasks

UNIFORM = 0.5  # share of uniform play in the logged policy

# With 2 votes instead of 32, the probabilities of TS-Gen are noisier but right on average, and the study is quicker.
LEARNERS = ["ts-gen(m=64, votes=2)", "greedy", "linucb"]


@dataclass(frozen=True)
class Study:
    """Sizes of a study."""

    tasks: int = 10
    """Tasks, each with actions of its own."""
    logs: int = 20
    """Logs of each task."""
    rows: int = 300
    """Rows of a log."""
    n_actions: int = 5
    """Actions of a task."""
    orders: int = 4
    """Orders in which agents that learn play a log."""
    seed: int = 0
    """Seed of tasks and logged policies."""


@dataclass(frozen=True)
class Miss:
    """How far one estimate is from the truth."""

    policy: str
    method: str
    error: float  # estimate less truth
    half: float  # half the width of the 95 % interval


class Linear:
    """A fixed policy: softmax of a linear score of contexts, mixed with uniform play; it draws or plays the best."""

    def __init__(self, coefficients: np.ndarray, temperature: float, uniform: float = 0.0) -> None:
        """Take coefficients (D, A); a temperature of 0 plays the best."""
        self.coefficients, self.temperature, self.uniform = coefficients, temperature, uniform

    def probabilities(self, context: np.ndarray) -> np.ndarray:
        """Return the probabilities of actions, (B, D) to (B, A)."""
        scores = context.astype(np.float64) @ self.coefficients
        if self.temperature == 0:
            shares = np.eye(scores.shape[1])[scores.argmax(axis=1)]
        else:
            shares = np.exp((scores - scores.max(axis=1, keepdims=True)) / self.temperature)
            shares /= shares.sum(axis=1, keepdims=True)
        return (1 - self.uniform) * shares + self.uniform / scores.shape[1]

    def reset(self, info: TaskInfo, rngs: Sequence[np.random.Generator]) -> None:
        """Face B new tasks."""
        self._rngs = rngs

    def act(self, context: np.ndarray) -> np.ndarray:
        """Return the actions (B,)."""
        return draw_actions(self.probabilities(context), np.array([rng.random() for rng in self._rngs]))

    def observe(self, context: np.ndarray, action: np.ndarray, outcome: np.ndarray) -> None:
        """Learn nothing."""


def draw_actions(shares: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return actions (n,) of probabilities (n, A), by uniform numbers (n,)."""
    return (uniform[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)


def make_log(tasks: Tasks, rows: slice, policy: Linear, rng: np.random.Generator) -> Logs:
    """Return the log of a policy on some rows of the first task."""
    contexts, table = tasks.contexts[0, rows], tasks.outcomes[0, rows]
    shares = policy.probabilities(contexts)
    actions = draw_actions(shares, rng.random(len(contexts)))
    each = np.arange(len(contexts))
    return Logs(actions, contexts, table[each, actions], tasks.action_features[0], propensities=shares[each, actions])


def run_study(study: Study, agents: Sequence[str], model: str = "synthetic-filter") -> list[Miss]:
    """Return how far every estimate of every log is from the truth.

    Policies are two fixed ones and the learning ``agents``. The true value of a fixed policy is its mean true reward
    over all contexts of the task. That of a learning agent is the mean true reward of its first decisions, as many as
    replay accepted, over fresh runs.
    """
    distribution = make_tasks("synthetic", n_actions=study.n_actions, horizon=study.logs * study.rows)
    found = []
    for task in range(study.tasks):
        tasks = distribution.sample(study.seed, [task])
        assert tasks.means is not None
        rng = stream(study.seed, "offline", task, "validation")
        scores = rng.normal(size=(2, tasks.context_dim, study.n_actions))
        logging = Linear(scores[0], 1.0, UNIFORM)
        fixed = {"fixed, best of a score": Linear(scores[1], 0.0), "fixed, softmax": Linear(scores[1], 1.0)}
        truth = {
            name: float((policy.probabilities(tasks.contexts[0]) * tasks.means[0]).sum(axis=1).mean())
            for name, policy in fixed.items()
        }
        curves = {name: learning_curve(tasks, study, agent_maker(name, model)()) for name in agents}
        for number in range(study.logs):
            log = make_log(tasks, slice(number * study.rows, (number + 1) * study.rows), logging, rng)
            seed = task * study.logs + number
            one, several = (OfflineConfig(orders=n, seed=seed, tables=0) for n in (1, study.orders))
            for answer in evaluate_offline(log, fixed, model, one).answers:
                found.append(_miss(answer, truth[answer.agent]))
            if not agents:
                continue
            answers = evaluate_offline(log, agents, model, several)
            for answer in answers.answers:
                steps = max(round(answers.overlaps[answer.agent].accepted), 1)
                found.append(_miss(answer, float(curves[answer.agent][steps - 1])))
    return found


def _miss(answer: Answer, true: float) -> Miss:
    return Miss(answer.agent, answer.method, answer.value - true, (answer.high - answer.low) / 2)


def learning_curve(tasks: Tasks, study: Study, agent: Agent) -> np.ndarray:
    """Return the mean true reward of an agent's first t decisions, over runs on all rows of the task, (steps,)."""
    assert tasks.means is not None
    n_steps = min(study.rows, round(2 * study.rows * UNIFORM / study.n_actions))  # replay accepts half as many
    n_runs = tasks.horizon // n_steps
    shape = (n_runs, n_steps, -1)
    arrays = (tasks.contexts, tasks.outcomes, tasks.means)
    contexts, outcomes, means = (part[0, : n_runs * n_steps].reshape(shape) for part in arrays)
    features = np.repeat(tasks.action_features, n_runs, axis=0)
    info = TaskInfo(features, tasks.n_actions, tasks.context_dim, likelihood=tasks.likelihood)
    agent.reset(info, [stream(study.seed, "agent", i, "validation") for i in range(n_runs)])
    runs, rewards = np.arange(n_runs), np.empty((n_runs, n_steps))
    for t in range(n_steps):
        action = np.array(agent.act(contexts[:, t]))
        rewards[:, t] = means[runs, t, action]
        agent.observe(contexts[:, t], action, outcomes[runs, t, action].astype(np.float64))
    return rewards.mean(axis=0).cumsum() / np.arange(1, n_steps + 1)


def summarise(misses: Sequence[Miss]) -> str:
    """Return a Markdown table: bias, root mean squared error and coverage, by policy and method."""
    lines = [
        "| policy | method | bias | RMSE | mean half width | coverage of 95 % intervals |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for policy, method in dict.fromkeys((miss.policy, miss.method) for miss in misses):
        own = [miss for miss in misses if (miss.policy, miss.method) == (policy, method)]
        errors, halves = np.array([miss.error for miss in own]), np.array([miss.half for miss in own])
        bias = f"{errors.mean():+.4f} ± {errors.std(ddof=1) / np.sqrt(len(own)):.4f}"
        covered = f"{100 * (np.abs(errors) <= halves).mean():.1f} %"
        lines.append(
            f"| {policy} | {method} | {bias} | {np.sqrt(np.mean(errors**2)):.4f} | {halves.mean():.4f} | {covered} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in asdict(Study()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default)
    parser.add_argument("--agents", nargs="*", default=LEARNERS)
    given = vars(parser.parse_args())
    learners = given.pop("agents")
    print(summarise(run_study(Study(**given), learners)))
