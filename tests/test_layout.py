"""The folders read in the order in which data flows: who may import whom."""

import ast
import re
from pathlib import Path

import pytest

import gents_gym

ROOT = Path(gents_gym.__file__).parent
LEAVES = {"checks", "files", "newton", "randomness", "registry", "series"}
ALLOWED = {
    "checks": set(),
    "files": {"checks"},
    "newton": set(),
    "randomness": {"checks"},
    "registry": set(),
    "series": set(),
    "types": {"checks", "files"},
    "construct": LEAVES | {"types"},
    "news": LEAVES | {"types", "news"},
    "tasks": LEAVES | {"types", "news", "tasks"},
    "envs": LEAVES | {"types", "construct", "tasks", "envs"},
    "models": LEAVES | {"types", "models"},
    "training": LEAVES | {"types", "tasks", "models", "training", "gents_gym"},
    "policies": LEAVES | {"types", "construct", "policies"},
    "agents": LEAVES | {"types", "construct", "models", "policies", "agents"},
    "evaluation": LEAVES | {"types", "construct", "envs", "models", "policies", "evaluation", "gents_gym"},
    "testing": LEAVES | {"types", "construct", "envs", "evaluation", "testing"},
}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gents_gym":
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (alias.name.replace("gents_gym.", "") for alias in node.names if "gents_gym" in alias.name)


MODULES = [
    path
    for path in sorted(ROOT.rglob("*.py"))
    if path.name != "cli.py"
    and path.parent.name not in ("bench", "commands", "experiments")
    and path != ROOT / "__init__.py"
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    part = path.relative_to(ROOT).parts[0].removesuffix(".py")
    found = {name.split(".")[0] for name in imports(path)}
    assert found <= ALLOWED[part], f"{path} imports {sorted(found - ALLOWED[part])}"


def test_the_top_level_links_lead_into_the_package():
    top = ROOT.parent
    if not (top / "pyproject.toml").exists():
        pytest.skip("an installed package has no top level")
    assert (top / "agents").is_symlink()
    assert (top / "agents").resolve() == ROOT / "agents"
    assert (top / "registry.py").is_symlink()
    assert (top / "registry.py").resolve() == ROOT / "registry.py"


def test_importing_the_package_is_light():
    """No torch, no scikit-learn: what is heavy is loaded when it is used."""
    import subprocess
    import sys

    script = "import sys, gents_gym; print(sorted({'torch', 'sklearn', 'pandas', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_links_in_the_documentation_lead_somewhere():
    top = Path(__file__).parent.parent
    pages = [top / "README.md", top / "CONTRIBUTING.md", *top.glob("docs/**/*.md")]
    links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text())]
    broken = [f"{page.name}: {link}" for page, link in links if "://" not in link and not (page.parent / link).exists()]
    assert len(links) > 30
    assert not broken
