"""Measure the errors of all of CUDA's math functions, and report which exceed their bounds.

    uv run --group math-errors python -m tests.math_functions --samples 1000000
    uv run --group math-errors python -m tests.math_functions --samples 1000000 --write
    uv run --group math-errors python -m tests.math_functions --record

A device's results are compared with the bounds and references of the tests beside this module. The device is that of
the driver in use; on the simulator, CUDART_PY_SIMULATOR_ENGINE selects the engine. Slow references, such as mpmath and
fractions, get a sixteenth of the arguments. `--write` replaces the table of `docs/math-errors.md`. `--record` writes
the mpmath values that the tests use. The exit status says whether all bounds hold.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda
from tests import tables

from . import harness, precise, table
from .bounds import EXACT
from .samples import arguments

PAGE = Path(__file__).parents[2] / "docs" / "math-errors.md"
MARK = "<!-- written by `python -m tests.math_functions` -->\n"
# The number of arguments per launch, and of recorded arguments.
PART, RECORDED = 1 << 16, 256
SLOW_SHARE = 16


def is_slow(function: table.Function, kind: Any) -> bool:
    """Return whether a reference is computed one value at a time."""
    by_fractions = function.name.startswith("__") and function.bound(kind) == EXACT and function.name != "__saturatef"
    by_mpmath = kind is np.float64 and function.name.partition("(")[0] in precise.NAMES
    return by_fractions or by_mpmath or function.name in ("fma", "remainder", "remquo")


def measured(kind: Any, samples: int) -> tuple[dict[str, tuple[str, float]], bool]:
    """Print and return each function's bound and largest error, and whether all bounds hold."""
    functions = table.SINGLE if kind is np.float32 else table.DOUBLE
    module = harness.module_of(functions, kind)
    found, hold = {}, True
    for function in functions:
        count = max(samples // SLOW_SHARE, 1) if is_slow(function, kind) else samples
        bound, worst, broken = str(function.bound(kind)), 0.0, []
        for number, start in enumerate(range(0, count, PART)):
            given = arguments(kind, min(PART, count - start), 1000 + number)
            got = harness.run(module, function, given)
            greatest, broken = harness.compare(function, given, harness.expected(function, given), got)
            worst = max(worst, greatest)
            if broken:
                break
        hold &= not broken
        found[function.name] = bound, worst
        print(f"{kind.__name__:8} {function.name:22} {bound:22} {worst:6g} {count:9}")
        print("".join(f"    BROKEN {line}\n" for line in broken), end="", flush=True)
    return found, hold


def page(single: dict[str, tuple[str, float]], double: dict[str, tuple[str, float]], samples: int) -> str:
    """Return the page's table of functions with a bound, and its list of exact functions."""
    slow = max(samples // SLOW_SHARE, 1)
    counts = f"With {samples:,} arguments of each function, or {slow:,} where mpmath or fractions are the reference:"
    rows, exact = [], []
    for name in dict.fromkeys([*single, *double]):
        cells = []
        for bound, greatest in (found.get(name, ("", 0.0)) for found in (single, double)):
            # Where only the absolute error is bounded, ulps mean nothing.
            cells += [bound, f"{greatest:g}" if bound and not bound.startswith("absolute") else ""]
        if {cells[0], cells[2]} <= {"exact", ""}:
            exact.append(f"`{name}`")
        else:
            rows.append([f"`{name}`", *cells])
    headings = ["function", "bound, single", "largest, single", "bound, double", "largest, double"]
    return f"{counts}\n\n{tables.table(headings, rows)}\n\nNo bit differs in the results of {', '.join(exact)}.\n"


def main() -> int:
    """Measure, or record mpmath's values; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1 << 20, help="arguments of each function")
    parser.add_argument("--write", action="store_true", help=f"replace the table of docs/{PAGE.name}")
    parser.add_argument("--record", action="store_true", help="write the recorded values, and measure nothing")
    options = parser.parse_args()
    if importlib.util.find_spec("mpmath") is None:
        # Not 1, which means that a bound is exceeded.
        parser.exit(2, "mpmath is not installed: use `uv run --group math-errors python -m tests.math_functions`\n")
    if options.record:
        x = arguments(np.float64, RECORDED, 33).x
        values = {name: precise.computed(name, x) for name in precise.NAMES}
        columns = {f"{name}_{part}": pair[i] for name, pair in values.items() for i, part in enumerate(("high", "low"))}
        np.savez_compressed(precise.DATA, x=x, **columns)
        return 0
    os.environ.setdefault("CUDART_PY_SIMULATOR_ENGINE", "native")
    with cuda.Device(0):
        (single, right), (double, both_right) = (measured(kind, options.samples) for kind in (np.float32, np.float64))
    if options.write:
        before = PAGE.read_text().partition(MARK)[0]
        PAGE.write_text(f"{before}{MARK}\n{page(single, double, options.samples)}")
    return int(not (right and both_right))


if __name__ == "__main__":
    sys.exit(main())
