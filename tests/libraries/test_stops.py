"""The stops about the CUDA libraries, on every driver that has the libraries."""

import functools
import io
import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from rich.console import Console

import cudart_py as cuda
from cudart_py.benchmark import Measurement
from cudart_py.libraries.sparse.matrix import SparseMatrix
from library_tour import plots, record, report, stops, timing
from library_tour.device_code import load
from library_tour.libraries import conjugate_gradients, judgement, many_systems, precisions
from library_tour.runner import Outcome, run_stop
from library_tour.stop import Check, Limit
from tests.tour.outcomes import explained, loaded_once

pytestmark = pytest.mark.needs("libraries")

# So small that LAPACK does not split its work over threads.
SIZES = {"gemm": 20, "fft": 20, "sparse": 5, "solver": 20, "rand": 64}


@pytest.fixture(scope="module", autouse=True)
def share_modules() -> Iterator[None]:
    with loaded_once():
        yield


@functools.cache
def done(name: str) -> Outcome:
    """Run a stop without timing; the outcome is cached for all tests of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "available", lambda: False)
        return run_stop(name, cuda.Device(0), 77 if name == "gemm" else 20 if name == "sparse" else SIZES[name])


# All tests of a stop run in the same worker of pytest-xdist, which has cached its outcome.
NAMES = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in stops.LIBRARIES]


@pytest.fixture
def outcome(name: str) -> Outcome:
    """Return the outcome of a stop; a fixture, so that compiling its kernels counts as setup."""
    return done(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_stop_passes_and_its_docstring_shows_every_checked_row(name, outcome):
    assert outcome.state == "passed", explained(outcome)
    assert outcome.result.all_checks
    rows = outcome.result.rows
    # Every row says what executed it or why it was skipped. Most state their work, for the picture without times.
    assert all("by" in row.values or "Skipped" in row.note for row in rows)
    called = [row for row in rows if str(row.values.get("by", "")).startswith("cu")]
    assert sum(bool(row.work or row.metrics) for row in called) > len(called) * 2 / 3
    if not timing.available():  # the docstrings show a driver without times
        shown = [re.sub(r"[\d,]+", "0", line) for line in stops.load(name).__doc__.splitlines()]
        hidden = [row.name for row in rows if not any(re.sub(r"[\d,]+", "0", row.name) in line for line in shown)]
        assert hidden == []
    if name == "rand":  # leaves room for wide numbers
        assert max(len(row.name) for row in rows) <= 22


# At the default level, the stop rand runs at its least size.
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES[:-1])
def test_the_stop_passes_at_its_least_size(name, monkeypatch):
    monkeypatch.setattr(timing, "available", lambda: False)
    outcome = run_stop(name, cuda.Device(0), stops.load(name).SIZE.least)
    assert outcome.state == "passed", explained(outcome)


@pytest.mark.xdist_group("gemm")
def test_operations_a_byte_are_those_of_the_arithmetic_and_of_operands_read_once():
    work = {row.name: row.work for row in done("gemm").result.rows}
    assert work["float32"]["operations"] == 2 * 77 * 78 * 76
    assert work["float32"]["bytes, at least"] == 4 * (77 * 78 + 78 * 76 + 77 * 76)
    assert work["complex64"]["operations"] == 4 * work["float32"]["operations"]
    assert work["axpy float64"]["operations per byte"] == pytest.approx(2 / 24)
    assert work["scal float64"]["operations per byte"] == pytest.approx(1 / 16)
    assert work["bias, GELU: fused"]["bytes, at least"] < work["bias, GELU: separate"]["bytes, at least"]


@pytest.mark.xdist_group("sparse")
def test_a_sparse_product_does_two_operations_for_each_number_that_is_stored():
    work = {row.name: row.work for row in done("sparse").result.rows}
    csr, coo, several = (work[name] for name in ("SpMV, CSR", "SpMV, COO", "SpMM, 8 vectors"))
    assert csr["operations"] == coo["operations"] == several["operations"] / 8
    assert coo["bytes, at least"] > csr["bytes, at least"]


@pytest.mark.xdist_group("solver")
def test_lapacks_residuals_stand_beside_ours():
    [rows] = done("solver").result.tables.values()
    assert [row.name for row in rows] == ["float32", "float64", "complex128"]
    methods = {"LU", "Cholesky", "triangular", "QR", "SVD", "eigh"}
    assert all(set(row.values) == methods and max(row.values.values()) < 30 for row in rows)


def give_times(patch: pytest.MonkeyPatch) -> None:
    """Simulate GPU timing: all work runs once and takes 1 ms."""

    def median_ms(work, stream=None, quick=False):
        work()
        return 1.0

    patch.setattr(timing, "available", lambda: True)
    patch.setattr(timing, "median_ms", median_ms)
    patch.setattr(stops.load("sparse"), "measure_host", lambda work, stream, options: Measurement((12e-6,)))
    patch.setattr("library_tour.limits._measured", lambda device, kind: 1000.0)
    patch.setattr(judgement, "measure_host", lambda work, options: Measurement((12e-6,)))
    for module in (precisions, stops.load("gemm"), stops.load("solver")):
        patch.setattr(module, "measured_ceiling", lambda device, kind: 1e12)


@pytest.fixture
def short(monkeypatch):
    """Make curves short and batches small, and leave out generators that take seconds to prepare."""
    rand = stops.load("rand")
    kinds = {kind: rand.KINDS[kind] for kind in rand.KINDS if kind not in rand.SLOW}
    smaller = {
        "gemm": {"CURVE_SIZES": (8, 16)},
        "fft": {"SMOOTH": (8, 9), "PRIMES": (7, 11), "POINTS": 64},
        "sparse": {"CROSSING": 64},
        "rand": {"BLOCKS": (32,), "CALLS": (1, 16), "THREADS_PER_SM": 0, "KINDS": kinds},
    }
    for name, values in smaller.items():
        for attribute, value in values.items():
            monkeypatch.setattr(stops.load(name), attribute, value)
    monkeypatch.setattr(many_systems, "TIMED_BATCH", 16)


# The stop rand compiles cuRAND's headers, which takes long.
SHORT = [*NAMES[:-1], pytest.param("rand", marks=pytest.mark.exhaustive)]


def drawn(outcome, folder):
    """Draw the plots of an outcome without writing files, which takes long."""
    if plots.importlib.util.find_spec("matplotlib"):
        plots.draw(outcome.name, outcome.title, outcome.result, folder, formats=())


@pytest.mark.parametrize("name", SHORT)
def test_the_stop_times_with_the_libraries_and_is_drawn(name, monkeypatch, short, tmp_path):
    """Drivers without GPU timing get a simulated clock, so that the code for GPUs runs everywhere."""
    if "gpu_timing" not in cuda.capabilities():
        give_times(monkeypatch)
    outcome = run_stop(name, cuda.Device(0), SIZES[name])
    assert outcome.state == "passed", explained(outcome)
    assert any("ms" in row.values for row in outcome.result.rows)
    console = Console(width=80, file=io.StringIO())
    console.print(report.table(outcome.result.rows))
    assert "…" not in console.file.getvalue()  # no word is cut off
    drawn(outcome, tmp_path)


# Either all results are wrong, or every third.
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.exhaustive), 3])
@pytest.mark.parametrize("name", SHORT)
def test_a_stop_with_wrong_results_fails_by_its_checks_and_is_reported(monkeypatch, short, tmp_path, name, every):
    """A wrong result is not timed, and has no rate."""
    give_times(monkeypatch)
    numbers = itertools.count()
    monkeypatch.setattr(judgement, "Check", lambda fact, *_: Check(fact, next(numbers) % every != 0, "made wrong"))
    outcome = run_stop(name, cuda.Device(0), SIZES[name])
    assert outcome.state == "failed", explained(outcome)
    Console(file=io.StringIO()).print(report.outcome(outcome))
    record.write(tmp_path / "run.json", record.record({}, [outcome]))
    drawn(outcome, tmp_path)


@pytest.mark.xdist_group("rand")
def test_blocks_that_a_kernel_cannot_have_are_left_out(device, monkeypatch, short):
    give_times(monkeypatch)
    rand = stops.load("rand")
    monkeypatch.setattr(rand, "BLOCKS", (64, 4096))
    module, _ = rand.compiled()
    blocks = {name: [x for x, _ in line] for name, line in rand.block_curve(module, 64, Limit("none")).lines.items()}
    assert all(blocks[kind] == [64] for kind in rand.DEVICE)
    assert len(rand.block_notes(module)) == len(rand.DEVICE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('Failure finding "libcudss.so.0": No such file: libcudss.so.0\n  list("/opt")', "cudss is not installed"),
        ("Failed to load cutensor library", "Failed to load cutensor library"),
        ("The FFT is not available, because nothing was found. Do this.", "The FFT is not available"),
        ("", "ImportError"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(text, reason):
    note = judgement.missing_row("a row", "cu13", ImportError(text)).note
    assert note.startswith(f"Skipped: {reason};")
    assert 'pip install "cudart-py[cu13]"' in note


def test_the_bound_drawn_beside_the_residual_is_one_and_the_row_says_how_much_is_drawn(device):
    rows, curve = stops.load("sparse").gradient_rows(6)
    residuals, _, bound = curve.lines.values()
    assert all(norm <= most for (_, norm), (_, most) in zip(residuals, bound, strict=True))
    assert f"shows the first {residuals[-1][0]:g}." in rows[0].note


def test_conjugate_gradients_reach_the_solution_and_stay_there(device):
    """Further iterations change nothing, even beyond the length of the recorded history."""
    host, b, most = stops.load("sparse").laplacian(3), np.ones(9), 20
    with conjugate_gradients.CapturedIteration(load("sparse"), SparseMatrix.from_host(host), b, most) as iteration:
        for _ in range(3 * most):
            iteration.launch()
        assert np.allclose(host @ iteration.solution(), b)
        residuals = iteration.residuals(most)
        assert residuals[0] == pytest.approx(3.0)
        assert residuals[-1] < 1e-15
