from __future__ import annotations

import numpy as np
import pytest

from library_tour import plots
from library_tour.stop import Bars, Curve, Film, Limit, Result, Row, Timeline

pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")


def test_a_timed_result_is_drawn_as_bars(tmp_path):
    rows = [Row("a", {"ms": 1.0, "GB/s": 50.0, "of limit": 0.5}), Row("b", {"ms": 1.0})]
    files = plots.draw("idea", "What it shows", Result(rows, Limit("link", rate=100.0)), tmp_path)
    assert [file.name for file in files] == ["idea.svg", "idea.png"]
    assert all(file.stat().st_size > 1000 for file in files)


def test_without_rates_there_are_no_bars(tmp_path):
    assert plots.draw("idea", "What it shows", Result([Row("a")], Limit("link")), tmp_path) == []


def test_a_curve_is_a_picture_of_its_own(tmp_path):
    curve = Curve("growth", "x", "y", {"line": [(1, 1), (1024, 4)]}, logarithmic="xy")
    files = plots.draw("idea", "What it shows", Result([], pictures=[curve]), tmp_path)
    assert [file.name for file in files] == ["idea-growth.svg", "idea-growth.png"]


@pytest.mark.parametrize(
    "picture",
    [
        Bars("cases", "GB/s", {"a": {"few": 1.0, "many": 2.0}, "b": {"many": 3.0}}, Limit("read", rate=4.0)),
        Curve("growth", "x", "y", {"line": [(1, 1), (1024, 4)]}, line=Limit("read", rate=4.0)),
        Timeline("overlap", {"copy": [(0.0, 1.0), (1.0, 2.5)], "write": []}),
    ],
    ids=["bars", "curve", "timeline"],
)
def test_other_pictures_are_files_of_their_own_too(picture, tmp_path):
    files = plots.draw("idea", "What it shows", Result([], pictures=[picture]), tmp_path)
    assert [file.name for file in files] == [f"idea-{picture.name}.svg", f"idea-{picture.name}.png"]


def test_a_film_is_an_animation_with_every_frame(tmp_path):
    from PIL import Image

    film = Film("frames", [np.full((4, 6), value, np.float32) for value in (0.0, 0.5, 1.0)])
    [file] = plots.draw("idea", "What it shows", Result([], pictures=[film]), tmp_path)
    assert file.name == "idea-frames.gif"
    with Image.open(file) as image:
        assert image.n_frames == 3
