"""Short programs of driver calls, which run on any driver, and the results of their calls.

    python -m tests.driver.call_programs

records the results of all programs in recorded_calls.json again; this needs an H200. A program is a line of Python. A
call of a driver function records its values if it is a statement of its own and succeeds, and its status otherwise.
Calls whose values are assigned record nothing if they succeed. Other expressions record their value. Besides the
driver's functions and the names of the bindings, a program can use:

- `struct("CUDA_MEMCPY2D", Height=2)`, which returns a structure (see `tests.simulator.support.struct`);
- `number(99)`, which takes the place of an enumerator;
- `host(size)` and `page()`: the addresses of pageable memory and of a page of it;
- `kernel("one")`: a function of KERNELS, in its own module; `module` and `context`: their handles;
- `parameters(value, ...)`: the address of a list of addresses of kernel parameters of 8 bytes.
"""

import ast
import ctypes
import datetime
import json
import mmap
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cuda.bindings import driver as bindings

import cudart_py as cuda
from cudart_py.driver.backend import chosen
from tests.simulator.support import struct

RECORD = Path(__file__).with_name("recorded_calls.json")
KERNELS = """
__constant__ int table[4] = {1, 2, 3, 4};
__managed__ int counter = 6;
extern "C" __global__ void empty() {}
extern "C" __global__ void one(int *p) { if (p) *p = table[threadIdx.x & 3] + counter; }
extern "C" __global__ void __launch_bounds__(64) bounded(int *p) { if (p) p[threadIdx.x] = 1; }
extern "C" __global__ void __cluster_dims__(2, 1, 1) paired(int *p) { if (p) *p = 1; }
extern "C" __global__ void fixed_shared(int *p) {
    __shared__ int s[1024];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (p) p[threadIdx.x] = s[1023 - threadIdx.x];
}
"""
# Programs whose structures contain a number that is not an enumerator, such as a policy of 0.
_OTHER_NUMBERS = re.compile(r'number\(|give\(.*, 2\)|struct\("CUstreamAttrValue"\)')


class Number(int):
    """A number in the place of an enumerator."""

    @property
    def value(self) -> int:
        return int(self)

    @property
    def name(self) -> str:
        return f"number {int(self)}"


class Player:
    """Runs programs in the primary context of device 0."""

    def __init__(self) -> None:
        self.device = cuda.Device(0)
        self.device.__enter__()
        self.functions = chosen().functions
        self.module = cuda.compile(KERNELS)
        self.held: list[Any] = []
        self.results: list[Any] = []
        self.names = {
            "struct": struct,
            "number": Number,
            "host": self._host,
            "page": self._page,
            "kernel": lambda name: bindings.CUfunction(int(self.module[name].handle)),
            "parameters": self._parameters,
            "module": bindings.CUmodule(int(self.module.handle)),
            "context": self.functions.cuCtxGetCurrent()[1],
        }
        for name, value in vars(bindings).items():
            self.names |= getattr(value, "__members__", {})
            if re.match("cu[A-Z]", name) and not isinstance(value, type):
                self.names[name] = self._recording(name)
            elif name.startswith(("CU", "cuuint")):
                self.names[name] = value

    def play(self, setup: str, program: str) -> list[Any]:
        """Run a program after its setup, and return the results of the program's statements."""
        scope = dict(self.names)
        for part in (setup, program):
            self.results = []
            self._run(part, scope)
        self.functions.cuCtxSetCurrent(self.names["context"])
        self.functions.cuCtxSynchronize()
        return self.results

    def _run(self, program: str, scope: dict[str, Any]) -> None:
        for statement in ast.parse(program).body:
            self.is_bare = isinstance(statement, ast.Expr)
            if isinstance(statement, ast.Expr):
                before = len(self.results)
                value = eval(compile(ast.Expression(statement.value), program, "eval"), scope)
                if len(self.results) == before:
                    self.results.append(_plain(value))
            else:
                exec(compile(ast.Module([statement], []), program, "exec"), scope)

    def _recording(self, name: str) -> Any:
        def call(*arguments: Any) -> Any:
            status, *values = getattr(self.functions, name)(*arguments)
            if status:
                self.results.append(status.name.removeprefix("CUDA_ERROR_"))
            elif self.is_bare:
                self.results.append(_plain(values[0] if len(values) == 1 else values) if values else "SUCCESS")
            return values[0] if len(values) == 1 else values

        return call

    def _host(self, size: int) -> int:
        self.held.append(ctypes.create_string_buffer(size))
        return ctypes.addressof(self.held[-1])

    def _page(self) -> int:
        self.held.append(mmap.mmap(-1, mmap.PAGESIZE))
        return ctypes.addressof(ctypes.c_char.from_buffer(self.held[-1]))

    def _parameters(self, *values: int) -> int:
        cells = [ctypes.c_uint64(int(value)) for value in values]
        self.held += [cells, (ctypes.c_void_p * max(len(cells), 1))(*map(ctypes.addressof, cells))]
        return ctypes.addressof(self.held[-1])


def _plain(value: Any) -> Any:
    """Return a value as JSON has it, with names for enumerators."""
    if hasattr(type(value), "__members__"):
        return value.name
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else int(value)


def playable(programs: dict[str, Any]) -> dict[str, Any]:
    """Return the programs that the bindings can express: structures of older ones have only enumerators."""
    newer = tuple(map(int, version("cuda-bindings").split(".")[:2])) >= (13, 3)
    return {program: found for program, found in programs.items() if newer or not _OTHER_NUMBERS.search(program)}


def play_area(area: dict[str, Any]) -> dict[str, list[Any]]:
    """Run the programs of an area, each after the area's setup, and return the results of each."""
    player = Player()
    return {program: player.play("\n".join(area["setup"]), program) for program in playable(area["programs"])}


def print_area() -> None:
    """Run the area that the last argument names, and print the results of its programs as JSON."""
    areas = json.loads(RECORD.read_text())["areas"]
    print(json.dumps(play_area(areas[sys.argv[-1]])))


def write(record: dict[str, Any]) -> None:
    """Write a record, with one program per line."""
    lines = []
    for name, area in record["areas"].items():
        setup = ",\n".join(f"    {json.dumps(line)}" for line in area["setup"])
        programs = ",\n".join(f"    {json.dumps(program)}: {json.dumps(r)}" for program, r in area["programs"].items())
        lines.append(f'  "{name}": {{"setup": [\n{setup}\n  ], "programs": {{\n{programs}\n  }}}}')
    head = json.dumps({key: value for key, value in record.items() if key != "areas"})[:-1]
    RECORD.write_text(f'{head}, "areas": {{\n' + ",\n".join(lines) + "\n}}\n")


def main() -> None:
    """Record the results of all programs."""
    record = json.loads(RECORD.read_text())
    record |= {"device": cuda.Device(0).name, "driver": cuda.driver_version(), "date": f"{datetime.date.today()}"}
    for area in record["areas"].values():
        area["programs"] = play_area(area)
    write(record)


if __name__ == "__main__":
    main()
