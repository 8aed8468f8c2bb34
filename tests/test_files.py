import os
import signal
import subprocess
import sys

import pytest

from gents_gym import InputError
from gents_gym.files import PART, check_file, held, new_folder, write_whole


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_failure_leaves_the_old_file_and_no_traces(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "file", b"old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        path = write_whole(tmp_path / "file", b"new")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "path must be a file, got the folder '"),
        ("a\0b", "path must be a path, got "),
        ("no/where", "path must lie in a folder that exists, got '"),
    ],
)
def test_what_no_file_can_be_written_to(tmp_path, name, message):
    with pytest.raises(InputError, match=message):
        write_whole(f"{tmp_path}/{name}", b"new")
    with pytest.raises(InputError, match="path must be a path, got None"):
        write_whole(None, b"new")
    assert not list(tmp_path.iterdir())


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "theirs").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "theirs").read_bytes() == b"old"
    assert (tmp_path / "link").read_bytes() == b"new"


def test_the_longest_name_can_be_written(tmp_path):
    assert write_whole(tmp_path / ("x" * 255), b"new").read_bytes() == b"new"


def test_a_fifo_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match=r"path must be a regular file, got '.*fifo'"):
        check_file("path", tmp_path / "fifo")


def test_new_folders(tmp_path):
    assert new_folder("out", tmp_path / "a" / "b").is_dir()
    assert new_folder("out", tmp_path / "a" / "b").is_dir()
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        new_folder("out", tmp_path / "a")


def test_a_killed_writers_file_goes_and_others_stay(tmp_path):
    ours, theirs = tmp_path / f".x.abc{PART}", tmp_path / ".film.mkv.part"
    ours.touch()
    theirs.touch()
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        new_folder("out", tmp_path)
    assert ours.exists()  # nothing is touched in a folder that is refused
    theirs.unlink()
    new_folder("out", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_has_one_writer_and_a_killed_one_lets_go(tmp_path):
    script = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from gents_gym.files import held\n"
        "with held('out', Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    with (
        pytest.raises(InputError, match="out must have one writer at a time, got '/"),
        held("out", tmp_path),
    ):
        pass
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with held("out", tmp_path):
        assert not list(tmp_path.iterdir())
    with (
        pytest.raises(InputError, match="out must be a folder that can be read"),
        held("out", tmp_path / "nowhere"),
    ):
        pass
