"""Tests that folders import each other only in the order in which data flows."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gents_gym

ROOT = Path(gents_gym.__file__).parent
TESTS = Path(__file__).parent
# Anyone may import these.
LEAVES = {"checks", "files", "likelihoods", "modules", "numerics", "parquet", "randomness", "registry"}
LEAVES |= {"drawing", "schema", "seals", "specs", "words"}
COMMON = LEAVES | {"types", "construct"}
ALLOWED = {  # beside itself
    "checks": set(),
    "drawing": {"checks", "specs"},
    "files": {"checks"},
    "likelihoods": {"checks"},
    "numerics": set(),
    "randomness": {"checks"},
    "registry": set(),
    "start": set(),
    "modules": {"checks"},
    "parquet": set(),
    "schema": set(),
    "seals": {"checks", "files"},
    "specs": {"checks"},
    "words": set(),
    "taskfile": {"checks", "files", "registry", "seals", "specs"},
    "types": {"checks", "files", "likelihoods", "taskfile"},
    "construct": LEAVES | {"types"},
    "theory": COMMON | {"models", "policies", "agents", "training", "evaluation"},
    "logs": LEAVES | {"types"},
    "tasks": LEAVES | {"types"},
    "envs": COMMON | {"tasks"},
    "models": COMMON,
    "training": COMMON | {"logs", "tasks", "models", "gents_gym"},
    "policies": COMMON,
    "agents": COMMON | {"models", "policies"},
    "evaluation": COMMON | {"envs", "models", "policies", "gents_gym"},
    "calibration": COMMON | {"models"},
    "report": LEAVES | {"types", "evaluation"},
    "live": COMMON | {"logs", "models"},  # agents by their ids alone
    "offline": COMMON | {"logs", "models", "report"},
    "inspection": COMMON | {"agents", "evaluation", "report"},
    "tuning": COMMON | {"models", "agents", "evaluation", "report"},
    "experiments": COMMON | {"models", "training", "evaluation", "report", "tuning"},
    "bench": COMMON | {"tasks", "envs", "models", "training", "policies", "agents", "evaluation", "live"},
    "testing": COMMON | {"envs", "models", "evaluation"},
    "cli": COMMON
    | {"tasks", "models", "training", "evaluation", "report", "experiments"}
    | {"bench", "calibration", "inspection", "live", "logs", "offline", "theory", "tuning", "gents_gym"},
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


TESTED_ELSEWHERE = {  # modules without a test file of their own name, and the file that tests them
    "agents/distilled.py": "tuning/test_distill.py",
    "agents/lints.py": "agents/test_linear.py",
    "agents/linucb.py": "agents/test_linear.py",
    "agents/oracle.py": "evaluation/test_regret.py",
    "agents/random.py": "agents/test_contract.py",
    "bench/": "bench/test_benchmarks.py",
    "calibration/config.py": "calibration/test_calibrate.py",
    "calibration/follow.py": "calibration/test_predictions.py",
    "calibration/given.py": "calibration/test_calibrate.py",
    "calibration/record.py": "calibration/test_card.py",
    "cli/": "cli/test_program.py",
    "drawing/board.py": "drawing/test_names.py",
    "envs/given.py": "envs/test_bandit.py",
    "envs/mail_kernel.py": "envs/test_mail.py",
    "envs/streams.py": "envs/test_bandit.py",
    "envs/vector.py": "envs/test_bandit.py",
    "evaluation/sealed.py": "evaluation/test_store.py",
    "experiments/": "experiments/test_reproduce.py",
    "inspection/reasons.py": "inspection/test_record.py",
    "live/store.py": "live/test_live.py",
    "live/streams.py": "live/test_live.py",
    "logs/describe.py": "cli/test_train.py",
    "logs/encoding.py": "logs/test_record.py",
    "logs/faults.py": "logs/test_check.py",
    "logs/roles.py": "logs/test_record.py",
    "logs/table.py": "logs/test_record.py",
    "models/notes.py": "live/test_live.py",
    "models/categorical_kernel.py": "models/test_filter_categorical.py",
    "models/coefficients.py": "models/test_exact.py",
    "models/filter_state.py": "models/test_forgetting.py",
    "models/joint_posterior.py": "models/test_joint.py",
    "models/picked.py": "models/test_contexts.py",
    "models/filter_bernoulli.py": "models/test_filter_kernel.py",
    "models/filter.py": "models/test_sequence.py",
    "models/paper.py": "models/test_sequence.py",
    "models/transformer_cache.py": "models/test_transformer_belief.py",
    "offline/config.py": "offline/test_answers.py",
    "offline/imagined.py": "offline/test_answers.py",
    "offline/overlap.py": "offline/test_answers.py",
    "offline/page.py": "offline/test_answers.py",
    "offline/study.py": "offline/test_answers.py",
    "offline/trained.py": "cli/test_offline.py",
    "offline/verdicts.py": "offline/test_answers.py",
    "policies/binary.py": "policies/test_logistic.py",
    "policies/least_squares_kernel.py": "policies/test_least_squares.py",
    "policies/logistic_kernel.py": "policies/test_logistic.py",
    "policies/mlp_kernel.py": "policies/test_mlp.py",
    "policies/table.py": "policies/test_estimator.py",
    "policies/tilts.py": "policies/test_constrained.py",
    "registry.py": "test_construct.py",
    "report/template.py": "report/test_report.py",
    "tasks/headlines/config.py": "tasks/headlines/test_prepare.py",
    "testing/believer.py": "testing/test_beliefs.py",
    "testing/completions.py": "testing/test_beliefs.py",
    "testing/contract.py": "testing/test_agent.py",
    "testing/copies.py": "testing/test_beliefs.py",
    "testing/distribution.py": "testing/test_vector_env.py",
    "testing/draws.py": "testing/test_beliefs.py",
    "testing/player.py": "testing/test_agent.py",
    "testing/privilege.py": "testing/test_agent.py",
    "testing/tables.py": "testing/test_vector_env.py",
    "testing/watched.py": "testing/test_vector_env.py",
    "theory/figures.py": "cli/test_bounds.py",
    "tuning/distill_config.py": "tuning/test_distill.py",
}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_has_its_tests(path):
    part = path.relative_to(ROOT)
    if path.name in ("__init__.py", "__main__.py"):
        return  # names that are gathered, and a call
    named = TESTS / part.parent / f"test_{part.name}"
    elsewhere = (TESTED_ELSEWHERE.get(key) for key in (part.as_posix(), f"{part.parts[0]}/"))
    assert named.exists() or any(other is not None for other in elsewhere), f"{part} has no tests: write {named}"


def test_tests_elsewhere_are_there():
    for module, tests in TESTED_ELSEWHERE.items():
        assert (ROOT / module).exists(), f"{module} is gone"
        assert (TESTS / tests).exists(), f"{tests} is gone"


ASKS = {"hasattr", "getattr", "isinstance", "issubclass", "type", "callable", "vars", "dir"}
OF_A_MODEL = re.compile("model|belief|kernel", re.IGNORECASE)
# Of gents_gym.models: models by name, context models, what any belief can, tuned files, networks on any belief.
USABLE = {"load", "contexts", "ledger", "lookahead", "tuned", "distilled"}


def probes(source):
    """Yield places where an agent's source checks what its model is, instead of asking the model."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gents_gym.models"):
            names = node.module.split(".")[2:] or [alias.name for alias in node.names]
            yield from (f"line {node.lineno}: imports {name}" for name in names[:1] if name not in USABLE)
        elif isinstance(node, ast.Call):
            asked = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of_inspect = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "inspect"
            about = " ".join(ast.unparse(part) for part in node.args)
            if (asked in ASKS or of_inspect) and OF_A_MODEL.search(about):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Match) and OF_A_MODEL.search(ast.unparse(node.subject)):
            yield f"line {node.lineno}: match {ast.unparse(node.subject)}"
        elif isinstance(node, ast.Attribute) and node.attr in ("__class__", "__dict__"):
            yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ExceptHandler) and node.type and "AttributeError" in ast.unparse(node.type):
            yield f"line {node.lineno}: except {ast.unparse(node.type)}"


@pytest.mark.parametrize("path", sorted((ROOT / "agents").glob("*.py")), ids=lambda path: path.name)
def test_agents_do_not_probe_models(path):
    assert list(probes(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "hasattr(self.model, 'impute')",
        "getattr(model, 'maps', None)",
        "isinstance(self._held.model, FilterModel)",
        "x = type(model) is PaperModel",
        "inspect.signature(self.model.begin)",
        "callable(belief.variance)",
        "match self.model:\n    case Filter(): pass",
        "try:\n    model.bank\nexcept AttributeError:\n    pass",
        "model.__class__",
        "from gents_gym.models.filter import FilterModel",
        "from gents_gym.models import exact",
    ],
)
def test_a_probe_is_found(source):
    assert list(probes(source))


def test_asking_other_things_is_no_probe():
    source = "from gents_gym.models.load import resolve_model\nisinstance(policy, str)\nself.model.begin(info, rngs)"
    assert list(probes(source)) == []


def test_playing_and_storing_draw_nothing():
    """Only evaluation/pictures.py needs Matplotlib, and only code that draws imports it."""
    drawing = set()
    for path in (ROOT / "evaluation").rglob("*.py"):
        for node in ast.parse(path.read_text()).body:  # not inside functions
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            heavy = (
                "matplotlib",
                "gents_gym.evaluation.pictures",
                "gents_gym.drawing.canvas",
                "gents_gym.drawing.board",
            )
            drawing |= {path.name for name in names if name.startswith(heavy)}
    assert drawing == {"pictures.py"}


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
