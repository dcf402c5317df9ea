"""Random device functions yield the same bits as host C++ on each engine: plain, checked, and with counters.

`python -m tests.fuzz.random_kernels` runs any number of them; here a few run as a test.
"""

from collections.abc import Callable, Sequence

import pytest

import cudart_py as cuda
from tests import processors
from tests.fuzz import oracle
from tests.fuzz.kernels import Kernel, make

pytestmark = [
    pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler"),
    # They share the compiled kernels.
    pytest.mark.xdist_group("random functions"),
]

SEED = 36
# Machine code for checks and counters is compiled separately. So each kernel runs in one of the modes here, and in all
# of them in `random_kernels`. Together they show each planted fault; the last two of "plain" were added for that.
OF_MODE = {"plain": [*range(16), 41, 85], "checked": [*range(16, 24)], "counted": [*range(24, 32)]}


def kernels_of(mode: str) -> list[Kernel]:
    return [make(SEED, number, size=1) for number in OF_MODE[mode]]


Differences = Callable[..., list[str]]


# A third of the kernels is enough to notice what a change is likely to break.
THIRD, REST = slice(2, None, 3), [slice(0, None, 3), slice(1, None, 3)]


@pytest.fixture(
    scope="module", params=[[THIRD], pytest.param(REST, marks=pytest.mark.exhaustive)], ids=["third", "rest"]
)
def differences(request: pytest.FixtureRequest) -> Differences:
    """Compile the kernels of all modes once, for host and driver; return a function that runs one mode's kernels."""
    of_mode = {mode: [one for part in request.param for one in kernels_of(mode)[part]] for mode in OF_MODE}
    with cuda.Device(0):
        runs = oracle.Runs([kernel for kernels in of_mode.values() for kernel in kernels], SEED)

    def run(mode: str, engines: Sequence[str], count: int | None = None) -> list[str]:
        return [text for kernel in of_mode[mode][:count] for text in runs.differences(kernel, engines, [mode])]

    return run


def test_the_driver_gives_what_cpp_gives(device: cuda.Device, differences: Differences) -> None:
    assert not differences("plain", [""])


def test_code_for_debugging_gives_what_cpp_gives(device: cuda.Device) -> None:
    """The code differs a lot: every variable is in memory, and nothing is inlined."""
    kernels = [make(SEED, number, size=1) for number in (3, 4)]
    runs = oracle.Runs(kernels, SEED, "--device-debug")
    assert not [text for kernel in kernels for text in runs.differences(kernel, [""], ["plain"])]


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("the software checks and counts, and has no tool beside it")
@pytest.mark.parametrize("mode", OF_MODE)
def test_each_engine_gives_what_cpp_gives(mode: str, device: cuda.Device, differences: Differences) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    assert not differences(mode, oracle.ENGINES)


@pytest.mark.needs("profile")
@pytest.mark.unsanitized("machine code for other processors is the software's")
@pytest.mark.parametrize("processor_level", processors.ONE_BY_DEFAULT, ids=str, indirect=True)
@pytest.mark.parametrize("differences", [[THIRD]], ids=["third"], indirect=True)
def test_machine_code_of_each_level_gives_what_cpp_gives(
    processor_level: processors.Level, device: cuda.Device, differences: Differences
) -> None:
    assert not differences("plain", ["native"], count=1)
