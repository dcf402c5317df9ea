"""Generate the code that counts blocks and accesses for an observer, and report the counts after a launch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.analysis.wait_loops import Waiting, reads_clock
from ...compiling.opcode_table.opcodes import form_of
from ...running.observer import AccessCount, BlockCount
from ..instances import Layout, Place
from ..layout import Context, Count
from ..vectors import I64

if TYPE_CHECKING:
    from ..launching.launch import NativeLaunch
    from .flow import Flow

Value = Any

_COUNT_BYTES = 8 * Count.WORDS
_BLOCK_BYTES = 16
_WORD = 4
# The spaces in which an access to the key's space is counted. Lanes of a generic access are counted separately by
# space.
_SPACES = {
    "global": ("global",),
    "const": ("const",),
    "shared": ("shared",),
    "local": ("local",),
    "generic": ("global", "shared", "local"),
}
# The kinds of counts in `library.counts`. Passes over the rows of matrices don't merge, as those of stores.
_KINDS = {"ld": "load", "bypass": "bypass", "st": "store", "ldsm": "store", "atom": "atomic", "red": "atomic"}


class Counting:
    """The generator of the counting code in a warp's function."""

    def __init__(self, flow: Flow) -> None:
        self._b = flow.b
        self._sites = flow.sites
        self._blocks = flow.b.pointer(flow.context, Context.BLOCK_COUNTS)
        self._accesses = flow.b.pointer(flow.context, Context.ACCESS_COUNTS)

    def block(self, number: int, mask: Value) -> None:
        """Count one execution of a basic block by a warp whose active lanes are in `mask`."""
        b, start = self._b, _BLOCK_BYTES * number
        for place, count in ((start, I64(1)), (start + 8, b.zext(b.ones(mask), I64))):
            word = b.at(self._blocks, place)
            b.store(b.add(b.load(word, typ=I64), count), word)

    def access(self, kind: str, space: str, address: Value, size: int, site: int, mask: Value) -> None:
        """Count an access of `size` bytes."""
        b = self._b
        spaces = _SPACES.get(space)
        if spaces is None:
            return
        form = form_of(self._sites.sites[site].instruction)
        if form.row.access == "cp":
            if kind == "st":
                return  # in hardware, the copies' writes to shared memory have counters of their own
            kind = "bypass" if "cg" in form.words else kind
        row = self._sites.count(site, kind, spaces, size)
        # Constants are read from global memory.
        name = f"count.{'global' if space == 'const' else space}.{_KINDS[kind]}.{max(1, size // _WORD)}"
        b.invoke(name, ir.VoidType(), b.at(self._accesses, _COUNT_BYTES * row), address, mask)

    def row(self, site: int, kind: str, space: str) -> Value:
        """Return the pointer to a new row of counts."""
        return self._b.at(self._accesses, _COUNT_BYTES * self._sites.count(site, kind, (space,), 0))


def depends_on_order(layout: Layout, loops: Iterable[tuple[int, int]]) -> bool:
    """Return whether the number of iterations of a loop may depend on the order of lanes, which differs by engine.

    Each loop is given by the numbers of its last and first blocks.
    """
    return any(_sees_others(place) for end, start in loops for place in layout.places[start : end + 1])


def _sees_others(place: Place) -> bool:
    """Return whether a block may wait for other lanes or a clock, or uses the previous value of an atomic."""
    code = place.instance.code
    for instruction in place.block.instructions:
        if reads_clock(instruction):
            return True
        if form_of(instruction).row.access == "atom":
            found = set(code.touched(instruction)[1])
            if any(found.intersection(code.touched(other)[0]) for other in code.function.instructions):
                return True
    return place.block.waiting == Waiting.POLLS


def report_counts(launch: NativeLaunch) -> None:
    """Report the counts of a launch to its observer."""
    observer, kernel = launch.state.observer, launch.kernel
    assert observer is not None
    counted = launch.block_counts.tolist()
    blocks = [
        BlockCount(place.instance.code, place.block, warps, lanes)
        for place, (warps, lanes) in zip(kernel.layout.places, counted, strict=True)
        if warps
    ]
    rows = launch.access_counts[:, [Count.TIMES, Count.FIRST, Count.SECOND]].tolist()
    accesses = []
    for (number, kind, space, size), (times, first, second) in zip(kernel.sites.counted, rows, strict=True):
        if times:
            site = kernel.sites.sites[number]
            accesses.append(AccessCount(site.instance.code, site.instruction, kind, space, size, times, first, second))
    observer.counted(blocks, accesses)
