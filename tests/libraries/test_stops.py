"""The stops of the libraries: by NumPy and SciPy where no GPU is, and with the libraries in software."""

from __future__ import annotations

import functools
import io
import re

import numpy as np
import pytest
from rich.console import Console

import cudart_py as cuda
from cudart_py.benchmark import Measurement
from library_tour import plots, stops, timing
from library_tour.libraries import conjugate_gradients, judgement, precisions
from library_tour.libraries.curand_host import host_curand
from library_tour.libraries.judgement import missing_row
from library_tour.libraries.random_numbers import KINDS
from library_tour.libraries.sparse_matrix import SparseMatrix
from library_tour.libraries.tools import Tools
from library_tour.report import headline, table
from library_tour.runner import Outcome, run_stop
from library_tour.stop import Limit

pytest.importorskip("scipy", reason="SciPy is not installed (the extra cpu)")

# The inner products of conjugate gradients are one thread's there.
SIZES = {"gemm": 20, "fft": 20, "sparse": 5, "solver": 20, "rand": 64}

PRODUCTS = r"""
extern "C" __global__ void product(const int* offsets, const int* indices, const double* values, const double* x,
                                   double* y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double sum = 0.0;
    for (int place = offsets[i]; place < offsets[i + 1]; place++)
        sum += values[place] * x[indices[place]];
    y[i] = sum;
}

extern "C" __global__ void inner(const double* x, const double* y, double* out, int n)
{
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    *out = sum;
}
"""


def explained(outcome: Outcome) -> str:
    checks = "; ".join(f"{check.fact}: {check.detail}" for check in outcome.failed_checks)
    return f"{checks} {outcome.message} {outcome.traceback}"


@pytest.fixture
def by_kernels(monkeypatch):
    """Do the products of conjugate gradients by kernels, which can be captured as the libraries' can."""
    module = cuda.compile(PRODUCTS)

    def spmv(a, x, out, *, stream):
        arrays = a.offsets, a.indices, a.values, x, out
        module["product"][-(-out.size // 64), 64, 0, stream](*arrays, out.size)

    def dot(x, y, out, *, stream):
        module["inner"][1, 1, 0, stream](x, y, out, x.size)

    monkeypatch.setattr(conjugate_gradients, "spmv", spmv)
    monkeypatch.setattr(conjugate_gradients, "dot", dot)


@functools.cache
def done(name: str, size: int) -> Outcome:
    """Run a stop without times, once for all that is asked of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "available", lambda: False)
        return run_stop(name, cuda.Device(0), size)


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_the_stop_passes(name):
    outcome = done(name, 77)
    assert outcome.state == "passed", explained(outcome)
    assert outcome.result.all_checks


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_the_stop_passes_at_its_least_size(name):
    outcome = done(name, stops.load(name).SIZE.least)
    assert outcome.state == "passed", explained(outcome)


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_every_row_says_what_executed_it_or_why_nothing_did(name):
    for row in done(name, 77).result.rows:
        assert "by" in row.values or "not run here" in row.note


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_the_stop_tells_its_title_and_size(name):
    stop = stops.load(name)
    assert len(headline(name, stop.TITLE)) <= 80
    assert stop.SIZE.least <= stop.SIZE.small <= stop.SIZE.full
    assert f"$ library-tour run {name}" in stop.__doc__


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_the_docstring_shows_every_checked_row(name):
    if "libraries" in cuda.capabilities():
        pytest.skip("the docstrings show a driver without them")
    rows = done(name, 77).result.rows
    shown = [re.sub(r"[\d,]+", "0", line) for line in stops.load(name).__doc__.splitlines()]
    hidden = [row.name for row in rows if not any(re.sub(r"[\d,]+", "0", row.name) in line for line in shown)]
    assert hidden == []


@pytest.mark.parametrize("name", stops.LIBRARIES)
def test_the_stop_passes_with_the_libraries(name, software, by_kernels, monkeypatch):
    pretend(monkeypatch)
    outcome = run_stop(name, cuda.Device(0), SIZES[name])
    assert outcome.state == "passed", explained(outcome)


TIMED: dict[str, Outcome] = {}


@pytest.fixture(params=stops.LIBRARIES)
def timed(request, monkeypatch) -> Outcome:
    """Run a stop with times, once for all that is asked of it.

    Where the driver has none, with the libraries in software and a clock of its own: so what is for a GPU runs
    everywhere.
    """
    name = request.param
    if "libraries" not in cuda.capabilities():
        request.getfixturevalue("software")
        request.getfixturevalue("by_kernels")
        pretend(monkeypatch)
        give_times(monkeypatch)
    shorten(monkeypatch)
    if name not in TIMED:
        TIMED[name] = run_stop(name, cuda.Device(0), SIZES[name])
    return TIMED[name]


def test_the_stop_times_with_the_libraries(timed):
    assert timed.state == "passed", explained(timed)
    assert any("ms" in row.values for row in timed.result.rows)


def test_a_timed_table_fits_into_a_terminal(timed):
    """Into 80 columns, with no word cut off."""
    console = Console(width=80, file=io.StringIO())
    console.print(table(timed.result.rows))
    assert "…" not in console.file.getvalue()


def test_the_names_of_rand_leave_room_for_wide_numbers():
    assert max(len(row.name) for row in done("rand", 77).result.rows) <= 22


def test_the_stop_draws_what_it_timed(timed, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (the extra plot)")
    assert plots.draw(timed.name, timed.title, timed.result, tmp_path)


def test_blocks_that_a_kernel_cannot_have_are_left_out(software, monkeypatch):
    pretend(monkeypatch)
    give_times(monkeypatch)
    shorten(monkeypatch)
    rand = stops.load("rand")
    monkeypatch.setattr(rand, "BLOCKS", (64, 4096))
    module, _ = rand.compiled()
    blocks = {name: [x for x, _ in line] for name, line in rand.block_curve(module, 64, Limit("none")).lines.items()}
    assert all(blocks[kind] == [64] for kind in rand.DEVICE)
    assert len(rand.block_notes(module)) == len(rand.DEVICE)


MISSING = {
    "libcudss": (
        'Failure finding "libcudss.so.0": No such file: libcudss.so.0\n  listdir("/opt/lib"):\n    libcublas.so.13',
        "cudss is not installed",
    ),
    "cutensor": ("Failed to load cutensor library", "Failed to load cutensor library"),
    "sentences": ("The FFT is not available, because nothing was found. Do this.", "The FFT is not available"),
    "nothing": ("", "ImportError"),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_missing_library_is_named_with_its_extra(case):
    text, reason = MISSING[case]
    note = missing_row("a row", "cu13", ImportError(text)).note
    assert note == f'not run here: {reason}; the extra `cu13` brings it: pip install "cudart-py[cu13]"'


def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the libraries run, but for the generator whose beginning takes seconds."""
    if host_curand() is None:
        pytest.skip("cuRAND is not installed (the extra headers)")
    monkeypatch.setattr(Tools, "libraries_run", staticmethod(lambda: True))
    quick = {name: kind for name, kind in KINDS.items() if name != "mt19937"}
    monkeypatch.setattr(stops.load("rand"), "KINDS", quick)


def give_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the driver has times: every work runs once and takes a millisecond."""

    def median_ms(work, stream=None, quick=False):
        work()
        return 1.0

    monkeypatch.setattr(timing, "available", lambda: True)
    monkeypatch.setattr(timing, "median_ms", median_ms)
    monkeypatch.setattr(stops.load("sparse"), "measure_host", lambda work, stream, options: Measurement((12e-6,)))
    monkeypatch.setattr("library_tour.limits._measured", lambda device, kind: 1000.0)
    monkeypatch.setattr(judgement, "measure_host", lambda work, options: Measurement((12e-6,)))
    for module in (precisions, stops.load("gemm"), stops.load("solver")):
        monkeypatch.setattr(module, "measured_ceiling", lambda device, kind: 1e12)


def shorten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw short curves."""
    smaller = {
        "gemm": {"CURVE_SIZES": (8, 16)},
        "fft": {"SMOOTH": (8, 9), "PRIMES": (7, 11), "POINTS": 64},
        "sparse": {"CROSSING": 64},
        "rand": {"BLOCKS": (32,), "THREADS_PER_SM": 0},
    }
    for name, values in smaller.items():
        for attribute, value in values.items():
            monkeypatch.setattr(stops.load(name), attribute, value)


def test_conjugate_gradients_as_a_graph_go_as_on_the_host(device, by_kernels):
    from library_tour.device_code import load
    from library_tour.libraries.sparse import laplacian

    host = laplacian(6)
    b = np.arange(36.0)
    expected, norms = conjugate_gradients.iterate_on_host(host, b, 12)
    with conjugate_gradients.CapturedIteration(load("sparse"), SparseMatrix.from_host(host), b, 12) as iteration:
        for _ in range(12):
            iteration.launch()
        assert np.allclose(iteration.solution(), expected)
        assert np.allclose(iteration.residuals(12), norms)


def test_conjugate_gradients_stay_at_a_solution(device, by_kernels):
    """More iterations than are needed change nothing, on the host or on the device, nor do more than it remembers."""
    from library_tour.device_code import load
    from library_tour.libraries.sparse import laplacian

    host, b = laplacian(3), np.ones(9)
    assert np.allclose(host @ conjugate_gradients.iterate_on_host(host, b, 60)[0], b)
    with conjugate_gradients.CapturedIteration(load("sparse"), SparseMatrix.from_host(host), b, 20) as iteration:
        for _ in range(60):
            iteration.launch()
        assert np.allclose(host @ iteration.solution(), b)
        assert iteration.residuals(20)[-1] < 1e-15
