import ast
from itertools import pairwise
from pathlib import Path

import gents_gym
from gents_gym.words import count


def test_counts():
    assert [count(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]


def test_numbers_of_tasks_are_written_by_count():
    """An f-string with a value before "tasks" could say "1 tasks"; the exceptions are limits and larger numbers."""
    found = {}
    for path in Path(gents_gym.__file__).parent.rglob("*.py"):
        parts = [node.values for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.JoinedStr)]
        pairs = [pair for values in parts for pair in pairwise(values)]
        found[path.parent.name, path.name] = sum(
            isinstance(one, ast.FormattedValue) and isinstance(two, ast.Constant) and two.value.startswith(" tasks")
            for one, two in pairs
        )
    allowed = {
        ("calibration", "card.py"): 1,
        ("cli", "calibration.py"): 1,
        ("evaluation", "grid.py"): 2,
        ("report", "comparison.py"): 1,
        ("testing", "distribution.py"): 1,
    }
    assert {place: n for place, n in found.items() if n} == allowed
