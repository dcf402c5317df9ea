"""The suites of programs in Python: Triton's tutorials, and numba-cuda's own tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .suites import PATIENT, RUN, Program

_TUTORIALS = Path(__file__).parents[1] / "tutorials"
_NUMBA_TESTS = "numba.cuda.tests.cudapy"
# Where Triton's compiler asks for more than the device has, a tutorial says so and ends.
REFUSED = re.compile("^\N{NO ENTRY} ", re.MULTILINE)


def triton(checkout: Path) -> Iterator[Program]:
    """Yield the tutorials of Triton. PyTorch's own operations in them run on the host, and benchmarks are left out."""
    for path in sorted((checkout / "python" / "tutorials").glob("*.py")):
        run = [*RUN, str(_TUTORIALS / "run_tutorial.py"), path.name]
        yield Program("Triton", path.stem, path.parent, [], run, environment=PATIENT)


def numba(modules: Sequence[str]) -> Iterator[Program]:
    """Yield modules of numba-cuda's tests. Each runs without the checks, and then with them."""
    for module in modules:
        for options, suffix in ((["--sanitizer", "off"], ""), ([], " with the checks")):
            run = [*RUN, *options, "-m", "unittest", f"{_NUMBA_TESTS}.{module}"]
            yield Program("numba-cuda", module + suffix, Path.cwd(), [], run, environment=PATIENT)
