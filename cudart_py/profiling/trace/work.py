"""The work that a driver call queues in a stream: its kind, its stream, and facts about it."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from ...compilation.names.demangling import function_name
from ...driver.calls import raw

_QUEUES = re.compile(r"cu(?:Launch\w+|Memcpy\w*|Memset\w+|MemPrefetch\w*|MemDiscard\w*|GraphLaunch)")
# The index of the argument that contains the number of bytes.
_BYTES = {"cuMemcpyPeer": 4, "cuMemcpyPeerAsync": 4}
_BYTES |= {f"cuMemcpy{kind}{end}": 2 for kind in ("", "HtoD", "DtoH", "DtoD") for end in ("", "Async")}
_GRID, _STREAM_OF_LAUNCH = slice(1, 7), 8


class Work(NamedTuple):
    """A piece of work: its name, its category, the handle of its stream as an int, and facts for the reader."""

    name: str
    category: str
    stream: int
    facts: dict[str, Any]


def work_of(name: str, arguments: tuple[Any, ...]) -> Work | None:
    """Return the work that a call of the driver function `name` queues, or None if it queues none."""
    if not _QUEUES.fullmatch(name):
        return None
    if name == "cuLaunchHostFunc":
        return Work("host function", "host function", int(arguments[0]), {})
    if name == "cuLaunchKernelEx":
        config = arguments[0]
        grid = [config.gridDimX, config.gridDimY, config.gridDimZ]
        block = [config.blockDimX, config.blockDimY, config.blockDimZ]
        return _launch(arguments[1], grid, block, int(config.hStream))
    if name.startswith("cuLaunch"):
        extents = [int(extent) for extent in arguments[_GRID]]
        return _launch(arguments[0], extents[:3], extents[3:], int(arguments[_STREAM_OF_LAUNCH]))
    # In all other functions, the stream is the last argument. The blocking ones use the legacy default stream.
    stream = int(arguments[-1]) if name.endswith("Async") or name == "cuGraphLaunch" else 0
    facts = {"bytes": int(arguments[_BYTES[name]])} if name in _BYTES else {}
    if name == "cuGraphLaunch":
        return Work("graph", "graph", stream, facts)
    kind = name.removeprefix("cu").removesuffix("Async")
    category = re.match(r"Mem(?:cpy|set|Prefetch|Discard)", kind)
    return Work(_spelled(kind), category[0].lower() if category else "memory", stream, facts)


def _spelled(kind: str) -> str:
    """Return the name of a copy or fill: "MemcpyHtoD" is "memcpy HtoD"."""
    return re.sub(r"^(Memcpy|Memset|MemPrefetch|MemDiscard)", lambda match: f"{match[0].lower()} ", kind).strip()


def _launch(function: Any, grid: list[int], block: list[int], stream: int) -> Work:
    return Work(_kernel_name(int(function)), "kernel", stream, {"grid": grid, "block": block})


@functools.lru_cache(maxsize=1024)
def _kernel_name(function: int) -> str:
    status, found = raw.cuFuncGetName(function)
    if status or not found:
        return "kernel"
    return function_name(found.decode())
