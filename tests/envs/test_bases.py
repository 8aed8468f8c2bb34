"""No Gymnasium class is subscripted at run time: some are not generic in the versions that other libraries pin."""

import ast
from pathlib import Path

import pytest

import gents_gym

ROOT = Path(gents_gym.__file__).parent


def subscripted(source):
    """Return what is subscripted at run time of all that comes from Gymnasium."""
    tree = ast.parse(source)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    theirs, lazy = set(), False
    for node in imports:
        from_module = node.module if isinstance(node, ast.ImportFrom) else None
        lazy |= from_module == "__future__" and node.names[0].name == "annotations"
        for name in node.names:
            if (from_module or name.name).split(".")[0] == "gymnasium":
                theirs.add((name.asname or name.name).split(".")[0])
    return [ast.unparse(node) for node in running(tree, lazy) if is_theirs(node, theirs)]


def running(node, lazy):
    """Yield what runs: not what stands under TYPE_CHECKING, and annotations only if they are evaluated."""
    for name, value in ast.iter_fields(node):
        if lazy and name in ("annotation", "returns"):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and name == "body":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from running(child, lazy)


def is_theirs(node, theirs):
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name | ast.Attribute):
        return False
    name = ast.unparse(node.value)
    return name.split(".")[0] in theirs and name.split(".")[-1][:1].isupper()


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_gymnasium_class_is_subscripted_at_run_time(path):
    assert subscripted(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from gymnasium.vector import VectorWrapper\nclass A(VectorWrapper[int]): pass", ["VectorWrapper[int]"]),
        ("import gymnasium as gym\ndef f(env: gym.Env[int, int]): pass", ["gym.Env[int, int]"]),
        ("from __future__ import annotations\nimport gymnasium as gym\ndef f(env: gym.Env[int, int]): pass", []),
        ("from gymnasium import Env\nif TYPE_CHECKING:\n  A = Env[int]\nelse:\n  B = Env[str]", ["Env[str]"]),
        ("from gymnasium import spaces\ndef f() -> spaces.Space[int]: pass", ["spaces.Space[int]"]),
        ("from gymnasium import spaces\nspaces.Dict(a=1)['a']", []),
    ],
)
def test_it_would_be_found(source, found):
    assert subscripted(source) == found
