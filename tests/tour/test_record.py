import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import record
from library_tour.runner import Outcome
from library_tour.stop import Bars, Curve, Film, Limit, Result, Row, Timeline


def outcome(result: Result) -> Outcome:
    return Outcome("idea", "What it shows", None, "", 1.23456, "passed", result)


def test_the_environment_names_versions_driver_device_and_date():
    environment = record.environment(cuda.Device(0))
    assert {"python", "numpy", "cuda-bindings"} <= set(environment["versions"])
    assert environment["driver"]["cuda"].startswith("13.")
    assert environment["device"]["name"] == cuda.Device(0).name
    assert environment["date"].endswith("+00:00")


def test_rows_limit_and_pictures_are_recorded_and_a_nan_as_null():
    pictures = [
        Curve("c", "x", "y", {"l": [(1, 2), (math.nan, math.nan)]}, "x", Limit("link", rate=55.0)),  # a gap
        Bars("b", "GB/s", {"a": {"few": 1.0}}),
        Timeline("t", {"copy": [(0.0, 1.5)]}),
        Film("f", [np.zeros((2, 2))] * 3, [""] * 3),
    ]
    tables = {"Others": [Row("b", {"ms": math.nan})]}
    result = Result([Row("a", {"ms": 1.5})], Limit("link", rate=55.0), pictures=pictures, tables=tables)
    [stop] = record.record({"date": "today"}, [outcome(result)])["stops"]
    assert stop["rows"] == [{"name": "a", "values": {"ms": 1.5}, "holds": None, "note": ""}]
    assert stop["tables"] == {"Others": [{"name": "b", "values": {"ms": None}, "holds": None, "note": ""}]}
    assert stop["limit"] == {"name": "link", "unit": "GB/s", "rate": 55.0}
    assert stop["pictures"] == [
        {
            "kind": "curve", "name": "c", "x": "x", "y": "y", "logarithmic": "x",
            "lines": {"l": [[1, 2], [None, None]]},
            "line": {"name": "link", "unit": "GB/s", "rate": 55.0},
        },
        {"kind": "bars", "name": "b", "unit": "GB/s", "bars": {"a": {"few": 1.0}}, "line": None},
        {"kind": "timeline", "name": "t", "unit": "ms", "lanes": {"copy": [[0.0, 1.5]]}},
        {"kind": "film", "name": "f", "frames": 3},
    ]  # fmt: skip  # a record in few lines


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
