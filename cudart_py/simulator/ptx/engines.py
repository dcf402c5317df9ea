"""Choose the engine that runs a launch: machine code through LLVM, or NumPy, which runs every kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .running import launch as numpy_engine

if TYPE_CHECKING:
    from .native.machine import CodeCache
    from .running.launch import LaunchState

__all__ = ["run"]


def run(
    *arguments: Any, engine: str = "numpy", code_cache: CodeCache | None = None, threads: int = 1, **options: Any
) -> None:
    """Execute a launch to its end, as `running.launch.run`; `engine` is ``numpy``, ``native`` or ``auto``.

    The native engine leaves to NumPy's what it lacks; ``auto`` leaves it all that isn't worth compiling, and all whose
    results depend on the order of atomics. `code_cache` keeps its machine code between processes, and up to so
    many `threads` run the blocks of a launch.
    """
    native: Callable[[LaunchState], bool] | None = None
    if engine != "numpy" and find_spec("llvmlite") is not None:
        from .native.engine import run_native  # because llvmlite is an extra

        native = partial(run_native, store=code_cache, threads=threads, choose=engine == "auto")
    numpy_engine.run(*arguments, native=native, **options)
