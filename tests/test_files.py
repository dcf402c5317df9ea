"""Reading a file that a caller names: regular files only, and no more of them than allowed."""

from __future__ import annotations

import errno

import pytest

from cudart_py.files import read_file


def test_a_folder_is_the_systems_own_error(tmp_path):
    with pytest.raises(IsADirectoryError):
        read_file(tmp_path)


def test_a_file_longer_than_allowed_is_not_read(tmp_path):
    path = tmp_path / "long"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ValueError, match="has 1099511627776 bytes, more than 100"):
        read_file(path, 100)


def test_a_file_whose_size_the_system_does_not_tell_is_refused():
    with pytest.raises(ValueError, match="the system says that it has 0 bytes"):
        read_file("/proc/self/status")


def test_a_pipe_that_takes_a_files_place_is_refused(tmp_path, python):
    (tmp_path / "file").write_text("content")
    python(
        "import os; from cudart_py.files import read_file\n"
        f"os.chdir({str(tmp_path)!r}); status = os.stat('file'); os.unlink('file'); os.mkfifo('file')\n"
        "os.stat = lambda path, **how: status\n"
        "try: read_file('file')\n"
        "except ValueError as error: assert 'not a regular file' in str(error)\n"
        "else: raise AssertionError('it was read')"
    )


def test_an_empty_file_is_empty(tmp_path):
    (tmp_path / "empty").touch()
    assert read_file(tmp_path / "empty") == b""


def test_a_missing_file_is_the_systems_own_error(tmp_path):
    with pytest.raises(OSError, match="missing") as caught:
        read_file(tmp_path / "missing")
    assert caught.value.errno == errno.ENOENT
