import hashlib
import json
import subprocess

import pytest

import gents_gym
from gents_gym.evaluation import sources
from gents_gym.evaluation.sources import code_hashes, commit


@pytest.fixture(autouse=True)
def theirs(tmp_path, monkeypatch):
    (tmp_path / "their_base.py").write_text("class Base:\n    pass\n")
    (tmp_path / "their_package").mkdir()
    (tmp_path / "their_package" / "__init__.py").write_text("from their_package.inner import Mine\n")
    (tmp_path / "their_package" / "inner.py").write_text("from their_base import Base\nclass Mine(Base):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("their_base", "their_package", "their_package.inner"):
        monkeypatch.delitem(sources.sys.modules, name, raising=False)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("linucb(alpha=2.0)", []),
        ("gents_gym.agents.linucb:LinUCB", []),
        ("collections:OrderedDict", []),
        ("their_base:Base(x=1)", ["their_base"]),
        ("their_package:Mine", ["their_base", "their_package", "their_package.inner"]),
        ("per-task(agent=their_base:Base)", ["their_base"]),
        ("ts-gen(policy='their_base:Base')", ["their_base"]),
        ("their_base:their/Env-v0", ["their_base"]),
        ("mine(title='a note: nothing.of:mine, c:/temp')", []),
        ("registered", ["their_base"]),
    ],
)
def test_what_a_spec_names_is_hashed(spec, names, monkeypatch):
    monkeypatch.setattr(sources, "agent_ids", lambda: {"registered": "their_base:Base"})
    assert list(code_hashes(spec)) == names


def test_an_edit_shows(tmp_path):
    before = code_hashes("their_base:Base", "linucb")
    assert before == {"their_base": sha256(tmp_path / "their_base.py")}
    (tmp_path / "their_base.py").write_text("class Base:\n    x = 1\n")
    assert code_hashes("their_base:Base") == {"their_base": sha256(tmp_path / "their_base.py")} != before
    (tmp_path / "their_base.py").unlink()
    assert code_hashes("their_base:Base") == {}


def test_another_corpus_in_the_same_folder_shows(tmp_path):
    spec = f"gents_gym/News-v0(corpus={tmp_path})"
    assert code_hashes(spec) == {}
    (tmp_path / "manifest.json").write_text(json.dumps({"sha256": {}}))
    assert code_hashes(spec) == {str(tmp_path): sha256(tmp_path / "manifest.json")}


def test_another_model_that_tasks_are_drawn_from_shows(tmp_path):
    spec = f"gents_gym/Imagined-v0(model={tmp_path})"
    assert code_hashes(spec) == {}
    (tmp_path / "config.json").write_text(json.dumps({"sha256": {}}))
    assert code_hashes(spec) == {str(tmp_path): sha256(tmp_path / "config.json")}
    assert code_hashes(f"greedy(model={tmp_path})") == {}  # it is among the agent's weights


def test_a_changed_checkout_has_another_commit(monkeypatch, tmp_path):
    path = tmp_path / "gents_gym" / "__init__.py"
    path.parent.mkdir()
    path.write_text("x = 1\n")

    def git(*arguments):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init")
    git("add", "gents_gym")
    git("commit", "-m", "one")
    monkeypatch.setattr(gents_gym, "__file__", str(path))
    head = git("rev-parse", "HEAD")
    (tmp_path / "notes.txt").write_text("mine")
    assert commit() == head
    found = set()
    for text in ("x = 2\n", "x = 3\n", "x = 2\n"):
        path.write_text(text)
        found.add(commit())
    assert len(found) == 2
    assert all(each.startswith(f"{head}+") for each in found)


def test_a_package_without_checkout_or_git_has_no_commit(monkeypatch, tmp_path):
    monkeypatch.setattr(gents_gym, "__file__", str(tmp_path / "gents_gym" / "__init__.py"))
    assert commit() is None
    (tmp_path / ".git").mkdir()
    assert commit() is None  # git finds nothing there
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit() is None


def test_another_data_set_in_the_same_file_shows(tmp_path):
    path = tmp_path / "table.csv"
    spec = f"gents_gym/Classification-v0(dataset='{path}', target=y)"
    assert code_hashes(spec) == {}
    path.write_text("x,y\n1,a\n")
    assert code_hashes(spec) == {str(path): sha256(path)}
    assert code_hashes("gents_gym/Classification-v0(dataset=iris)") == {}
