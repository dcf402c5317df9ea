"""Collect the lines of a Python function made of NumPy calls, and the objects that they name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..syntax.types import DTYPES

# The NumPy types, keyed by their short names, which generated lines use.
NAMESPACE: dict[str, Any] = {name: np.dtype(name) for name in sorted(set(DTYPES.values()) - {"?"})}
NAMESPACE["np"] = np


class Source:
    """The lines of a function; `namespace` receives every constant, function and instruction that they name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.namespace: dict[str, Any] = {}
        self._constants: dict[tuple[str, bytes], str] = {}
        self._temporaries = 0
        self._indent = ""

    def emit(self, line: str) -> None:
        """Add one line."""
        self.lines.append(self._indent + line)

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Indent the lines that are added in this context."""
        self._indent += "    "
        yield
        self._indent = self._indent[4:]

    def temporary(self) -> str:
        """Return a fresh variable name."""
        self._temporaries += 1
        return f"t{self._temporaries}"

    def bind(self, name: str, value: Any) -> str:
        """Bind a name to a value for the generated lines, and return the name."""
        self.namespace[name] = value
        return name

    def constant(self, value: Any) -> str:
        """Return the name of a NumPy scalar, which is bound on first use."""
        key = (value.dtype.str, value.tobytes())
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f"k{len(self._constants)}"
            self.namespace[name] = value
        return name

    def compile(self, name: str, arguments: str, filename: str) -> Any:
        """Compile the lines, and return the function."""
        body = "\n    ".join(self.lines or ["pass"])
        names = {**NAMESPACE, **self.namespace}
        exec(compile(f"def {name}({arguments}):\n    {body}\n", filename, "exec"), names)
        return names[name]
