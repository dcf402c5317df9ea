"""Random device functions give what C++ of the host gives, bit for bit, by each engine, plain, checked and counted.

`python -m tests.fuzz.random_kernels` runs as many as are wanted; here a few of them run as a test.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import cudart_py as cuda
from tests.fuzz import oracle, reduction
from tests.fuzz.kernels import Features, Kernel, make

pytestmark = pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler")

SEED = 36
SMALL = Features(size=1)
# Machine code for checks and counters is compiled apart: each kernel runs in one of the modes here, in all of them in
# the long run. Together they show each of the planted faults; the last two of the first mode were added for that.
OF_MODE = {"plain": [*range(16), 41, 85], "checked": [*range(16, 24)], "counted": [*range(24, 32)]}


def kernels_of(mode: str) -> list[Kernel]:
    return [make(SEED, number, SMALL) for number in OF_MODE[mode]]


def test_the_driver_gives_what_cpp_gives(device: cuda.Device, tmp_path: Path) -> None:
    kernels = [kernel for mode in OF_MODE for kernel in kernels_of(mode)]
    assert not oracle.compare(kernels, SEED, tmp_path, [""], ["plain"])


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the software checks and counts, and has no tool beside it")
@pytest.mark.parametrize("mode", OF_MODE)
def test_each_engine_gives_what_cpp_gives(mode: str, device: cuda.Device, tmp_path: Path) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    assert not oracle.compare(kernels_of(mode), SEED, tmp_path, modes=[mode])


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("machine code for other processors is the software's")
def test_machine_code_of_each_level_gives_what_cpp_gives(
    processor_level: object, device: cuda.Device, tmp_path: Path
) -> None:
    assert not oracle.compare(kernels_of("plain")[:4], SEED, tmp_path, ["native"], ["plain"])


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
