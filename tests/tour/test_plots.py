import numpy as np
import pytest

from library_tour import captions, plots
from library_tour.course import matmul
from library_tour.stop import Bars, Curve, Film, Limit, Picture, Result, Row, Timeline

pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")

BARS = Bars("cases", "GB/s", {"a": {"few": 1.0}, "b, a long name": {"few": 3900.0}}, Limit("read", rate=4000.0))
COINCIDING = Curve("two", "x", "y", {"first": [(1, 1), (2, 2)], "second": [(1, 1), (2, 2)]})


def result_of(*pictures: Picture) -> Result:
    return Result([], pictures=pictures)


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """Return a function that draws a picture or a result, and returns the figure with the layout of a saved one."""
    figures = []
    monkeypatch.setattr(plots, "save", lambda figure, stem, formats: figures.append(figure) or [])

    def draw(of: Picture | Result, width: float = plots.WIDTH):
        plots.draw("idea", "What it shows", of if isinstance(of, Result) else result_of(of), tmp_path, width)
        figures[-1].draw_without_rendering()
        return figures[-1]

    return draw


@pytest.mark.parametrize("width", [4, plots.WIDTH])
@pytest.mark.parametrize("picture", [BARS, COINCIDING], ids=["bars", "curve"])
def test_no_text_leaves_the_figure_and_the_numbers_of_bars_stand_beside_the_frame(drawn, picture, width):
    figure = drawn(picture, width)
    inches = figure.get_tightbbox()
    assert inches.x0 >= 0
    assert inches.x1 <= width
    [axes] = figure.axes
    numbers = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(numbers) == (2 if picture is BARS else 0)
    assert all(axes.get_window_extent().x1 < box.x0 <= box.x1 < figure.bbox.x1 for box in numbers)


def test_a_legend_lies_below_the_axes_and_a_line_that_another_one_covers_is_wider(drawn):
    figure = drawn(COINCIDING)
    [legend] = figure.legends
    assert legend.get_window_extent().y1 < figure.axes[0].get_window_extent().y0
    first, second = figure.axes[0].get_lines()
    assert first.get_linewidth() > second.get_linewidth() + 1


@pytest.mark.parametrize("line", [None, Limit("read", rate=4.0)], ids=["no limit", "a limit"])
def test_one_thing_alone_has_no_legend_and_is_named_in_the_title(drawn, line):
    figure = drawn(Curve("growth", "x", "GB/s", {"copied": [(1, 1), (2, 2)]}, line=line))
    assert not figure.legends
    assert "copied" in figure.get_suptitle()
    assert ("dashed: read, 4.00 GB/s" in figure.get_suptitle()) == (line is not None)


def test_axes_name_their_quantities_and_a_page_that_has_the_heading_gets_none(drawn, tmp_path, monkeypatch):
    axes = drawn(Curve("growth", "size in bytes", "GB/s", {"copied": [(1, 1), (2, 2)]})).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("size in bytes", "rate in GB/s")
    assert drawn(BARS).axes[0].get_xlabel() == "rate in GB/s"
    assert "What it shows" in drawn(BARS).get_suptitle()
    figures = []
    monkeypatch.setattr(plots, "save", lambda figure, stem, formats: figures.append(figure) or [])
    plots.draw("idea", "", result_of(BARS), tmp_path)
    assert figures[0].get_suptitle() == "dashed: read, 4,000 GB/s"


def test_captions_are_sentences():
    assert captions.caption(BARS) == (
        "The bars show the rate in GB/s for a; and b, a long name, in the cases few. "
        "The dashed line shows the limit: read, 4,000 GB/s."
    )
    assert captions.caption(COINCIDING) == "The lines show y against x, for first and second."
    many = Curve("many", "bytes", "ms", {str(number): [(1, 1)] for number in range(9)})
    assert captions.caption(many) == "The lines show the time in ms against bytes, for 9 lines."
    film = Film("f", [np.zeros((1, 1))] * 3, ["start", "start", "end"])
    assert captions.caption(film) == "The film has 2 stages, from “start” to “end”."


def test_bars_that_are_all_as_long_are_not_drawn(tmp_path):
    same = Bars("cases", "GB/s", {"a": {"few": 3.0}, "b": {"few": 3.01}})
    assert plots.draw("idea", "", result_of(same), tmp_path) == {}
    rows = [Row(name, {"GB/s": 5.0, "of limit": 0.5}) for name in "ab"]
    assert plots.draw("idea", "", Result(rows, Limit("link", rate=10.0)), tmp_path) == {}


@pytest.mark.parametrize(("places", "base"), [([1, 3, 4, 16], 2), ([19.3, 524.1, 15513.7, 476607.3], 10)])
def test_powers_of_two_are_told_in_twos_and_other_numbers_in_tens(drawn, places, base):
    curve = Curve("scale", "x", "y", {"line": [(x, 1.0) for x in places]}, logarithmic="x")
    assert drawn(curve).axes[0].xaxis.get_transform().base == base


def test_a_curve_below_zero_is_drawn_whole_and_a_timeline_names_its_unit(drawn):
    assert drawn(Curve("error", "x", "y", {"line": [(1, -2.0), (2, 1.0)]})).axes[0].get_ylim()[0] <= -2
    figure = drawn(Timeline("model-one-engine", {"copy": [(0.0, 1.0)], "write": []}, "time, in operations"))
    assert figure.axes[0].get_xlabel() == "time, in operations"
    assert "model one engine" in figure.get_suptitle()


def test_a_timed_result_is_drawn_as_bars_and_a_rate_of_less_work_says_so_beside_its_name(drawn):
    sizes = {"a": 50, "b": 4000}
    rows = [Row(name, {"cells": cells, "GB/s": cells / 10, "of limit": 0.5}) for name, cells in sizes.items()]
    figure = drawn(Result([*rows, Row("c", {"ms": 1.0})], Limit("link", rate=10.0)))
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["a (50 cells)", "b"]


def test_what_has_no_values_is_left_out(drawn):
    """Wrong variants are not timed, so their lines and bars have no values."""
    curve = drawn(Curve("two", "x", "y", {"wrong": [], "right": [(1, 1), (2, 2)]}, logarithmic="xy"))
    assert [line.get_label() for line in curve.axes[0].get_lines()] == ["right"]
    bars = drawn(Bars("cases", "GB/s", {"wrong": {}, "partly": {"many": 1.0}, "right": {"few": 2.0, "many": 3.0}}))
    assert [label.get_text() for label in bars.axes[0].get_yticklabels()] == ["partly", "right"]
    assert [text.get_text() for text in bars.axes[0].texts] == ["1.00", "3.00", "", "2.00"]


@pytest.mark.parametrize("picture", [Curve("two", "x", "y", {"wrong": []}), Bars("cases", "GB/s", {"wrong": {}})])
def test_without_values_or_rates_nothing_is_drawn(picture, tmp_path):
    for result in (result_of(picture), Result([Row("a")], Limit("link"))):
        assert plots.draw("idea", "What it shows", result, tmp_path) == {}


def test_a_film_is_an_animation_that_tells_the_time_of_every_frame_and_what_its_colours_are(monkeypatch, tmp_path):
    from PIL import Image

    figures = []
    new = plots.figure
    monkeypatch.setattr(plots, "figure", lambda *arguments: figures.append(new(*arguments)) or figures[-1])
    film = Film("frames", [np.zeros((4, 6)), np.ones((4, 6))], ["after 8 steps", "after 16 steps"], "temperature")
    [file] = plots.draw("idea", "What it shows", result_of(film), tmp_path)
    assert file.name == "idea-frames.gif"
    with Image.open(file) as image:
        assert image.n_frames == 2
    plate, scale = figures[0].axes
    assert plate.get_title() == "after 16 steps"
    assert scale.get_ylabel() == "temperature"
    assert scale.get_ylim() == (0, 1)


def test_a_film_does_not_shift_between_its_frames(tmp_path):
    from PIL import Image, ImageSequence

    film = Film("frames", [np.eye(8), np.eye(8)], ["after 1 step", "after 2 steps"], "temperature")
    [file] = plots.draw("idea", "What it shows", result_of(film), tmp_path)
    with Image.open(file) as image:
        first, second = (np.array(frame.convert("RGB"), int) for frame in ImageSequence.Iterator(image))
    # Each frame has a palette of its own, so colours differ a little.
    rows = np.flatnonzero((abs(first - second) > 100).any((1, 2)))
    assert 0 < rows[-1] - rows[0] < 20  # nothing differs but the line that says when


def test_the_film_of_a_matrix_product_has_a_colour_for_each_state_of_an_element():
    film = matmul.phases(4, 2)
    levels = film.levels
    assert len(set(levels.values())) == len(levels) == 5
    place = slice(5, 7)
    states = [set(np.unique(frame[place, place])) for frame in film.frames]
    half, done = {levels["c, being summed"]}, {levels["c, done"]}
    assert [state for state in states if state not in (half, done)] == [{levels["in memory"]}] * matmul.HOLD
    assert states[-1] == done
    assert all(levels["c, being summed"] not in frame[5:, :4] for frame in film.frames)
    assert set(film.labels) == {"a ↓", "b →", "c ↘"}
