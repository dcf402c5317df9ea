import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import record
from library_tour.runner import Outcome
from library_tour.stop import Curve, Film, Result, Row


def outcome(result: Result) -> Outcome:
    return Outcome("idea", "What it shows", None, "", 1.23456, "passed", result)


def test_the_environment_names_versions_driver_device_and_date():
    environment = record.environment(cuda.Device(0))
    assert {"python", "numpy", "cuda-bindings"} <= set(environment["versions"])
    assert environment["driver"]["cuda"].startswith("13.")
    assert environment["device"]["name"] == cuda.Device(0).name
    assert environment["date"].endswith("+00:00")


def test_a_nan_is_recorded_as_null_and_a_film_by_the_number_of_its_frames():
    gap = Curve("c", "x", "y", {"l": [(1, 2), (math.nan, math.nan)]})
    result = Result([Row("a", {"ms": math.nan})], pictures=[gap, Film("f", [np.zeros((2, 2))] * 3, [""] * 3)])
    [stop] = record.record({"date": "today"}, [outcome(result)])["stops"]
    assert stop["rows"] == [{"name": "a", "values": {"ms": None}, "holds": None, "note": ""}]
    curve, film = stop["pictures"]
    assert curve["lines"] == {"l": [[1, 2], [None, None]]}
    assert film == {"kind": "film", "name": "f", "frames": 3}


def test_numpys_scalars_are_written_and_what_json_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    path = tmp_path / "run.json"
    for value, error in ((object(), TypeError), (math.nan, ValueError)):
        with pytest.raises(error, match=r"hold a object|JSON"):
            record.write(path, {"thing": value})
    assert not path.exists()
    record.write(path, {"holds": np.True_, "rate": np.float32(0.5), "side": np.int64(3)})
    assert json.loads(path.read_text()) == {"holds": True, "rate": 0.5, "side": 3}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_checkout_has_its_commit_unless_another_is_told_and_tells_of_changes(tmp_path, monkeypatch):
    monkeypatch.delenv(record.COMMIT_VARIABLE, raising=False)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert record.commit(tmp_path) is None
    git("init")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    assert record.commit(tmp_path) is None
    git("commit", "-m", "one")
    assert record.commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "file").write_text("two")
    assert record.commit(tmp_path) == git("rev-parse", "HEAD") + "-dirty"
    monkeypatch.setenv(record.COMMIT_VARIABLE, "0123abc")
    assert record.commit(tmp_path) == "0123abc"
