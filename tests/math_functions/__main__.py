"""Measure the errors of all of CUDA's math functions, and say which break their bounds.

    uv run --group math-errors python -m tests.math_functions --samples 1000000
    uv run --group math-errors python -m tests.math_functions --samples 1000000 --write
    uv run --group math-errors python -m tests.math_functions --record

A device's results are compared with the bounds and references of the tests beside this module. The driver in use and,
on the simulator, the engine that CUDART_PY_SIMULATOR_ENGINE names decide which device. Where a reference takes Python
long, as mpmath and fractions do, a sixteenth of the arguments is used. `--write` replaces the table of
`docs/math-errors.md`; `--record` writes the values of mpmath that the tests use. The exit status says whether all
bounds hold.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cudart_py as cuda

from . import harness, precise, table
from .bounds import EXACT
from .samples import arguments

PAGE = Path(__file__).parents[2] / "docs" / "math-errors.md"
MARK = "<!-- written by `python -m tests.math_functions` -->\n"
# So many arguments at once, and of the recorded ones.
PART, RECORDED = 1 << 16, 256
SLOW_SHARE = 16


def is_slow(function: table.Function, kind: Any) -> bool:
    """Return whether a reference is computed one value at a time."""
    by_fractions = function.name.startswith("__") and function.bound(kind) == EXACT and function.name != "__saturatef"
    by_mpmath = kind is np.float64 and function.name.partition("(")[0] in precise.NAMES
    return by_fractions or by_mpmath or function.name in ("fma", "remainder", "remquo")


def measure(function: table.Function, kind: Any, module: cuda.Module, samples: int) -> harness.Errors:
    """Return the greatest error of so many results, and some of those that break the bound."""
    worst, broken = 0.0, []
    for number, start in enumerate(range(0, samples, PART)):
        given = arguments(kind, min(PART, samples - start), 1000 + number)
        errors = harness.compare(function, given, harness.run(module, function, given))
        worst = max(worst, errors.greatest)
        broken += errors.broken
        if broken:
            break
    return harness.Errors(worst, broken)


def measured(kind: Any, samples: int, only: Sequence[str]) -> dict[str, tuple[str, float, int, list[str]]]:
    """Return each function's bound, greatest error, number of arguments and broken bounds, and print them."""
    functions = [one for one in table.functions(kind) if not only or one.name in only]
    module = harness.module_of(functions, kind)
    found = {}
    for function in functions:
        count = max(samples // SLOW_SHARE, 1) if is_slow(function, kind) else samples
        start = time.perf_counter()
        errors = measure(function, kind, module, count)
        bound = str(function.bound(kind))
        found[function.name] = bound, errors.greatest, count, errors.broken
        seconds = time.perf_counter() - start
        print(f"{kind.__name__:8} {function.name:22} {bound:22} {errors.greatest:6g} {count:9} {seconds:6.1f} s")
        for line in errors.broken:
            print(f"    BROKEN {line}")
        sys.stdout.flush()
    return found


def cells_of(column: tuple[str, float, int, list[str]] | None) -> tuple[str, str]:
    """Return a bound and the greatest error, which has no ulps where only the absolute error is bounded."""
    if column is None:
        return "", ""
    return column[0], "" if column[0].startswith("absolute") else f"{column[1]:g}"


def page(single: dict[str, Any], double: dict[str, Any], samples: int) -> str:
    """Return the table of the functions with a bound, and the list of the exact ones."""
    slow = max(samples // SLOW_SHARE, 1)
    rows = [
        f"With {samples:,} arguments of each function, or {slow:,} where mpmath or fractions are the reference:",
        "",
    ]
    rows += [
        "| function | bound, single | greatest, single | bound, double | greatest, double |",
        "|---|--:|--:|--:|--:|",
    ]
    exact = []
    for name in dict.fromkeys([*single, *double]):
        columns = [found.get(name) for found in (single, double)]
        if all(column is None or column[0] == "exact" for column in columns):
            exact.append(f"`{name}`")
            continue
        cells = [cell for column in columns for cell in cells_of(column)]
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n\nWithout a difference in any bit: " + ", ".join(exact) + ".\n"


def record() -> None:
    """Write the values that the tests use of the functions whose reference is mpmath's."""
    x = arguments(np.float64, RECORDED, 33).x
    columns: dict[str, Any] = {"x": x}
    for name in precise.NAMES:
        columns[f"{name}_high"], columns[f"{name}_low"] = precise.computed(name, x)
    precise.DATA.parent.mkdir(exist_ok=True)
    np.savez_compressed(precise.DATA, **columns)


def main() -> int:
    """Measure, or record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1 << 20, help="arguments of each function")
    parser.add_argument("--only", nargs="*", default=(), help="names of functions")
    parser.add_argument("--write", action="store_true", help=f"replace the table of docs/{PAGE.name}")
    parser.add_argument("--record", action="store_true", help="write the recorded values, and measure nothing")
    options = parser.parse_args()
    if importlib.util.find_spec("mpmath") is None:
        # Not 1, which says that a bound is broken.
        parser.exit(2, "mpmath is not installed: use `uv run --group math-errors python -m tests.math_functions`\n")
    if options.record:
        record()
        return 0
    os.environ.setdefault("CUDART_PY_SIMULATOR_ENGINE", "native")
    with cuda.Device(0):
        single, double = (measured(kind, options.samples, options.only) for kind in (np.float32, np.float64))
    if options.write:
        before = PAGE.read_text().partition(MARK)[0]
        PAGE.write_text(f"{before}{MARK}\n{page(single, double, options.samples)}")
    return int(any(broken for found in (single, double) for *_, broken in found.values()))


if __name__ == "__main__":
    sys.exit(main())
