from __future__ import annotations

import pytest

from library_tour import plots
from library_tour.stop import Curve, Limit, Result, Row

pytest.importorskip("matplotlib")


def test_a_timed_result_is_drawn_as_bars(tmp_path):
    rows = [Row("a", {"ms": 1.0, "GB/s": 50.0, "of limit": 0.5}), Row("b", {"ms": 1.0})]
    files = plots.draw("idea", "What it shows", Result(rows, Limit("link", rate=100.0)), tmp_path)
    assert [file.name for file in files] == ["idea.svg", "idea.png"]
    assert all(file.stat().st_size > 1000 for file in files)


def test_without_rates_there_are_no_bars(tmp_path):
    assert plots.draw("idea", "What it shows", Result([Row("a")], Limit("link")), tmp_path) == []


def test_a_curve_is_a_picture_of_its_own(tmp_path):
    curve = Curve("growth", "x", "y", {"line": [(1, 1), (1024, 4)]}, logarithmic=True)
    files = plots.draw("idea", "What it shows", Result([], curves=[curve]), tmp_path)
    assert [file.name for file in files] == ["idea-growth.svg", "idea-growth.png"]
