"""Whole evaluations: whatever happens on the way, and whoever plays, the same bytes come out."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict

import numpy as np
import pytest

from gents_gym import EvaluationConfig, InputError, evaluate, load_results
from gents_gym.evaluation import harness

SMALL = "gents_gym/Synthetic-v0(horizon=20, n_actions=3)"
AGENTS = ("linucb", "lints(prior=fitted)", "lints", "oracle")

# Evaluates, and tells after each cell; where asked to, dies in the middle of its n-th writing of a file.
SCRIPT = """
import json, os, signal, sys
from gents_gym import EvaluationConfig, evaluate

config, out, workers, deadly = json.loads(sys.argv[1])
fsync, calls = os.fsync, []

def die(descriptor):
    calls.append(descriptor)
    if len(calls) == deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    fsync(descriptor)

os.fsync = die
evaluate(EvaluationConfig(**config), out, workers=workers, on_progress=lambda now: print(now.over, flush=True))
"""


def config(*agents, **changes):
    settings = {"env": (SMALL,), "tasks": 7, "block": 3, "training_actions": 30, **changes}
    return EvaluationConfig(agents, **settings)


def snapshot(out):
    """Return the bytes of all files but the times."""
    return {p.relative_to(out): p.read_bytes() for p in out.rglob("*") if p.is_file() and p.parent.name != "times"}


def start(config, out, workers=1, deadly=None):
    arguments = json.dumps([asdict(config), str(out), workers, deadly])
    command = [sys.executable, "-c", SCRIPT, arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    evaluate(config(*AGENTS), out, workers=1)
    return snapshot(out)


def test_all_agents_play_the_same_tasks_and_progress_is_told(tmp_path):
    told = []
    found = evaluate(config("linucb", "lints", "oracle"), tmp_path, workers=1, on_progress=told.append)
    assert [now.phase for now in told] == ["checking", "starting", *["playing"] * 9, "writing"]
    assert [(now.over, now.total) for now in told[1:-1]] == [(i, 9) for i in range(10)]
    assert told[1].share == 0
    assert told[-1].share == 1
    assert all(0 < now.share < 1 for now in told[2:-2])
    records = list(found.records[SMALL].values())
    earned = [record.rewards + record.regret["oracle"] for record in records]
    assert np.array_equal(earned[0], earned[1])
    assert np.array_equal(earned[1], earned[2])


def test_the_block_size_does_not_show_in_linear_agents(tmp_path):
    specs = ("linucb", "lints", "lints(prior=fitted)", "random")
    one, other = (evaluate(config(*specs, block=n), tmp_path / str(n), workers=1).records[SMALL] for n in (1, 7))
    for spec in specs:
        assert np.array_equal(one[spec].actions, other[spec].actions)


def test_another_oracle_and_another_split(tmp_path):
    plain = evaluate(config("random"), tmp_path / "plain", workers=1)
    other = evaluate(config("random", oracle="logistic(C=0.01)"), tmp_path / "other", workers=1)
    train = evaluate(config("random", split="train"), tmp_path / "train", workers=1)
    one, two = (found.records[SMALL]["random"] for found in (plain, other))
    assert np.array_equal(one.actions, two.actions)
    assert not np.array_equal(one.regret["oracle"], two.regret["oracle"])
    assert not set(plain.task_hashes[SMALL].values()) & set(train.task_hashes[SMALL].values())


def test_news_is_measured_against_its_own_policy_class(tmp_path):
    env = "gents_gym/News-v0(horizon=30, n_actions=3)"
    found = evaluate(config("linucb", "oracle", env=(env,), tasks=2, block=2), tmp_path / "own", workers=1)
    named = evaluate(config("oracle", env=(env,), tasks=2, block=2, oracle="mlp"), tmp_path / "named", workers=1)
    oracle = found.records[env]["oracle"]
    assert not oracle.regret["oracle"].any()
    assert oracle.actions.tolist() == named.records[env]["oracle"].actions.tolist()
    assert load_results(tmp_path / "own").records[env]["linucb"].regret["oracle"].any()


def test_two_workers_give_the_same_bytes_as_one(tmp_path):
    wanted = config("linucb", "lints(prior=fitted)", "ts-gen", tasks=4)
    for workers in (1, 2):
        evaluate(wanted, tmp_path / str(workers), workers=workers)
    assert snapshot(tmp_path / "1") == snapshot(tmp_path / "2")


@pytest.mark.slow
def test_killed_at_random_moments_it_goes_on_to_the_same_bytes(tmp_path, undisturbed):
    rng = np.random.default_rng(0)
    for after in (0, 3, 6):
        process = start(config(*AGENTS), tmp_path, workers=2)
        for line in process.stdout:
            if int(line.split()[0]) >= after:
                break
        time.sleep(rng.uniform(0, 0.1))
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
    done = len(list((tmp_path / "cells").glob("*.parquet")))
    assert 0 < done < 12
    told = []
    evaluate(config(*AGENTS), tmp_path, workers=1, on_progress=lambda now: told.append(now.over))
    assert told[1:-1] == list(range(done, 13))  # no cell was played twice
    assert snapshot(tmp_path) == undisturbed


@pytest.mark.parametrize("deadly", [1, 26])
def test_killed_in_the_middle_of_writing_it_goes_on_to_the_same_bytes(tmp_path, undisturbed, deadly):
    """The manifest is the first file to be written; 12 times and cells follow, then results and tasks."""
    process = start(config(*AGENTS), tmp_path, deadly=deadly)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [p.suffix for p in tmp_path.rglob(".*")] == [".part"]
    evaluate(config(*AGENTS), tmp_path, workers=1)
    assert snapshot(tmp_path) == undisturbed


def test_an_agent_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
    theirs = tmp_path / "their_flaky.py"
    theirs.write_text(
        "import numpy as np\n"
        "class Flaky:\n"
        "    def reset(self, info, rngs):\n"
        "        self.n_tasks = len(info)\n"
        "    def act(self, context):\n"
        "        if self.n_tasks == 1:\n"
        "            raise RuntimeError('one task is too few')\n"
        "        return np.zeros(self.n_tasks, int)\n"
        "    def observe(self, context, action, outcome):\n"
        "        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    out = tmp_path / "out"
    wanted = config("their_flaky:Flaky", "linucb")
    for _ in range(2):  # a cell that failed is tried again
        found = evaluate(wanted, out, workers=2)
        (failure,) = found.failures
        assert failure.startswith("agent 'their_flaky:Flaky' failed on task 6 of")
        assert "at step 1: RuntimeError: one task is too few" in failure
        assert list(found.records[SMALL]) == ["linucb"]
        assert [cell.first for cell in found.missing] == [6]
    assert (out / "results.parquet").exists()
    assert not (out / "tasks.json").exists()
    found = evaluate(config("linucb", "their_flaky:Flaky", tasks=6), out, workers=1)
    assert found.failures == found.missing == ()


def test_a_foreign_environment_has_rewards_alone(tmp_path, monkeypatch):
    (tmp_path / "their_env.py").write_text(
        "import gymnasium as gym, numpy as np\n"
        "from gymnasium import spaces\n"
        "class Coin(gym.Env):\n"
        "    boxes = {'context': spaces.Box(-9, 9, (2,)), 'action_features': spaces.Box(-9, 9, (2, 1))}\n"
        "    observation_space = spaces.Dict(boxes)\n"
        "    action_space = spaces.Discrete(2)\n"
        "    def _see(self):\n"
        "        x = self.np_random.normal(size=2).clip(-9, 9).astype(np.float32)\n"
        "        return {'context': x, 'action_features': np.eye(2, 1, dtype=np.float32)}\n"
        "    def reset(self, *, seed=None, options=None):\n"
        "        super().reset(seed=seed)\n"
        "        self.steps = 0\n"
        "        return self._see(), {}\n"
        "    def step(self, action):\n"
        "        self.steps += 1\n"
        "        return self._see(), float(action), self.steps == 4, False, {}\n"
        "gym.register('their/Coin-v0', Coin)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = evaluate(config("linucb", env=("their_env:their/Coin-v0", SMALL)), tmp_path / "out", workers=1)
    record = found.records["their_env:their/Coin-v0"]["linucb"]
    assert record.rewards.shape == (7, 4)
    assert record.regret == {}
    assert set(found.task_hashes["their_env:their/Coin-v0"].values()) == {None}
    assert load_results(tmp_path / "out").records[SMALL]["linucb"].regret.keys() == {"oracle", "expected", "best"}
    evaluate(config("linucb", env=("their_env:their/Coin-v0", SMALL)), tmp_path / "out", workers=1)


def test_an_agent_that_ends_its_process_does_not_stop_the_others(tmp_path, monkeypatch):
    (tmp_path / "their_end.py").write_text(
        "import os\n"
        "from gents_gym.agents.random import Random\n"
        "class Dying(Random):\n"
        "    def act(self, context):\n"
        "        os._exit(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    told = []
    wanted = config("their_end:Dying", "random", tasks=6)
    found = evaluate(wanted, tmp_path / "out", workers=2, on_progress=told.append)
    assert [(now.over, now.total) for now in told[1:-1]] == [(i, 4) for i in range(5)]
    assert list(found.records[SMALL]) == ["random"]
    assert [cell.agent for cell in found.missing] == ["their_end:Dying"] * 2
    assert len(found.failures) == 2
    for failure in found.failures:
        assert failure.startswith("agent 'their_end:Dying' ended its worker process on tasks ")
    evaluate(config("random", tasks=6), tmp_path / "alone", workers=1)
    alone = {path.name: path.read_bytes() for path in (tmp_path / "alone" / "cells").iterdir()}
    assert alone == {path.name: path.read_bytes() for path in (tmp_path / "out" / "cells").iterdir()}


def test_a_worker_that_dies_once_is_forgiven(tmp_path, monkeypatch):
    (tmp_path / "their_luck.py").write_text(
        "import os\n"
        "from pathlib import Path\n"
        "from gents_gym.agents.random import Random\n"
        "class Unlucky(Random):\n"
        "    def reset(self, info, rngs):\n"
        "        if not (trace := Path(__file__).with_suffix('.txt')).exists():\n"
        "            trace.touch()\n"
        "            os._exit(3)\n"
        "        super().reset(info, rngs)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    found = evaluate(config("their_luck:Unlucky", "random", tasks=3), tmp_path / "out", workers=2)
    assert found.failures == found.missing == ()
    assert (tmp_path / "their_luck.txt").exists()
    records = found.records[SMALL]
    assert np.array_equal(records["random"].actions, records["their_luck:Unlucky"].actions)


def test_workers_that_never_start_are_told(tmp_path, monkeypatch):
    def broken(backend, workers, address):
        raise BrokenProcessPool

    monkeypatch.setattr(harness, "open_backend", broken)
    with pytest.raises(InputError, match="worker processes must start"):
        evaluate(config("random"), tmp_path, workers=2)


OPTIONS = "delay={'geometric': 0.3, 'lost': 0.1}, turnover={'live': 3, 'rate': 0.1}"
LATE = f"gents_gym/Synthetic-v0(horizon=12, n_actions=6, {OPTIONS})"
PLAIN = """
import numpy as np

class Plain:
    def reset(self, info, rngs): pass
    def act(self, context): return np.zeros(len(context), int)
    def observe(self, context, action, outcome): pass

class Member:
    def act(self, observation): return 0
    def observe(self, observation, action, reward): pass
"""


def test_late_outcomes_and_pools_are_evaluated_in_any_blocks(tmp_path):
    one, two = (
        evaluate(
            config("linucb", "lints(prior=fitted)", "greedy", env=(LATE,), block=block),
            tmp_path / str(block),
            workers=1,
        )
        for block in (7, 3)
    )
    assert not one.failures
    for agent, record in one.records[LATE].items():
        again = two.records[LATE][agent]
        assert np.array_equal(record.actions, again.actions)
        assert np.array_equal(record.rewards, again.rewards)
        assert np.array_equal(record.regret["best"], again.regret["best"])


@pytest.mark.parametrize(
    ("options", "agent", "rule"),
    [
        ("delay=1", "plainly:Plain", r"agent must have observe_late\(feedback\) if outcomes arrive late"),
        ("batch=2", "per-task(agent=plainly:Member)", "agent's objects must have observe_late"),
        ("turnover={'live': 2}", "plainly:Plain", r"agent must have act\(context, available\) if only some actions"),
    ],
)
def test_agents_that_lack_a_verb_are_refused_before_anything_is_played(options, agent, rule, tmp_path, monkeypatch):
    (tmp_path / "plainly.py").write_text(PLAIN)
    monkeypatch.syspath_prepend(tmp_path)
    env = f"gents_gym/Synthetic-v0(horizon=5, {options})"
    with pytest.raises(InputError, match=f"agent '.*' cannot play .*: {rule}"):
        evaluate(config("linucb", agent, env=(env,)), tmp_path / "out")
    assert not (tmp_path / "out").exists()
