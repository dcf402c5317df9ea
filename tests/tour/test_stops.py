import io
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import cudart_py as cuda
from library_tour import counters, record, report, stops, timing
from library_tour.course import monte_carlo
from library_tour.philox import philox
from library_tour.report import headline
from library_tour.runner import run_stop
from library_tour.stop import Bars, Curve, Film, Result, Row, Size, Timeline
from tests.tour.outcomes import SMALL, counted, draw, explained, outcome


def has_a_picture(result: Result) -> bool:
    """Return whether a stop has something to draw without times: counters, its calls' work, or pictures of its own."""
    shown = any(row.metrics or row.work or counters.COLUMNS.keys() & row.values.keys() for row in result.all_rows)
    return bool(result.pictures) or shown or timing.available()


def places(text: str) -> set[str]:
    return set(re.findall(r"\w+\.(?:cu|py):\d+", text))


def plain(text: str) -> str:
    """Return a report without spaces, addresses and the locations of inlined code."""
    return re.sub(r"\(inlinedfrom[^)]*\)|0x[0-9a-f]+…?", "", "".join(text.split()))


def settled(report: str) -> str:
    """Return the part of a report before it names the thread that happened to be first."""
    return re.split(r"(?<=race: )it|; block|, which|(?<=requested;)", report)[0]


def settled_lines(report: str) -> list[str]:
    """Return the lines of a report, each only up to the thread that happened to be first."""
    return [settled(line) for line in report.splitlines()]


def without_numbers(text: str) -> str:
    return re.sub(r"\d[\d,.]*", "", text)


@pytest.fixture
def of(name):
    """Return the outcome of a stop; a fixture, so that compiling its kernels counts as setup."""
    return outcome(name)


@pytest.mark.parametrize("name", stops.COURSE)
def test_the_stop_passes_can_be_recorded_and_its_docstring_shows_its_rows_and_reports(name, of, tmp_path):
    assert of.state == "passed", explained(of)
    record.write(tmp_path / "run.json", record.record({}, [of]))
    assert of.result.rows
    assert of.result.all_checks
    assert has_a_picture(of.result)
    docstring, rows = stops.load(name).__doc__, of.result.all_rows
    # A docstring shows the rows for one device.
    assert [row.name for row in rows if row.check and row.name not in docstring and "two GPUs" not in row.name] == []
    if places(docstring):
        assert places(docstring) == places(" ".join(row.note for row in rows))
    # A caught error has the report that the docstring shows, up to the thread that happened to be first. Refused calls
    # are compared only on the simulator, since a GPU words its refusals differently.
    simulated = "in_process" in cuda.capabilities()
    words = {"caught", "refused"} if simulated else {"caught"}
    reports = [plain(settled(row.note)) for row in rows if row.check and row.check.word in words]
    assert [report for report in reports if report not in plain(docstring)] == []
    # All other text is shown too, apart from numbers: the docstring's run has another size.
    if simulated and not timing.available() and len(cuda.devices()) == 1 and name != "peer":
        lines = [line for row in rows if row.check for line in settled_lines(row.note)]
        shown = without_numbers(plain(docstring))
        assert [text for text in [*lines, *of.result.notes] if without_numbers(plain(text)) not in shown] == []


@pytest.mark.parametrize("name", stops.COURSE)
def test_a_stop_says_whose_times_it_shows_and_what_size_its_counters_belong_to(name, of):
    columns = {column for row in of.result.all_rows for column in row.values}
    if any(column.startswith("course ") for column in columns):
        assert "lectures" in " ".join(of.result.notes)
    checks_less = any(name.startswith("CHECKED") for name in vars(stops.load(name)))
    if checks_less and columns & counters.COLUMNS.keys():
        # Some stops show the counted size in a column of their own.
        assert of.result.counted or columns & {"cells", "paths each"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [name for name in stops.COURSE if stops.load(name).SIZE])
def test_the_stop_passes_at_its_least_size(name):
    of = run_stop(name, cuda.Device(0), stops.load(name).SIZE.least)
    assert of.state == "passed", explained(of)


def test_every_stop_tells_its_title_its_size_and_its_command():
    assert len(set(stops.names())) == len(stops.names())
    for name in stops.names():
        stop = stops.load(name)
        assert len(headline(name, stop.TITLE)) <= 80
        if stop.SIZE is not None:
            assert isinstance(stop.SIZE, Size)
            assert stop.SIZE.least <= stop.SIZE.small <= stop.SIZE.full
        assert f"$ library-tour run {name}" in stop.__doc__


def check_that_it_fits(rows: Sequence[Row]) -> None:
    """Check that a table with a large GPU's rates fits into 80 columns, with all of its names and headings."""
    wide = {int: 16384, float: 4130.0}
    rows = [
        replace(row, values={c: v if c.startswith("of ") else wide.get(type(v), v) for c, v in row.values.items()})
        for row in rows
    ]
    console = Console(file=io.StringIO(), width=80)
    console.print(report.table(rows))
    header, _, *lines = console.file.getvalue().splitlines()
    assert [line.split("  ")[0].rstrip() for line in lines] == [row.name for row in rows]
    assert all(column in header for row in rows for column in row.values), header


# The pictures of some stops, by their kind.
PICTURES = {
    "stride_and_offset": {Curve: {"stride", "offset"}},
    "histogram": {Bars: {"cases"}},
    "monte_carlo": {Curve: {"error"}},
    "matmul": {Curve: {"rates"}, Film: {"phases"}},
    "heat": {Film: {"frames"}, Timeline: {"overlap"}},
    "halo": {Timeline: {"overlap"}},
    "distributed_gemm": {Curve: {"rates"}},
}


@pytest.fixture
def timed(name, any_clock, nothing_apart):
    """Return the outcome of a stop with the clock of `any_clock`, as if on a GPU."""
    return run_stop(name, cuda.Device(0), SMALL.get(name, 64))


# The checks of the stop `errors` are about programs in other processes, which this test leaves out.
@pytest.mark.parametrize("name", [name for name in stops.COURSE if name != "errors"])
def test_the_stop_reports_fits_and_draws_as_on_a_gpu(name, timed, tmp_path):
    assert timed.state == "passed", explained(timed)
    result = timed.result
    rated = [row for row in result.rows if "of limit" in row.values]
    assert rated or result.limit is None
    if name != "device_query":  # its values are not rates
        for rows in (result.rows, *result.tables.values()):
            check_that_it_fits(rows)
    for kind, names in PICTURES.get(name, {}).items():
        assert {picture.name for picture in result.pictures if isinstance(picture, kind)} == names
    if name == "matmul":
        assert all("48 TFLOP/s" in row.values for row in result.rows)  # at twice the size
    if rated:
        assert result.limit.rate
        draw(timed, tmp_path)


@counted
@pytest.mark.xdist_group("transpose")
def test_counters_tell_why_a_transpose_is_slow():
    naive, tile, padded = (
        row.values for row in outcome("transpose").result.rows if row.name in ("naive", "tile", "tile, padded by one")
    )
    assert (naive["store efficiency"], padded["store efficiency"]) == (pytest.approx(1 / 8), 1)
    assert tile["conflicts"] > 0 == padded["conflicts"] == naive["conflicts"]


@counted
@pytest.mark.xdist_group("bank_conflicts")
def test_counted_bank_conflicts_follow_the_ways():
    rows = outcome("bank_conflicts").result.rows
    one_way = rows[0].values["wavefronts"]
    for row in rows:
        # The store that initializes the words has no conflicts.
        assert row.values["conflicts"] == pytest.approx((row.values["ways"] - 1) * one_way, rel=0.02)


def test_the_generator_is_philox():
    """The expected numbers are Random123's known answers for Philox 4x32-10."""
    zero = np.zeros((4, 1), np.uint32)
    assert [f"{x:08x}" for x in philox(zero, 0)[:, 0]] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    ones = np.full((4, 1), 0xFFFFFFFF, np.uint32)
    answer = [f"{x:08x}" for x in philox(ones, 2**64 - 1)[:, 0]]
    assert answer == ["408f276d", "41c83b0e", "a20bc7c6", "6d5451fd"]


def test_the_closed_form_is_the_known_price():
    assert monte_carlo.closed_form() == pytest.approx(6.6348, abs=5e-5)
