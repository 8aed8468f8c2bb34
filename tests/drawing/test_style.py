import subprocess
import sys

import pytest

from gents_gym import registry
from gents_gym.drawing.style import AGENTS, INK, looks, mix, model_looks


def plain(*agents):
    return looks(dict.fromkeys(agents, False))


def test_agents_look_different_from_each_other():
    privileged = {str(i): i % 6 == 0 for i in range(18)}
    found = looks(privileged)
    assert len(set(found.values())) == 18
    assert {agent for agent, look in found.items() if look.color == INK} == {a for a, p in privileged.items() if p}
    assert all(look.dash for agent, look in found.items() if privileged[agent])


def test_an_agent_keeps_its_color_in_every_picture():
    alone = plain("ts-gen")["ts-gen"]
    crowd = plain("mine:A", "linucb", "ts-gen(m=5)", "ts-gen", "zzz", "greedy")
    assert crowd["ts-gen"] == alone
    assert alone.color == AGENTS["ts-gen"]
    assert plain("mine:A")["mine:A"] == plain("mine:A", "linucb", "lints")["mine:A"]
    reverse = plain(*reversed(crowd))
    assert reverse == crowd


def test_color_says_the_agent_and_dash_the_model():
    names = [f"{agent}(model=news-{model})" for agent in ("ts-gen", "greedy") for model in ("filter", "paper", "mine")]
    found = plain(*names)
    for i in range(3):
        assert found[names[i]].dash == found[names[i + 3]].dash
    assert len({found[name].dash for name in names}) == 3
    assert len({found[name].color for name in names}) == 2
    assert found[names[0]].dash == plain("ts-gen(model=synthetic-filter)")["ts-gen(model=synthetic-filter)"].dash


def test_other_options_are_shades():
    found = plain("lints", "lints(prior=fitted)")
    assert found["lints"].color == AGENTS["lints"]
    assert found["lints"].dash == found["lints(prior=fitted)"].dash
    assert found["lints(prior=fitted)"].color != AGENTS["lints"]


def test_registered_agents_have_colors_that_differ():
    found = plain(*registry.AGENTS)
    assert len({look.color for look in found.values()}) >= min(len(found), 16)
    assert {look.color for look in plain(*AGENTS).values()} == {*AGENTS.values()}
    assert len({*AGENTS.values()}) == len(AGENTS)


def test_models_have_looks_of_their_own():
    found = model_looks(["synthetic-filter", "synthetic-paper", "exact", "a/b"])
    assert len(set(found.values())) == 4
    assert found["exact"].color == INK


def test_nine_models_have_nine_colors():
    assert len({look.color for look in model_looks([f"synthetic-filter-{n}" for n in range(9)]).values()}) == 9


def test_dark_colors_are_lifted_off_a_dark_page():
    found = looks({"oracle": True, "ts-gen": False, "ts-gen(m=1)": False, "gen-ucb": False})
    assert all(min(int(look.lifted[i : i + 2], 16) for i in (3, 5)) > 80 for look in found.values())
    assert found["gen-ucb"].lifted == found["gen-ucb"].color
    assert len({look.lifted for look in found.values()}) == 4


@pytest.mark.parametrize(("share", "color"), [(0, "#102030"), (1, "#FFFFFF"), (0.5, "#889098")])
def test_mixed_colors(share, color):
    assert mix("#102030", "#FFFFFF", share) == color


def test_looks_do_not_depend_on_the_process():
    script = "from gents_gym.drawing.style import looks; print(looks({'mine:A': False, 'x(model=m)': True}))"
    shown = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(shown) == 1
