"""Random device functions give what C++ of the host gives, bit for bit, by each engine, plain, checked and counted.

`python -m tests.fuzz.random_kernels` runs as many as are wanted; here a few of them run as a test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import cudart_py as cuda
from tests import processors
from tests.fuzz import oracle, reduction
from tests.fuzz.kernels import Features, Kernel, make

pytestmark = [
    pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler"),
    # They share what is compiled.
    pytest.mark.xdist_group("random functions"),
]

SEED = 36
SMALL = Features(size=1)
# Machine code for checks and counters is compiled apart: each kernel runs in one of the modes here, in all of them in
# the long run. Together they show each of the planted faults; the last two of the first mode were added for that.
OF_MODE = {"plain": [*range(16), 41, 85], "checked": [*range(16, 24)], "counted": [*range(24, 32)]}


def kernels_of(mode: str) -> list[Kernel]:
    return [make(SEED, number, SMALL) for number in OF_MODE[mode]]


Differences = Callable[..., list[oracle.Difference]]


# Every second kernel is enough for what a change may break.
@pytest.fixture(scope="module", params=[0, pytest.param(1, marks=pytest.mark.exhaustive)], ids=["even", "odd"])
def differences(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Differences:
    """Compile kernels for all modes once, for the host and for the driver; return what runs those of one mode."""
    of_mode = {mode: kernels_of(mode)[request.param :: 2] for mode in OF_MODE}
    kernels = [kernel for mode in OF_MODE for kernel in of_mode[mode]]
    with cuda.Device(0):
        expected = oracle.host_results(kernels, SEED, tmp_path_factory.mktemp("kernels"))
        runs = oracle.Runs(kernels, SEED)

    def run(mode: str, engines: Sequence[str], count: int | None = None) -> list[oracle.Difference]:
        return [
            found
            for kernel in of_mode[mode][:count]
            for found in oracle.differences(kernel, expected[kernel.number], runs, engines, [mode])
        ]

    return run


def test_the_driver_gives_what_cpp_gives(device: cuda.Device, differences: Differences) -> None:
    assert not differences("plain", [""])


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the software checks and counts, and has no tool beside it")
@pytest.mark.parametrize("mode", OF_MODE)
def test_each_engine_gives_what_cpp_gives(mode: str, device: cuda.Device, differences: Differences) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    assert not differences(mode, oracle.ENGINES)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("machine code for other processors is the software's")
@pytest.mark.parametrize("processor_level", processors.ONE_BY_DEFAULT, ids=str, indirect=True)
def test_machine_code_of_each_level_gives_what_cpp_gives(
    processor_level: processors.Level, device: cuda.Device, differences: Differences
) -> None:
    assert not differences("plain", ["native"], count=2)


def test_a_number_always_gives_the_same_kernel() -> None:
    assert make(1, 7).text() == make(1, 7).text()
    assert make(1, 7).text() != make(1, 8).text()
    assert make(1, 7).text() != make(2, 7).text()


def test_a_reduced_kernel_keeps_what_the_difference_needs() -> None:
    kernel = make(1, 7)
    before = len(kernel.text())
    needed = "s.m0 = s.m0 * 3"
    assert needed in kernel.text()
    reduction.reduce(kernel, lambda smaller: needed in smaller.text())
    assert kernel.text().count(needed) == 1
    assert len(kernel.text()) < before / 2
