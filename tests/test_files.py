import os

import pytest

from gents_gym import InputError
from gents_gym.files import new_folder, write_whole


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


def test_new_folders(tmp_path):
    assert new_folder("out", tmp_path / "a" / "b").is_dir()
    assert new_folder("out", tmp_path / "a" / "b").is_dir()
    with pytest.raises(InputError, match="out must be a new or empty folder"):
        new_folder("out", tmp_path / "a")
