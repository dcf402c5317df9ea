"""A program of a public suite, and the compilation of its device code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda

from .source import PRELUDE, device_code

Array = np.ndarray[Any, np.dtype[Any]]


class Build:
    """The argument of a program's host function: a compiler for the suite's files, and random numbers."""

    def __init__(self, folder: Path, files: Sequence[str], seed: int) -> None:
        self._paths = [folder / file for file in files]
        self.random = np.random.default_rng(seed)

    def __call__(self, names: Sequence[str] = (), *, omit: Sequence[str] = (), before: str = "") -> cuda.Module:
        """Compile the device code of the files, concatenated in order, and load it.

        `names` instantiates templates. `omit` names host declarations that `device_code` would take for device code.
        `before` is source text that comes first, such as a type that a header of the host declares.
        """
        # Some files contain authors' names in encodings other than UTF-8.
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in self._paths]
        parts = [device_code(text, path.name, omit) for text, path in zip(texts, self._paths, strict=True)]
        return cuda.compile("\n".join([PRELUDE, before, *parts]), names=names)

    def floats(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Array:
        """Return random single-precision numbers between two bounds."""
        return self.random.uniform(low, high, shape).astype(np.float32)


class Program(NamedTuple):
    """A program: its suite, the files with its device code, and its host function.

    The host function's docstring names the feature that the program tests and, after a colon, what the program does.

    The host function allocates memory, launches kernels, and raises AssertionError if a result differs from the
    reference. `own` lists the kernels in which the program has a known mistake, so a simulator warning that names one
    of them is right; `why` describes the mistake.
    """

    name: str
    suite: str
    files: Sequence[str]
    run: Host
    own: tuple[str, ...] = ()
    why: str = ""


Host = Callable[[Build], None]
PROGRAMS: list[Program] = []


def listed(suite: str, folder: str) -> Callable[..., Callable[[Host], Host]]:
    """Return a function that makes decorators, which add a host function to the programs of a suite.

    The function takes the program's name, its files in the folder, separated by spaces, and for a program with a known
    mistake `own` and `why` of `Program`. In the name of the folder, `{name}` stands for the program's name.
    """

    def of_program(name: str, files: str, own: tuple[str, ...] = (), why: str = "") -> Callable[[Host], Host]:
        def of_host(run: Host) -> Host:
            paths = [f"{folder.format(name=name)}/{file}" for file in files.split()]
            PROGRAMS.append(Program(name, suite, paths, run, own, why))
            return run

        return of_host

    return of_program


def ceil_div(count: int, size: int) -> int:
    """Return the quotient rounded up, such as the number of blocks of a size that cover a count."""
    return -(-count // size)


def check_close(got: Any, wanted: Any, rtol: float, atol: float = 0.0, what: str = "") -> None:
    """Compare with a reference of higher precision; `atol` is relative to the largest magnitude in the reference."""
    largest = float(np.max(np.abs(wanted), initial=0))
    np.testing.assert_allclose(np.asarray(got, np.float64), wanted, rtol=rtol, atol=atol * largest, err_msg=what)


def check_equal(got: Any, wanted: Any, what: str = "") -> None:
    """Compare exactly."""
    np.testing.assert_array_equal(got, wanted, err_msg=what)
