"""The sdist and the wheel: built, installed apart from the source tree, used from a folder with namesakes."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gents_gym

TOP = Path(gents_gym.__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("dist")
    copy = tmp_path_factory.mktemp("source") / "project"
    files = subprocess.run(["git", "ls-files"], cwd=TOP, capture_output=True, text=True, check=True).stdout.split()
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (TOP / name).is_symlink():
            (copy / name).symlink_to((TOP / name).readlink())
        elif (TOP / name).exists():
            (copy / name).write_bytes((TOP / name).read_bytes())
    # The wheel is built from the sdist, so both are tried.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, copy]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def modules():
    files = (p for p in (TOP / "gents_gym").rglob("*.py") if "__pycache__" not in p.parts)
    folders = ("models/weights", "report/page", "inspection/template", "tasks/headlines/bundled")
    data = (p for folder in folders for p in (TOP / "gents_gym" / folder).rglob("*") if p.is_file())
    return {str(p.relative_to(TOP)) for p in (*files, *data)} | {
        "gents_gym/py.typed",
        "gents_gym/tasks/headlines/grammar.toml",
    }


def test_both_hold_the_whole_package_and_no_global_names(built):
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == modules()
    with tarfile.open(sdist) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert modules() <= inside


@pytest.mark.slow
def test_the_wheel_works_from_a_folder_with_namesakes(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    target, folder = tmp_path / "target", tmp_path / "folder"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "__init__.py").write_text("raise RuntimeError('the folder has agents of its own')")
    (folder / "registry.py").write_text("raise RuntimeError('the folder has a registry of its own')")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", target, wheel], check=True)
    script = (
        "import gents_gym, gymnasium as gym\n"
        "envs = gym.make_vec('gents_gym/Synthetic-v0', num_envs=2, horizon=3)\n"
        "gents_gym.rollout(envs, gents_gym.make_agent('linucb'))\n"
        "gents_gym.load_model('synthetic-filter')\n"
        "gym.make('gents_gym/News-v0').reset(seed=0)\n"
        "print(gents_gym.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, env={"PYTHONPATH": str(target)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(target / "gents_gym" / "__init__.py")
