"""Agents as classes and objects."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest

from gents_gym import InputError, PerTask, evaluate, load_results, make_agent
from gents_gym.agents.lints import LinTS
from gents_gym.agents.linucb import LinUCB
from gents_gym.agents.random import Random
from gents_gym.evaluation.given import name_agents

ENV = "gents_gym/Synthetic-v0(horizon=5, n_actions=3)"
SOURCE = """
from gents_gym.agents.random import Random
class Mine(Random):
    pass
"""


@dataclass
class Constant:
    """Plays the same action always."""

    action: int = 0

    def reset(self, info, rngs):
        self._n_tasks = len(info)

    def act(self, context):
        return np.full(self._n_tasks, self.action)

    def observe(self, context, action, outcome):
        pass


class Single:
    """Plays one task."""

    def act(self, observation):
        return 1


def local():
    """A class that no name leads to, as a notebook's."""

    class Local(Constant):
        pass

    return Local


def test_what_a_spec_stands_for_becomes_it():
    names, given = name_agents([LinUCB, LinUCB(alpha=2.0), "random", Random(), LinTS(prior="fitted")])
    assert names == ("linucb", "linucb(alpha=2.0)", "random", "random", "lints(prior='fitted')")
    assert given == {}
    names, given = name_agents([make_agent("ts-gen", m=5), PerTask("mine:Agent") if False else Constant])
    assert names == ("ts-gen(m=5)", f"{__name__}:Constant")
    assert given == {}


def test_what_no_spec_stands_for_is_sent():
    fitted = Constant(1)
    fitted.extra = np.zeros(3)
    names, given = name_agents([local(), fitted, PerTask(Single)])
    assert names == ("Local", "Constant", "PerTask")
    assert set(given) == set(names)
    names, given = name_agents({"my one": Constant(1), "my two": Constant(2)})
    assert names == ("my one", "my two")
    first, second = (given[name].code[f"object {name}"] for name in names)
    assert first != second
    names, given = name_agents({"mine": Constant(1), "linucb(alpha=2)": "linucb(alpha=2)"})
    assert (names, set(given)) == (("mine", "linucb(alpha=2)"), {"mine"})


def test_classes_and_objects_are_evaluated(tmp_path):
    kind = local()
    found = evaluate([kind, "random", Constant(2)], tmp_path, tasks=3, env=ENV, workers=1)
    assert found.failures == ()
    assert list(found.records[ENV]) == ["Local", "random", f"{__name__}:Constant(action=2)"]
    assert (found.records[ENV]["Local"].actions == 0).all()
    assert (found.records[ENV][f"{__name__}:Constant(action=2)"].actions == 2).all()
    again = evaluate({"Local": kind(action=1)}, tmp_path, tasks=3, env=(ENV,), workers=1)
    assert (again.records[ENV]["Local"].actions == 1).all()  # another object is not the one that was played
    assert list(load_results(tmp_path).records[ENV]) == ["Local", "random", f"{__name__}:Constant(action=2)"]


def test_objects_go_to_other_processes(tmp_path):
    found = evaluate({"one": local()(1), "single": PerTask(Single)}, tmp_path, tasks=4, block=2, env=ENV, workers=2)
    assert found.failures == ()
    assert all((record.actions == 1).all() for record in found.records[ENV].values())


def test_an_edited_module_is_another_object(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    hashes = []
    for version in ("", "# edited\n"):
        (tmp_path / "their_mine.py").write_text(SOURCE + version)
        import their_mine

        agent = their_mine.Mine()
        agent.extra = 1
        hashes.append(name_agents([agent])[1]["Mine"].code["their_mine"])
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ([Constant(1), 3], "agent 'int' must have reset, act and observe"),
        ([Single], "must have reset, act and observe"),
        ([PerTask(Single), PerTask(Single)], "agents must differ by name, got 'PerTask' twice: give names"),
        (
            {"linucb": Constant(1)},
            "an agent's name must have only letters, .* and must not be a known id, got 'linucb'",
        ),
        ({"<b>": Constant(1)}, "an agent's name must have only letters"),
        ({"mine": "linucb"}, "and ids to themselves, got 'linucb' for 'mine': write {'linucb': 'linucb'}"),
        ([], "agents must name at least one agent, got none"),
        ("linucb", "config must be an EvaluationConfig or a list of agents, got 'linucb'"),
    ],
)
def test_bad_agents(tmp_path, agents, message):
    with pytest.raises(InputError, match=message):
        evaluate(agents, tmp_path / "out", tasks=2, env=ENV, workers=1)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_sent(tmp_path):
    held = local()()
    held.lock = threading.Lock()
    with pytest.raises(InputError, match="agent 'held' must be picklable, to be sent to workers"):
        evaluate({"held": held}, tmp_path / "out", tasks=2, env=ENV)
    with pytest.raises(InputError, match=r"unknown option of evaluate.*'taskz'.*did you mean 'tasks'"):
        evaluate(["linucb"], tmp_path / "out", taskz=2)
