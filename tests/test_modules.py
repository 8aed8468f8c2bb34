"""Whose imports the current folder serves."""

import sys

import pytest

from gents_gym import InputError
from gents_gym.modules import import_named

PLANTED = "open('pwned', 'w').close()\nraise RuntimeError('planted')\n"
LIBRARY = "try:\n    import planted\nexcept ImportError:\n    planted = None\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with the user's modules and a stray one, and a library's folder on the path."""
    here, library = tmp_path / "here", tmp_path / "library"
    here.mkdir()
    library.mkdir()
    (library / "wanting.py").write_text(LIBRARY)
    (here / "planted.py").write_text(PLANTED)
    (here / "wanting.py").write_text("raise RuntimeError('the folder comes last')\n")
    (here / "my_helper.py").write_text("VALUE = 3\n")
    (here / "my_agents.py").write_text(
        "import wanting\nimport my_helper\ndef late():\n    import my_late\n    return my_late.VALUE\n"
    )
    (here / "my_late.py").write_text("VALUE = 4\n")
    (here / "my_package").mkdir()
    (here / "my_package" / "inner.py").write_text("from my_helper import VALUE\n")
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(library)
    before = set(sys.modules)
    yield here
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_a_users_modules_import_each_other_and_libraries_do_not(here):
    mine = import_named("my_agents")
    assert mine.my_helper.VALUE == 3
    assert mine.wanting.planted is None
    assert mine.late() == 4
    assert import_named("my_package.inner").VALUE == 3
    assert not (here / "pwned").exists()


def test_nothing_else_is_found_in_the_folder(here):
    import_named("my_agents")
    with pytest.raises(ModuleNotFoundError):
        import my_late  # noqa: F401
    with pytest.raises(ModuleNotFoundError):
        import_named("my_nothing")


def test_naming_a_module_of_python_imports_nothing():
    sys.modules.pop("this", None)
    with pytest.raises(InputError, match="it must be in a module outside the standard library, got 'this'"):
        import_named("this")
    assert "this" not in sys.modules
