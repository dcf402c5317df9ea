"""Choose the engine that runs a launch: machine code through LLVM, or NumPy, which runs every kernel."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .native.compile_policy import CompilePolicy, compile_policy, note_seconds, numpy_seconds

if TYPE_CHECKING:
    from .native.launching.runs import ThreadContext
    from .native.machine import CodeCache
    from .running.launch import LaunchState

# A launch whose accesses can't all be recorded runs without an observer if it would take NumPy longer than this.
_MOST_SECONDS_WITHOUT_RECORDS = 0.1


def native_engine(
    engine: str,
    *,
    code_cache: CodeCache | None = None,
    threads: int = 1,
    in_thread: ThreadContext = nullcontext,
) -> MachineCode | None:
    """Return the native engine for `run`, or None for launches that NumPy runs; `engine` is numpy, native or auto.

    The native engine leaves launches that it doesn't support to the NumPy engine. With ``auto``, NumPy also runs the
    launches that aren't worth compiling. `code_cache` keeps machine code between processes. Up to `threads` threads run
    the blocks of a launch, each except the caller's within a context that `in_thread` returns.
    """
    if engine == "numpy" or not has_llvmlite():
        return None
    return MachineCode(engine == "auto", code_cache, threads, in_thread)


@cache
def has_llvmlite() -> bool:
    """Return whether llvmlite is installed; without it, every engine is ``numpy``."""
    return find_spec("llvmlite") is not None


@cache
def _machine_code() -> tuple[Any, str]:
    """Return the function that runs launches in machine code, or None and the reason; the process keeps the answer."""
    try:
        # llvmlite is an extra, and takes a tenth of a second to import.
        from .native.engine import run_native
    except (ImportError, OSError, MemoryError) as error:
        # Its library is large: if the process's memory is limited, there may be no room for it.
        return None, f"llvmlite, which can't be loaded: {error}"
    return run_native, ""


class MachineCode:
    """The engine that runs launches in machine code; with `choose`, only launches that are worth compiling."""

    def __init__(self, choose: bool, code_cache: CodeCache | None, threads: int, in_thread: ThreadContext) -> None:
        self._choose = choose
        self._code_cache = code_cache
        self._threads = threads
        self._in_thread = in_thread

    def run(self, state: LaunchState) -> bool:
        """Run a launch in machine code and return True, or return False if the NumPy engine must run it."""
        value = compile_policy(state, self._code_cache) if self._choose else CompilePolicy.COMPILING
        if value == CompilePolicy.NOTHING:
            return False
        run_native, lack = _machine_code()
        if run_native is None:
            state.program.unsupported_reason = lack
            return False
        ran: bool = run_native(
            state,
            self._code_cache,
            compiles=value == CompilePolicy.COMPILING,
            threads=self._threads,
            in_thread=self._in_thread,
        )
        if ran or state.observer is None or not state.observer.lacks_records():
            return ran
        is_long = numpy_seconds(state) > _MOST_SECONDS_WITHOUT_RECORDS
        return is_long and self.run_without_observer(state)

    def run_without_observer(self, state: LaunchState) -> bool:
        """Run the blocks that are left of a long launch in machine code, or return False if the NumPy engine must."""
        run_native, _ = _machine_code()
        if run_native is None or math.prod(state.launch.cluster) > 1 or state.launch.cooperative:
            return False
        observer, state.observer = state.observer, None
        ran: bool = run_native(state, self._code_cache, threads=self._threads, in_thread=self._in_thread)
        if not ran:
            state.observer = observer
        return ran

    def after(self, state: LaunchState) -> None:
        """Record what a launch has cost with NumPy."""
        if self._choose:
            note_seconds(state, self._code_cache)
