import pytest

from library_tour import plots, roofline
from library_tour.roofline import Card, Kernel, kernels_of
from library_tour.stop import Result, Row
from tests.tour import outcomes

pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")

LOADS, SECTORS = (f"l1tex__t_{what}_pipe_lsu_mem_global_op_ld.sum" for what in ("requests", "sectors"))
FFMA, DADD = (f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum" for kind in ("ffma", "dadd"))
CARD = Card("a card", bandwidth=1000, fp32=10, fp64=5, source="made up")


@pytest.fixture
def figures(monkeypatch):
    """Return a list that collects the drawn figures, with the layout of a saved figure."""
    drawn = []

    def keep(figure, stem, formats=()):
        figure.draw_without_rendering()
        drawn.append(figure)
        return [stem.with_suffix(".png")]

    for module in (plots, roofline):
        monkeypatch.setattr(module, "save", keep)
    return drawn


def counted(name: str, instructions: int = 7, **values: float) -> Row:
    return Row(name, values, metrics={LOADS: 10, SECTORS: 40, "smsp__inst_executed.sum": instructions})


def labels(axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


PER_LOAD = {"sectors/load": 4.0}
FULL = {SECTORS: 40, "smsp__sass_data_bytes_mem_global_op_ld.sum": 32 * 40}


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        # The columns of the table come first.
        ([counted("a", **PER_LOAD), counted("b", 9, **{"sectors/load": 8.0})], ["sectors/load", "instructions"]),
        # Bars of equal length show nothing.
        ([counted("a", **PER_LOAD), counted("b", 9, **PER_LOAD)], ["instructions"]),
        ([Row("a", {"conflicts": 0, "loads": 3}), Row("b", {"conflicts": 0, "loads": 5})], ["loads"]),
        ([Row("a", {"loads": 10}, metrics=FULL), Row("b", {"loads": 20}, metrics=FULL)], ["loads"]),
    ],
)
def test_columns_are_drawn_in_which_rows_differ(figures, tmp_path, rows, shown):
    [(file, caption)] = plots.draw("idea", "What it shows", Result(rows), tmp_path).items()
    assert file.name == "idea-counters.png"
    assert [axes.get_title(loc="left") for axes in figures[0].axes if axes.axison] == shown
    assert caption == f"Counted, not timed: the bars show {' and '.join(shown)} for a and b."


def test_where_all_rows_are_alike_or_nothing_is_counted_nothing_is_drawn(tmp_path):
    alike = [counted("a", **PER_LOAD), counted("b", **PER_LOAD)]
    for rows in (alike, alike[:1], [Row("a", {"ms": 1.0})]):
        assert plots.draw("idea", "", Result(rows), tmp_path) == {}
    assert roofline.draw_roofline([], tmp_path, CARD) == []


def test_every_table_and_what_the_calls_do_have_pictures_of_their_own(figures, tmp_path):
    copies = [Row("copy", work={"bytes": 4096, "calls": 2}), Row("fill", work={"bytes": 0})]
    tables = {"Others:": [counted("a"), counted("b", 9)], "Words": [Row("b", {"kind": "none"})]}
    rows = [counted("kernel"), counted("other", 8), *copies]
    files = plots.draw("idea", "", Result(rows, tables=tables), tmp_path)
    assert [file.name for file in files] == ["idea-work.png", "idea-counters.png", "idea-counters-2.png"]
    work, first, second = figures
    assert "Work of the calls, not timed" in work.get_suptitle()
    assert [axes.get_title(loc="left") for axes in work.axes] == ["bytes"]
    assert labels(work.axes[0]) == ["copy", "fill"]
    assert [text.get_text() for text in work.axes[0].texts] == ["4,096", "0"]
    assert labels(first.axes[0]) == ["kernel", "other"]
    assert "Counted, not timed: Others" in second.get_suptitle()


def test_operations_a_byte_are_those_of_all_sectors_and_a_multiply_add_is_two():
    metrics = {"single": {SECTORS: 10, FFMA: 320}, "double": {SECTORS: 10, DADD: 160}, "none": {SECTORS: 10}}
    kernels = kernels_of("idea", [Row(name, metrics=counts) for name, counts in metrics.items()])
    assert kernels == [Kernel("idea", "single", 2.0, double=False), Kernel("idea", "double", 0.5, double=True)]


def test_memory_bounds_to_the_left_and_arithmetic_to_the_right():
    most = {(2, False): 2, (20, False): 10, (2, True): 2, (20, True): 5}
    assert {kernel: Kernel("idea", "a", *kernel).most(CARD) for kernel in most} == most


def test_the_roofline_names_the_card_and_few_kernels_while_many_of_a_stop_share_a_line(figures, tmp_path):
    few = [Kernel("idea", "a", 2.0, False), Kernel("idea", "b", 20.0, True)]
    many = [Kernel(stop, str(number), number, False) for stop in ("first", "second") for number in range(1, 40)]
    for kernels, names in ((few, ["idea: a", "idea: b"]), (many, ["first", "second"])):
        [file] = roofline.draw_roofline(kernels, tmp_path, CARD)
        assert file.name == "roofline.png"
        assert "a card" in figures[-1].get_suptitle()
        assert labels(figures[-1].axes[1]) == names


@outcomes.counted
@pytest.mark.xdist_group("matmul")
def test_wider_tiles_of_a_matrix_product_do_more_operations_a_byte():
    rows = outcomes.outcome("matmul").result.rows
    intensities = {kernel.row: kernel.intensity for kernel in kernels_of("matmul", rows)}
    wider = [intensities[f"tiles of {width} x {width}"] for width in (8, 16, 32)]
    assert intensities["one thread per element"] < wider[0] < wider[1] < wider[2]
