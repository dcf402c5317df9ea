"""A small memory and a runner, to execute kernels with the PTX machine alone, without a driver."""

import itertools
import mmap
import os
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cudart_py.compilation import cache, headers
from cudart_py.compilation.programs import library_path, library_version, run_nvrtc
from cudart_py.simulator.checks.launch_checks import LaunchChecks
from cudart_py.simulator.ptx import Fault, Launch, Module, load_module, native_engine, run
from cudart_py.simulator.ptx.compiling.program import Program, program_of
from cudart_py.simulator.state.memory.records.shadow import ShadowMemory

# The first lines of a module that is written by hand.
HEAD = ".version 8.7\n.target sm_90\n.address_size 64\n"
PROPERTIES = {"sm_count": 132, "warp_size": 32, "stack_limit": 1024, "malloc_heap": 8 << 20}


class Memory:
    """An allocator of pieces of one anonymous mapping, with a gap after each."""

    def __init__(self, size: int = 1 << 27) -> None:
        self._map = mmap.mmap(-1, size)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, np.uint8)
        self.base = int(self.bytes.ctypes.data)
        self.generation = 0
        self.heap: set[int] = set()
        self.shadows: dict[int, ShadowMemory] = {}
        self._next = 4096
        self._live: dict[int, int] = {}
        self._extents = np.zeros(0, np.int64), np.zeros(0, np.int64)

    def new(self, size: int) -> int:
        """Allocate `size` bytes at a multiple of 256."""
        address = self.base + self._next
        self._next += (size + 255) // 256 * 256 + 256
        self._live[address] = size
        self.generation += 1
        return address

    def end(self, address: int) -> None:
        del self._live[address]
        self.generation += 1

    def allocate(self, size: int) -> int:
        address = self.new(size)
        self.heap.add(address)
        return address

    def release(self, address: int) -> bool:
        if address not in self.heap:
            return False
        self.heap.remove(address)
        self.end(address)
        return True

    def view(self, address: int, count: int, dtype: Any) -> NDArray[Any]:
        start = address - self.base
        return self.bytes[start : start + count * np.dtype(dtype).itemsize].view(dtype)

    def put(self, array: NDArray[Any]) -> int:
        address = self.new(array.nbytes)
        self.view(address, array.nbytes, np.uint8)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return address

    def extents(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the starts and ends of the allocations: the same arrays until the allocations change."""
        starts = sorted(self._live)
        extents = np.array(starts, np.int64), np.array([start + self._live[start] for start in starts], np.int64)
        if not all(map(np.array_equal, extents, self._extents)):
            self._extents = extents
        return self._extents

    def shadow(self, start: int) -> ShadowMemory:
        return self.shadows.setdefault(start, ShadowMemory(start, self._live[start], True))

    def describe(self, address: int) -> str:
        for start, size in self._live.items():
            if start <= address < start + size + 256:
                return f"{address - start} bytes from the start of {size}"
        return "no allocation is near it"

    def is_freed(self, address: int) -> bool:
        return False


def storing(result: str, body: str, before: str = "") -> Module:
    """Return a module whose kernel `k` runs a body and stores each thread's 32-bit register `result` to an array."""
    return load_module(f"""{HEAD}{before}.visible .entry k(.param .u64 words) {{
        {body}
        .reg .b64 word; .reg .b32 thread;
        ld.param.u64 word, [words]; mov.u32 thread, %tid.x; mad.wide.u32 word, thread, 4, word;
        st.global.b32 [word], {result};
    }}""")


@lru_cache(maxsize=32)
def ptx_of(source: str, options: tuple[str, ...] = ()) -> str:
    """Compile CUDA C++ to PTX only, without assembling it."""
    folders = headers.find(library_version(), library_path()).folders
    fixed = ["--gpu-architecture=compute_90", "-lineinfo", "--std=c++17", *(f"-I{folder}" for folder in folders)]
    return run_nvrtc(source.encode(), name="test.cu", options=[*fixed, *options]).ptx.decode()


class LibraryCache:
    """The compile cache, used only for the functions that the machine code of all kernels calls, such as `exp`.

    Otherwise each worker of pytest-xdist would compile them. Kernels are compiled anew in each test.
    """

    def make_key(self, parts: Iterable[str | bytes]) -> str:
        parts = list(parts)
        return cache.make_key(parts) if parts[-2] == "function" else ""

    def load(self, key: str, restore: Callable[[Any, list[bytes]], Any]) -> Any:
        return cache.load(key, restore) if key else None

    def store(self, key: str, description: Any, images: Sequence[bytes]) -> None:
        if key:
            cache.store(key, description, images)


class Kernels:
    """Compile a source, place its variables, and launch its kernels; `printed` lists their output.

    The default `engine` is the one that `CUDART_PY_SIMULATOR_ENGINE` names, so that all tests can run on either engine.
    """

    def __init__(self, source: str | Module, *options: str, engine: str = "") -> None:
        self.threads = 1
        # What keeps machine code between modules and processes; by default, only that of the library's functions.
        self.code_cache: Any = LibraryCache()
        self.engine = engine or os.environ.get("CUDART_PY_SIMULATOR_ENGINE", "numpy")
        self.memory = Memory()
        self.module = source if isinstance(source, Module) else load_module(ptx_of(source, options))
        self.printed: list[str] = []
        self.symbols = {name: self.memory.new(max(v.size, 1)) for name, v in self.module.variables.items()}
        for name, variable in self.module.variables.items():
            data = bytearray(variable.initial)
            for offset, symbol, addend in variable.relocations:
                target = self.symbols.get(symbol, self.module.function_addresses.get(symbol, 0)) + addend
                data[offset : offset + 8] = target.to_bytes(8, "little")
            self.memory.view(self.symbols[name], len(data), np.uint8)[:] = np.frombuffer(bytes(data), np.uint8)

    def launch(
        self,
        name: str,
        grid: int | tuple[int, int, int],
        block: int | tuple[int, int, int],
        *arguments: Any,
        steps: int | None = 1_000_000,
        observer: Any = None,
        clock: Any = None,
        **options: Any,
    ) -> None:
        """Pack the arguments according to the sizes of the parameters, and run the kernel."""
        entry = self.module.entries[name]
        data = bytearray(entry.parameter_bytes)
        for parameter, argument in zip(entry.params, arguments, strict=True):
            if isinstance(argument, int):
                raw = (argument & ((1 << 8 * parameter.size) - 1)).to_bytes(parameter.size, "little")
            else:
                raw = bytes(argument) if isinstance(argument, bytes) else argument.tobytes()
            data[parameter.offset : parameter.offset + parameter.size] = raw
        shapes = [shape if isinstance(shape, tuple) else (shape, 1, 1) for shape in (grid, block)]
        launch = Launch(entry, shapes[0], shapes[1], parameters=bytes(data), **options)
        native = native_engine(self.engine, threads=self.threads, code_cache=self.code_cache)
        run(
            self.module, launch, self.memory, symbols=self.symbols, print_=self.printed.append, steps=steps,
            properties=PROPERTIES, observer=observer, clock=clock, native=native,
        )  # fmt: skip  # grouped by meaning

    def agree(
        self, name: str, grid: Any, block: Any, *arguments: Any, observe: Any = None, **options: Any
    ) -> list[Any]:
        """Launch a kernel with each engine on copies of the arrays among the arguments; return what it leaves in them.

        Both engines must leave the same, and observers of the type `observe` must count the same.
        """
        left, counts = [], []
        for self.engine in ("numpy", "native"):
            addresses = {n: self.put(one) for n, one in enumerate(arguments) if isinstance(one, np.ndarray)}
            given = [addresses.get(n, one) for n, one in enumerate(arguments)]
            observer = observe and observe()
            self.launch(name, grid, block, *given, observer=observer, **options)
            left.append([self.get(at, arguments[n].size, arguments[n].dtype) for n, at in addresses.items()])
            counts.append(getattr(observer, "metrics", None))
        for exact, native in zip(*left, strict=True):
            np.testing.assert_array_equal(native.view(np.uint8), exact.view(np.uint8))
        assert counts[1] == counts[0]
        return left[0]

    def fault(self, name: str, grid: Any, block: Any, *arguments: Any, **options: Any) -> str:
        """Return the report of a launch that fails; it must be the same with each engine, with and without checks.

        Checked machine code must report it without a second run by the NumPy engine.
        """
        reports = []
        for self.engine, observer in itertools.product(("numpy", "native"), (None, LaunchChecks())):
            with pytest.raises(Fault) as caught:
                self.launch(name, grid, block, *arguments, observer=observer, **options)
            reports.append(str(caught.value))
        assert len(set(reports)) == 1, reports
        assert self.ran_natively(name), self.program(name).unsupported_reason
        assert not any(kernel.recorded.doubts for kernel in self.program(name).native.values() if kernel is not None)
        return reports[0]

    def program(self, name: str) -> Program:
        return program_of(self.module.entries[name])

    def ran_natively(self, name: str) -> bool:
        return any(self.program(name).native.values())

    def put(self, array: NDArray[Any]) -> int:
        return self.memory.put(array)

    def zeros(self, count: int, dtype: Any = np.int32) -> int:
        return self.memory.put(np.zeros(count, dtype))

    def get(self, address: int, count: int, dtype: Any = np.int32) -> NDArray[Any]:
        return self.memory.view(address, count, dtype).copy()
