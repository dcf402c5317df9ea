"""A program of a public suite, and how its device code is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import cudart_py as cuda

from .source import PRELUDE, device_code

Array = np.ndarray[Any, np.dtype[Any]]


class Build:
    """What a program's host is given: a compiler of the suite's files, and random numbers."""

    def __init__(self, folder: Path, files: Sequence[str], seed: int) -> None:
        self._paths = [folder / file for file in files]
        self.random = np.random.default_rng(seed)

    def __call__(self, names: Sequence[str] = (), *, omit: Sequence[str] = (), before: str = "") -> cuda.Module:
        """Compile the files' device code, one after another, and load it.

        `names` instantiates templates, `omit` names host declarations that the rule of `device_code` takes for the
        device's, and `before` is a text that comes first, such as a type that a header of the host declares.
        """
        # Some files have names of authors in other encodings than UTF-8.
        texts = [path.read_text(encoding="utf-8", errors="replace") for path in self._paths]
        parts = [device_code(text, path.name, omit) for text, path in zip(texts, self._paths, strict=True)]
        return cuda.compile("\n".join([PRELUDE, before, *parts]), names=names)

    def floats(self, *shape: int, low: float = -1.0, high: float = 1.0) -> Array:
        """Return random single-precision numbers between two bounds."""
        return self.random.uniform(low, high, shape).astype(np.float32)


class Program(NamedTuple):
    """A program: its suite, the files its device code is in, and its host.

    The host's docstring says what the program is here for and, after a colon, what it does.

    The host allocates, launches, and raises AssertionError where a result differs from the reference. A warning of
    the simulator that names one of the kernels in `own` is right, since the program has a mistake there; `why` says
    which.
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
    """Return what makes decorators that list a host among the programs of a suite.

    Such a decorator takes the program's name, its files, separated by blanks, in the folder, where `{name}` stands for
    the name, and where it has a mistake of its own `own` and `why` of `Program`.
    """

    def of_program(name: str, files: str, own: tuple[str, ...] = (), why: str = "") -> Callable[[Host], Host]:
        def of_host(run: Host) -> Host:
            paths = [f"{folder.format(name=name)}/{file}" for file in files.split()]
            PROGRAMS.append(Program(name, suite, paths, run, own, why))
            return run

        return of_host

    return of_program


def ceil_div(count: int, size: int) -> int:
    """Return how many pieces of a size cover a count."""
    return -(-count // size)


def check_close(got: Any, wanted: Any, rtol: float, atol: float = 0.0, what: str = "") -> None:
    """Compare with a reference of higher precision; `atol` is relative to the reference's largest magnitude."""
    largest = float(np.max(np.abs(wanted), initial=0))
    np.testing.assert_allclose(np.asarray(got, np.float64), wanted, rtol=rtol, atol=atol * largest, err_msg=what)


def check_equal(got: Any, wanted: Any, what: str = "") -> None:
    """Compare exactly."""
    np.testing.assert_array_equal(got, wanted, err_msg=what)
