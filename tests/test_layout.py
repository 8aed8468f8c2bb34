"""The folders read in the order in which data flows: who may import whom."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gents_gym

ROOT = Path(gents_gym.__file__).parent
# Anyone may import these.
LEAVES = {"checks", "files", "likelihoods", "modules", "numerics", "parquet", "randomness", "registry"}
LEAVES |= {"schema", "specs"}
COMMON = LEAVES | {"types", "construct"}
ALLOWED = {  # beside itself
    "checks": set(),
    "files": {"checks"},
    "likelihoods": {"checks"},
    "numerics": set(),
    "randomness": {"checks"},
    "registry": set(),
    "start": set(),
    "modules": {"checks"},
    "parquet": set(),
    "schema": set(),
    "specs": {"checks"},
    "taskfile": {"checks", "files", "registry", "specs"},
    "types": {"checks", "files", "likelihoods", "taskfile"},
    "construct": LEAVES | {"types"},
    "tasks": LEAVES | {"types"},
    "envs": COMMON | {"tasks"},
    "models": COMMON,
    "training": COMMON | {"tasks", "models", "gents_gym"},
    "policies": COMMON,
    "agents": COMMON | {"models", "policies"},
    "evaluation": COMMON | {"envs", "models", "policies", "gents_gym"},
    "report": LEAVES | {"types", "evaluation"},
    "experiments": COMMON | {"models", "training", "evaluation", "report"},
    "bench": COMMON | {"tasks", "envs", "models", "training", "policies", "agents", "evaluation"},
    "testing": COMMON | {"envs", "models", "evaluation"},
    "cli": COMMON | {"tasks", "models", "training", "evaluation", "report", "experiments", "bench", "gents_gym"},
    "__init__": COMMON | {"envs", "evaluation", "start", "testing"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gents_gym":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.replace("gents_gym.", "") for alias in node.names if "gents_gym" in alias.name)


MODULES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    found = {name.split(".")[0] for name in imports(path)} - {part}
    assert found <= ALLOWED[part], f"{path} imports {sorted(found - ALLOWED[part])}"


def test_every_rule_is_of_something():
    parts = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in MODULES}
    assert parts == ALLOWED.keys()


def test_storage_draws_nothing():
    drawing = [path.name for path in (ROOT / "evaluation").rglob("*.py") if "matplotlib" in path.read_text()]
    assert drawing == []


def test_the_top_level_links_lead_into_the_package():
    top = ROOT.parent
    if not (top / "pyproject.toml").exists():
        pytest.skip("an installed package has no top level")
    assert (top / "agents").is_symlink()
    assert (top / "agents").resolve() == ROOT / "agents"
    assert (top / "registry.py").is_symlink()
    assert (top / "registry.py").resolve() == ROOT / "registry.py"


HEAVY = {"joblib", "matplotlib", "numba", "pandas", "PIL", "pyarrow", "scipy", "sklearn", "torch", "transformers"}


@pytest.mark.parametrize("statement", ["import gents_gym", "import gents_gym.cli.program", "import gents_gym.testing"])
def test_importing_is_light(statement):
    """What is heavy is loaded when it is used."""
    script = f"import sys; {statement}; print(sorted({HEAVY} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_links_in_the_documentation_lead_somewhere():
    top = Path(__file__).parent.parent
    pages = [top / "README.md", top / "CONTRIBUTING.md", top / "SECURITY.md", *top.glob("docs/**/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text())]
    broken = [f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert len(links) > 30
    assert not broken
