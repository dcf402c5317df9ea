"""Reading a file that a caller names: regular files only, and no more of them than allowed."""

from __future__ import annotations

import os

import pytest

from cudart_py.files import read_file


def test_a_file_longer_than_allowed_is_not_read(tmp_path):
    path = tmp_path / "long"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ValueError, match="has 1099511627776 bytes, more than 100"):
        read_file(path, 100)


def test_a_file_whose_size_the_system_does_not_tell_is_refused():
    with pytest.raises(ValueError, match="the system says that it has 0 bytes"):
        read_file("/proc/self/status")


def test_a_pipe_that_takes_a_files_place_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("content")
    status = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", lambda path, **how: status)
        with pytest.raises(ValueError, match="not a regular file"):
            read_file(path)


def test_an_empty_file_is_empty_and_a_missing_one_and_a_folder_are_the_systems_own_errors(tmp_path):
    (tmp_path / "empty").touch()
    assert read_file(tmp_path / "empty") == b""
    with pytest.raises(FileNotFoundError, match="missing"):
        read_file(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)
