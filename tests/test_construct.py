import subprocess
import sys
import textwrap

import numpy as np
import pytest

from gents_gym import InputError, make_agent, make_policy, make_tasks, registry
from gents_gym.agents.lints import LinTS
from gents_gym.construct import find, make_object
from gents_gym.types import TaskDistribution


def test_agents_by_id_options_and_class():
    assert make_agent("lints(intercept=True)", noise=0.5) == LinTS(intercept=True, noise=0.5)
    assert make_agent("lints(noise=1.0)", noise=0.5).noise == 0.5
    assert isinstance(make_agent("gents_gym.agents.lints:LinTS(noise=1)"), LinTS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("linucbb", r"unknown agent 'linucbb'; did you mean 'linucb'\?"),
        ("qqqqq", r"unknown agent 'qqqqq'; known: .*epsilon-greedy, .*greedy, .*lints, linucb"),
        ("linucb(alhpa=1)", r"option of agent 'linucb': unexpected keyword argument 'alhpa'; did you mean 'alpha'\?"),
        ("linucb(alpha=-1)", "alpha must be at least 0, got -1"),
        ("linucb(alpha=x)", "alpha must be a number, got 'x'"),
        ("lints(prior=fited)", r"unknown prior 'fited'; did you mean 'fitted'\?"),
        ("lints(noise=0)", "noise must be above 0, got 0"),
        ("per-task", "agent 'per-task' needs the option 'agent'"),
        ("no_such.module:Class", "cannot import agent 'no_such.module:Class': No module named 'no_such'"),
        ("gents_gym.agents.lints:Nope", "cannot import agent .* has no attribute 'Nope'$"),
        ("gents_gym.agents.lints:LinTs", r"has no attribute 'LinTs'; did you mean 'LinTS'\?"),
        ("gents_gym.agents.lints.LinTS", r"unknown agent .*; did you mean 'gents_gym.agents.lints:LinTS'\?"),
        ("gents_gym.registry:AGENTS", "must name a class or function"),
        ("os:getcwd", "cannot import agent 'os:getcwd': it must be in a module outside the standard library"),
        (
            "joblib:os.system(command='touch pwned')",
            "agent 'joblib:os.system' must be defined outside the standard lib",
        ),
        ("subprocess:run(args=['touch', 'pwned'])", "it must be in a module outside the standard library"),
        (
            "gents_gym.files:write_whole(path=pwned, data=b'x')",
            "must name a class, or your own function, got <function",
        ),
        (
            "gents_gym.evaluation.grid:Cell",
            "agent 'gents_gym.evaluation.grid:Cell' must be a class with act, got <class",
        ),
        ("gents_gym.agents.lints:LinTS.act", "must name a class, or your own function"),
    ],
)
def test_bad_agents(spec, message):
    with pytest.raises(InputError, match=message):
        make_agent(spec)


@pytest.mark.parametrize("kind", ["agent", "estimator", "model", "policy class", "task distribution"])
def test_what_cannot_be_what_is_asked_for_is_never_called(kind, tmp_path, monkeypatch):
    """Neither Python's own functions, by whatever way they are reached, nor classes without the methods."""
    called = "open(r'pwned', 'w').close()"
    (tmp_path / "reaching.py").write_text(
        f"import os, pathlib, functools\nclass Wrong:\n    def __init__(self):\n        {called}\n"
        "half = functools.partial(os.mkdir, 'pwned')\n"
    )
    monkeypatch.chdir(tmp_path)
    for spec in (
        "os:mkdir(path=pwned)",
        "reaching:os.mkdir(path=pwned)",
        "reaching:half",
        "reaching:pathlib.Path.touch(self=pwned)",
        "reaching:Wrong",
    ):
        with pytest.raises(InputError, match=rf"{kind} '(os|reaching):.* must be"):
            make_object(kind, spec, {}, {})
    assert not (tmp_path / "pwned").exists()


def test_a_users_function_may_make_an_agent(tmp_path, monkeypatch):
    (tmp_path / "makes_agents.py").write_text(
        "from gents_gym.agents.lints import LinTS\nclass Box:\n    @classmethod\n    def make(cls):\n"
        "        return LinTS()\ndef make(noise=1.0):\n    return LinTS(noise=noise)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert make_agent("makes_agents:make(noise=2.0)").noise == 2
    assert isinstance(make_agent("makes_agents:Box.make"), LinTS)


def test_functions_by_name_are_not_pythons_own():
    for name in ("os:system", "builtins:print", "joblib:os.system"):
        with pytest.raises(InputError, match=f"function '{name}'"):
            find("function", name, {})


def test_every_registered_string_leads_somewhere():
    assert all(isinstance(make_tasks(name), TaskDistribution) for name in registry.TASKS)
    needed = {
        "constrained": {"group1": [[0.0]], "group2": [[1.0]], "epsilon": 0.1},
        "estimator": {"estimator": "sklearn.tree:DecisionTreeClassifier"},
    }
    assert all(hasattr(make_policy(name, **needed.get(name, {})), "fit") for name in registry.POLICIES)


def test_a_reward_function_by_name():
    assert make_tasks("synthetic", reward_fn="numpy:square").reward_fn is np.square
    with pytest.raises(InputError, match=r"unknown reward function 'identty'; did you mean 'identity'\?"):
        make_tasks("synthetic", reward_fn="identty")
    with pytest.raises(InputError, match=r"task distribution 'synthetic': unexpected keyword argument 'n_action'"):
        make_tasks("synthetic", n_action=3)


class Plain:
    """A task distribution without an option for R."""

    def sample(self, seed, indices, split="test"):
        raise NotImplementedError

    def sample_actions(self, seed, indices, n_rows, split="train"):
        raise NotImplementedError


@pytest.mark.parametrize("name", registry.TASKS)
def test_every_registered_task_distribution_takes_a_reward_function(name):
    tasks = make_tasks(name, reward_fn="half").sample(0, range(2))
    assert np.array_equal(tasks.rewards, tasks.outcomes / 2)


def test_a_task_distribution_without_a_reward_function_says_so():
    make_tasks(f"{__name__}:Plain")
    with pytest.raises(InputError, match="takes no reward_fn: give its class the option, and pass it on to Tasks and"):
        make_tasks(f"{__name__}:Plain", reward_fn="half")


def test_another_distribution_adds_agents(tmp_path):
    """A small distribution, installed by pip, brings an agent through the entry-point group."""
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        textwrap.dedent("""
        [build-system]
        requires = ["setuptools"]
        build-backend = "setuptools.build_meta"
        [project]
        name = "their-agents"
        version = "1.0"
        [project.entry-points."gents_gym.agents"]
        their-first = "their_agents:First"
        [tool.setuptools]
        py-modules = ["their_agents"]
        """)
    )
    (source / "their_agents.py").write_text(
        textwrap.dedent("""
        import numpy as np

        class First:
            def __init__(self, action=0):
                self.action = action
            def reset(self, info, rngs):
                self.n_tasks = len(info)
            def act(self, context):
                return np.full(self.n_tasks, self.action)
            def observe(self, context, action, outcome):
                pass
        """)
    )
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", target, source], check=True)
    script = (
        "import gents_gym, gymnasium as gym\n"
        "envs = gym.make_vec('gents_gym/Synthetic-v0', num_envs=2, horizon=3)\n"
        "print(gents_gym.rollout(envs, gents_gym.make_agent('their-first(action=2)')).actions.tolist())\n"
        "try: gents_gym.make_agent('their-frist')\n"
        "except gents_gym.InputError as error: print(error)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(target)}, capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [
        "[[2, 2, 2], [2, 2, 2]]",
        "unknown agent 'their-frist'; did you mean 'their-first'?",
    ]
