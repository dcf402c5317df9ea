"""The counters of a launch: an observer of the PTX machine whose counts follow those of the hardware.

Counts are kept per instruction and per basic block, and summed per source line at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.running.memory.addresses import Address, Mixed
from ..ptx.running.observer import AccessCount, BlockCount, MatrixPiece, MatrixRows, Observer
from ..ptx.syntax.instructions import Access, Register
from .banks import count_wavefronts
from .chains import longest_chains
from .machine_code import ONE, machine_code
from .metrics import Tally, metrics, total
from .sectors import count_atomic_sectors, count_different, count_sectors, run_sectors
from .warp_rows import WarpRows, rows_of, warps_of

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block, Code
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.syntax.instructions import Instruction

ndarray = np.ndarray
Line = tuple[str, int]


class LaunchCounters(Observer):
    """The counters of one launch; after its end, `lines` and `metrics` have the results."""

    watch = frozenset({"counters"})

    def __init__(self) -> None:
        self.kernel = ""
        self.grid = self.block_shape = (0, 0, 0)
        self.lines: dict[Line, dict[str, float]] = {}
        self.metrics: dict[str, float] = {}
        # The texts of sources that are not files, keyed by name.
        self.sources: dict[str, str] = {}
        self._blocks: dict[int, list[Any]] = {}
        self._sites: dict[int, tuple[Instruction, Tally]] = {}
        self._kinds: dict[int, str] = {}

    def start(self, state: LaunchState) -> None:
        """Record the launch's shape."""
        launch = state.launch
        self.kernel, self.grid, self.block_shape = launch.entry.name, launch.grid, launch.block

    def block(self, group: Group, block: Block) -> None:
        """Count the instructions of a basic block, once per warp and once per lane."""
        self._add_block(group.code, block, warps_of(group), group.n)

    def _add_block(self, code: Code, block: Block, warps: int, lanes: int) -> None:
        counts = self._blocks.get(id(block))
        if counts is None:
            counts = self._blocks[id(block)] = [code, block, 0, 0]
        counts[2] += warps
        counts[3] += lanes

    def access(
        self, group: Group, kind: str, address: Address | Mixed, offset: int, size: int, site: Instruction, *_: Any
    ) -> None:
        """Count an access's requests, sectors or wavefronts."""
        known = self._sites.get(id(site))
        if known is None:
            known = self._sites[id(site)] = site, {}
            self._kinds[id(site)] = _kind(group.code, kind, site)
        if kind == "mbarrier":
            return  # it is not known how the hardware counts mbarrier operations
        if form_of(site).space == "const":
            # Constants have their own cache. The hardware reads a constant at a fixed address as an operand of the
            # instruction that uses it, without a load. Only accesses through an address in a register are counted.
            if not isinstance(address, Mixed) and _by_register(site):
                _add(known[1], ("requests", "const", "ld"), _constant_requests(group, address, offset))
            return
        kind = self._kinds[id(site)] if kind == "atom" else kind
        tally = known[1]
        if isinstance(address, Address):
            # This is much more frequent, and making a list of one part takes a twelfth of the time of a single thread.
            self._count(tally, group, kind, address, offset, size, None, site)
            return
        for positions, part in address.parts:
            self._count(tally, group, kind, part, offset, size, positions, site)

    def matrix(
        self, group: Group, kind: str, pieces: Sequence[MatrixPiece], rows: MatrixRows | None, site: Instruction
    ) -> None:
        """Count the rows of `ldmatrix` and `stmatrix` as 16-byte accesses: eight rows take one wavefront.

        Nsight Compute has a separate counter for `ldmatrix` instructions, which its rule on bank conflicts adds to the
        other loads from shared memory. It counts the wavefronts and conflicts of `ldmatrix` with those of the loads.
        `stmatrix` is assumed to have no counter of its own: its instructions, wavefronts and conflicts are counted with
        those of the stores. `wmma` is not counted: it has no row addresses, and the loads and stores that the assembler
        generates for it are unknown.
        """
        if rows is not None:
            tally = self._sites.setdefault(id(site), (site, {}))[1]
            wavefronts, conflicts = _wavefronts(group, rows.address, 0, 16, rows.positions, False)
            _add(tally, ("instructions", "shared", "ldsm" if kind == "ld" else kind), warps_of(group))
            _add(tally, ("wavefronts", "shared", kind), wavefronts)
            _add(tally, ("conflicts", "shared", kind), conflicts)

    def texture(self, group: Group, positions: Any, places: Any, site: Instruction) -> None:
        """Count a fetch's requests and the sectors of its texels."""
        tally = self._sites.setdefault(id(site), (site, {}))[1]
        rows = WarpRows(group, positions)
        arranged = np.concatenate([rows.arrange(column) for column in places.T], axis=1)
        borders = np.count_nonzero((arranged < 0).any(axis=1))
        _add(tally, ("requests", "texture", "ld"), rows.count)
        # `count_sectors` counts the entries of a row that have no texel (-1) as one sector, which is subtracted here.
        _add(tally, ("sectors", "texture", "ld"), count_sectors(arranged) - int(borders))

    def counted(self, blocks: Iterable[BlockCount], accesses: Iterable[AccessCount]) -> None:
        """Add the counts that machine code has taken."""
        for one in blocks:
            self._add_block(one.code, one.block, one.warps, one.lanes)
        for found in accesses:
            tally = self._sites.setdefault(id(found.site), (found.site, {}))[1]
            _add_counted(tally, found, _kind(found.code, found.kind, found.site))

    def finish(self, state: LaunchState) -> None:
        """Sum the counts per source line."""
        places = state.launch.entry.module.places
        self.sources = places.texts
        by_line: dict[Line, Tally] = {}

        def add(file: int, line: int, counts: Tally) -> None:
            tally = by_line.setdefault((places.files.get(file, ""), line), {})
            for key, count in counts.items():
                _add(tally, key, count)

        executed: dict[tuple[int, int], list[int]] = {}
        for code, block, warps, lanes in self._blocks.values():
            for instruction in executed_instructions(block):
                sums = executed.setdefault((instruction.file, instruction.line), [0, 0])
                sums[0] += warps
                sums[1] += lanes
            # A guarded instruction has its own block, so it counts only for the lanes whose guard is true.
            for instruction in block.instructions:
                form = form_of(instruction)
                if form.row.arithmetic:
                    add(instruction.file, instruction.line, {(form.row.arithmetic, form.type, ""): lanes})
                made = machine_code(form)
                if made != ONE:
                    further = {"issued": made.issued - 1, "xu": made.special, "fp64": made.double}
                    counts = {(what, "", ""): count * warps for what, count in further.items() if count}
                    add(instruction.file, instruction.line, counts)
            for instruction, waits in longest_chains(code).get(block.index, ()):
                counts = {("waits", reason, ""): times * warps for reason, times in waits}
                add(instruction.file, instruction.line, counts)
        for (file, line), (warps, lanes) in executed.items():
            add(file, line, {("warps", "", ""): warps, ("lanes", "", ""): lanes, ("issued", "", ""): warps})
        for site, counts in self._sites.values():
            add(site.file, site.line, counts)
        self.lines = {key: metrics(by_line[key]) for key in sorted(by_line)}
        self.metrics = metrics(total(by_line.values()))
        self._blocks, self._sites, self._kinds = {}, {}, {}

    def _count(
        self,
        tally: Tally,
        group: Group,
        kind: str,
        address: Address,
        offset: int,
        size: int,
        positions: Any,
        site: Instruction,
    ) -> None:
        space = address.space.name
        if space not in ("global", "shared", "local"):
            return
        kind = _kind_in(space, kind)
        warps = warps_of(group) if positions is None else WarpRows(group, positions).count
        _add(tally, ("instructions", space, kind), warps)
        if space == "shared":
            wavefronts, conflicts = _wavefronts(group, address, offset, size, positions, kind == "atom")
            _add(tally, ("wavefronts", space, kind), wavefronts)
            _add(tally, ("conflicts", space, kind), conflicts)
            return
        _add(tally, ("requests", space, kind), warps)
        if space == "local":
            sectors = _local_sectors(group, address, offset, size, positions)
        elif kind in ("atom", "red"):
            sectors, alone = _atomic_sectors(group, address, offset, positions, warps)
            _add(tally, ("atomic cycles", space, ""), alone if _is_float(site) else sectors)
        else:
            sectors, used = _sectors_and_bytes(group, address, offset, size, positions, warps)
            _add(tally, ("bytes", space, kind), used)
        _add(tally, ("sectors", space, kind), sectors)


def _is_float(site: Instruction) -> bool:
    """Return whether an atomic is one of floating-point numbers, which the compiler does not combine within a warp."""
    return form_of(site).type in ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")


def _kind_in(space: str, kind: str) -> str:
    """Return the kind under which an access is counted in a memory space."""
    if kind in ("atom", "red") and space != "global":
        return "atom" if space == "shared" else "st"
    return kind


def _add_counted(tally: Tally, found: AccessCount, kind: str) -> None:
    space = found.space
    if space == "const":
        _add(tally, ("requests", space, kind), found.second)
        return
    kind = _kind_in(space, kind)
    if space != "texture":
        _add(tally, ("instructions", space, kind), found.times)
    if space == "shared":
        kind = "ld" if kind == "ldsm" else kind
        _add(tally, ("wavefronts", space, kind), found.first)
        _add(tally, ("conflicts", space, kind), found.second)
        return
    _add(tally, ("requests", space, kind), found.times)
    _add(tally, ("sectors", space, kind), found.first)
    if space == "global" and kind in ("ld", "st"):
        _add(tally, ("bytes", space, kind), found.size * found.second)
    elif space == "global":
        _add(tally, ("atomic cycles", space, ""), found.second if _is_float(found.site) else found.first)


def _add(tally: Tally, key: tuple[str, str, str], count: int) -> None:
    tally[key] = tally.get(key, 0) + count


def executed_instructions(block: Block) -> list[Instruction]:
    """Return the instructions that count as executed for a basic block.

    The branch around a guarded instruction stands for that instruction, because the hardware counts a predicated
    instruction as executed by all active lanes of the warp.
    """
    terminator = block.terminator
    found = [instruction for instruction in block.instructions if instruction.guard is None]
    last = terminator.instruction
    if last is not None and (last.guard is None or terminator.kind in ("branch", "next")):
        found.append(last)
    return found


def _kind(code: Code, kind: str, site: Instruction) -> str:
    """Return the kind of an access; as in hardware, an atomic counts as a reduction if its result is never read."""
    if kind != "atom":
        return kind
    results = set(code.touched(site)[1])
    used = any(results.intersection(code.touched(other)[0]) for other in code.function.instructions)
    return "atom" if used else "red"


def _sectors_and_bytes(
    group: Group, address: Address, offset: int, size: int, positions: Any, warps: int
) -> tuple[int, int]:
    """Return the sectors of the warps' accesses and the bytes that lanes use; bytes that lanes share count once."""
    places = address.places
    if places.__class__ is not ndarray:
        return warps, warps * size
    key = "sectors", offset % 32, size
    counts: tuple[int, int] | None = address.notes.get(key)
    if counts is None:
        rows = rows_of(group) if positions is None else WarpRows(group, positions)
        start = address.run_start(size) if rows.present is None else -1
        # Offsets count from the region's start, which is aligned to a sector.
        if start >= 0:
            counts = run_sectors(start + offset, size, warps), 32 * size * warps
        else:
            arranged = rows.arrange(places if not offset % 32 else places + offset)
            # Accesses are aligned, so accesses at different offsets do not overlap.
            counts = count_sectors(arranged), size * count_different(arranged)
        address.notes[key] = counts
    return counts


def _by_register(site: Instruction) -> bool:
    access = site.operands[1]
    return isinstance(access, Access) and isinstance(access.base, Register)


def _constant_requests(group: Group, address: Address, offset: int) -> int:
    """Return the number of requests: one for each distinct address of each warp."""
    places = address.places
    if places.__class__ is not ndarray:
        return warps_of(group)
    return count_different(rows_of(group).arrange(places + offset))


def _atomic_sectors(group: Group, address: Address, offset: int, positions: Any, warps: int) -> tuple[int, int]:
    places = address.places
    lanes = group.n if positions is None else len(positions)
    if places.__class__ is not ndarray:
        return warps, lanes
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    return count_atomic_sectors(rows.arrange(places + offset), rows.present)


def _local_sectors(group: Group, address: Address, offset: int, size: int, positions: Any) -> int:
    """Return the sectors of an access to local memory, which interleaves the words of a warp's lanes."""
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    chunk = group.chunk
    lanes = group.lane_numbers if positions is None else group.lane_numbers.take(positions)
    own = (address.places + offset) % max(chunk.local_stride, 1)
    first = (own >> 2) * 128 + lanes % chunk.threads % 32 * 4
    return sum(count_sectors(rows.arrange(first + 128 * word)) for word in range(max(1, size // 4)))


def _wavefronts(
    group: Group, address: Address, offset: int, size: int, positions: Any, atomic: bool
) -> tuple[int, int]:
    places = address.places
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    if places.__class__ is not ndarray:
        places = np.full(group.n if positions is None else len(positions), places)
    key = "wavefronts", offset % 4, size, atomic
    counts: tuple[int, int] | None = address.notes.get(key)
    if counts is None:
        arranged = rows.arrange(places + offset % 4 if offset % 4 else places)
        counts = count_wavefronts(arranged, rows.present, size, atomic=atomic)
        address.notes[key] = counts
    return counts
