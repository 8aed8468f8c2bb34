import subprocess
import sys
import textwrap

import numpy as np
import pytest

from gents_gym import InputError, make_agent, make_policy, make_tasks, registry
from gents_gym.agents.lints import LinTS
from gents_gym.construct import parse_spec
from gents_gym.types import TaskDistribution


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("linucb", ("linucb", {})),
        ("lints(prior=fitted)", ("lints", {"prior": "fitted"})),
        ("ts-gen( samples=4, policy=mlp )", ("ts-gen", {"samples": 4, "policy": "mlp"})),
        ("ts-gen(model=synthetic-filter)", ("ts-gen", {"model": "synthetic-filter"})),
        ("a.b:C(x=[1, 2], y='p q', z=None, w=-0.5)", ("a.b:C", {"x": [1, 2], "y": "p q", "z": None, "w": -0.5})),
        (
            "f(x=a.b:C, y=/tmp/m.zip, z='u, v=w', d={'k': (1, 2)})",
            ("f", {"x": "a.b:C", "y": "/tmp/m.zip", "z": "u, v=w", "d": {"k": (1, 2)}}),
        ),
        ("f()", ("f", {})),
        ("f(x=m:C(a=1, b=[2, 3]), y=2)", ("f", {"x": "m:C(a=1, b=[2, 3])", "y": 2})),
        ("f(x=g(y=h(z=1)))", ("f", {"x": "g(y=h(z=1))"})),
        ("sb3(path=model.zip, deterministic=True)", ("sb3", {"path": "model.zip", "deterministic": True})),
    ],
)
def test_specs_are_names_with_literal_options(spec, expected):
    assert parse_spec(spec) == expected


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("lints(fitted)", "options must be named"),
        ("lints(**{})", "options must be named"),
        ("lints(prior=)", "an option's value must be a literal or a word, got 'prior='"),
        ("lints(prior=open('x'))", "an option's value must be a literal or a word"),
        ("lints(prior=[1, 2)", "an option's value must be a literal or a word"),
        ("lints(prior=1, prior=2)", "each once"),
        ("lints(prior=1,)", "options must be named"),
        ("lints(prior=fitted", "a spec must look like"),
        ("", "a spec must look like"),
        ("a b", "a spec must look like"),
        ("f(a=g(b=1)", "an option's value must be a literal or a word"),
        ("f(a=g(h()))", "an option's value must be a literal or a word"),
        ("f(" + "a=f(" * 5000 + ")" * 5001, "an option's value must be a literal or a word"),
        ("f(a=1)(b=2)", "an option's value must be a literal or a word"),
    ],
)
def test_specs_are_never_code(spec, message):
    with pytest.raises(InputError, match=message):
        parse_spec(spec)


def test_agents_by_id_options_and_class():
    assert make_agent("lints(intercept=True)", noise=0.5) == LinTS(intercept=True, noise=0.5)
    assert make_agent("lints(noise=1.0)", noise=0.5).noise == 0.5
    assert isinstance(make_agent("gents_gym.agents.lints:LinTS(noise=1)"), LinTS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("linucbb", r"unknown agent 'linucbb'; did you mean 'linucb'\?"),
        ("qqqqq", r"unknown agent 'qqqqq'; known: .*epsilon-greedy, .*greedy, lints, linucb"),
        ("linucb(alhpa=1)", r"unknown option of agent 'linucb': 'alhpa'; did you mean 'alpha'\?"),
        ("linucb(alpha=-1)", "alpha must be at least 0, got -1"),
        ("linucb(alpha=x)", "alpha must be a number, got 'x'"),
        ("lints(prior=fited)", r"unknown prior 'fited'; did you mean 'fitted'\?"),
        ("lints(noise=0)", "noise must be above 0, got 0"),
        ("per-task", "agent 'per-task' needs the option 'agent'"),
        ("no_such.module:Class", "cannot import agent 'no_such.module:Class': No module named 'no_such'"),
        ("gents_gym.agents.lints:Nope", "cannot import agent .* has no attribute 'Nope'"),
        ("gents_gym.registry:AGENTS", "must name a class or function"),
        ("os:getcwd", "must have reset, act and observe"),
    ],
)
def test_bad_agents(spec, message):
    with pytest.raises(InputError, match=message):
        make_agent(spec)


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
    with pytest.raises(InputError, match=r"unknown option of task distribution 'synthetic': 'n_action'"):
        make_tasks("synthetic", n_action=3)


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
