"""The counters of a launch: an observer of the PTX machine whose counts follow those of the hardware.

Counts are kept per instruction and per basic block, and summed per source line at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ptx.compiling.opcode_table.opcodes import form_of
from ..ptx.instructions.images.textures import group_size
from ..ptx.running.memory.addresses import Address, Mixed
from ..ptx.running.observer import AccessCount, BlockCount, MatrixPiece, MatrixRows, Observer
from ..ptx.syntax.instructions import Access, Register
from .banks import Kind, count_wavefronts
from .chains import longest_chains
from .machine_code import ONE, machine_code
from .metrics import Tally, metrics, total
from .sectors import (
    count_atomic_sectors,
    count_bypassing_sectors,
    count_different,
    count_sectors,
    run_sectors,
)
from .traits import Traits, traits_of
from .warp_rows import WarpRows, rows_of, warps_of

if TYPE_CHECKING:
    from ..ptx.compiling.analysis.control_flow import Block, Code
    from ..ptx.running.groups import Group
    from ..ptx.running.launch import LaunchState
    from ..ptx.syntax.instructions import Instruction

ndarray = np.ndarray
Line = tuple[str, int]
_LANES = 32


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
        self._traits: dict[int, Traits] = {}

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
        if kind == "mbarrier":
            return  # it is not known how the hardware counts mbarrier operations
        if form_of(site).space == "const":
            # Constants have their own cache. The hardware reads a constant at a fixed address as an operand of the
            # instruction that uses it, without a load. Only accesses through an address in a register are counted.
            if not isinstance(address, Mixed) and _by_register(site):
                requests = _constant_requests(group, address, offset) * _constant_loads(size)
                _add(known[1], ("requests", "const", "ld"), requests)
            return
        traits = self._traits.get(id(site))
        if traits is None or traits.given != kind:
            traits = self._traits[id(site)] = traits_of(group.code, kind, site)
        tally = known[1]
        if isinstance(address, Address):
            # This is much more frequent, and making a list of one part takes a twelfth of the time of a single thread.
            self._count(tally, group, traits, address, offset, size, None)
            return
        for positions, part in address.parts:
            self._count(tally, group, traits, part, offset, size, positions)

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
            wavefronts, conflicts = _wavefronts(group, rows.address, 0, 16, rows.positions, "store")
            _add(tally, ("instructions", "shared", "ldsm" if kind == "ld" else kind), warps_of(group))
            _add(tally, ("wavefronts", "shared", kind), wavefronts)
            _add(tally, ("conflicts", "shared", kind), conflicts)

    def texture(self, group: Group, positions: Any, places: Any, site: Instruction) -> None:
        """Count a fetch, and the requests and the sectors of the groups of lanes that fetch together."""
        tally = self._sites.setdefault(id(site), (site, {}))[1]
        rows, form = WarpRows(group, positions), form_of(site)
        lanes = group_size(form.geometry, form.types[1] == "s32")
        active = np.ones((rows.count, _LANES), np.bool_) if rows.present is None else rows.present
        corners = [np.where(active, rows.arrange(column), -1).reshape(-1, lanes) for column in places.T]
        arranged = np.concatenate(corners, axis=1)
        borders = np.count_nonzero((arranged < 0).any(axis=1))
        requests = np.count_nonzero(active.reshape(-1, lanes).any(axis=1))
        # `count_sectors` counts the entries of a row that have no texel (-1) as one sector, which is subtracted here.
        _add_texture(tally, rows.count, int(requests), count_sectors(arranged) - int(borders))

    def counted(self, blocks: Iterable[BlockCount], accesses: Iterable[AccessCount]) -> None:
        """Add the counts that machine code has taken."""
        for one in blocks:
            self._add_block(one.code, one.block, one.warps, one.lanes)
        for found in accesses:
            tally = self._sites.setdefault(id(found.site), (found.site, {}))[1]
            _add_counted(tally, found, traits_of(found.code, found.kind, found.site))

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
        self._blocks, self._sites, self._traits = {}, {}, {}

    def _count(
        self, tally: Tally, group: Group, traits: Traits, address: Address, offset: int, size: int, positions: Any
    ) -> None:
        space = address.space.name
        if space not in ("global", "shared", "local"):
            return
        kind = _kind_in(space, traits.kind)
        warps = warps_of(group) if positions is None else WarpRows(group, positions).count
        if space == "shared":
            if not traits.copies:
                wavefronts, conflicts = _wavefronts(group, address, offset, size, positions, traits.wavefronts)
                _add_shared(tally, traits, kind, warps, wavefronts, conflicts)
        elif space == "local":
            _add_local(tally, kind, size, warps, _local_sectors(group, address, offset, size, positions))
        elif kind in ("atom", "red"):
            sectors, other = _atomic_sectors(group, address, offset, size, positions)
            _add_atomic(tally, traits, warps, sectors, other)
        else:
            sectors, used = _sectors_and_bytes(group, address, offset, size, positions, warps, traits)
            _add_global(tally, traits, warps, sectors, used)


def _kind_in(space: str, kind: str) -> str:
    """Return the kind under which an access is counted in a memory space."""
    if kind in ("atom", "red") and space != "global":
        return "atom" if space == "shared" else "st"
    return kind


def _add_counted(tally: Tally, found: AccessCount, traits: Traits) -> None:
    space = found.space
    if space == "const":
        _add(tally, ("requests", space, "ld"), found.second * _constant_loads(found.size))
        return
    kind = _kind_in(space, traits.kind)
    if space == "texture":
        _add_texture(tally, found.times, found.second, found.first)
    elif space == "shared":
        wavefronts = 2 * found.first if traits.wavefronts == "swap" else found.first
        _add_shared(tally, traits, kind, found.times, wavefronts, found.second)
    elif space == "local":
        _add_local(tally, kind, found.size, found.times, found.first)
    elif kind in ("atom", "red"):
        _add_atomic(tally, traits, found.times, found.first, found.second)
    else:
        _add_global(tally, traits, found.times, found.first, found.size * found.second)


def _add_texture(tally: Tally, warps: int, requests: int, sectors: int) -> None:
    _add(tally, ("instructions", "texture", "ld"), warps)
    _add(tally, ("requests", "texture", "ld"), requests)
    _add(tally, ("sectors", "texture", "ld"), sectors)


def _add_shared(tally: Tally, traits: Traits, kind: str, warps: int, wavefronts: int, conflicts: int) -> None:
    _add(tally, ("instructions", "shared", kind), warps)
    if traits.combined == "active":
        wavefronts, conflicts = warps, 0
    kind = "ld" if kind == "ldsm" else kind
    _add(tally, ("wavefronts", "shared", kind), wavefronts)
    _add(tally, ("conflicts", "shared", kind), conflicts)


def _add_local(tally: Tally, kind: str, size: int, warps: int, sectors: int) -> None:
    """Add accesses to local memory, which takes one request per word of an element."""
    _add(tally, ("instructions", "local", kind), warps)
    _add(tally, ("requests", "local", kind), warps * max(1, size // 4))
    _add(tally, ("sectors", "local", kind), sectors)


def _add_atomic(tally: Tally, traits: Traits, warps: int, sectors: int, other: int) -> None:
    """Add atomics on global memory; `other` is the second number of `count_atomic_sectors`."""
    kind = traits.kind
    if traits.combined != "none":
        sectors = warps if traits.combined == "active" else other
    _add(tally, ("instructions", "global", kind), warps)
    _add(tally, ("requests", "global", kind), warps)
    _add(tally, ("sectors", "global", kind), sectors)
    _add(tally, ("atomic cycles", "global", ""), other if traits.by_halves else sectors)


def _add_global(tally: Tally, traits: Traits, warps: int, sectors: int, used: int) -> None:
    kind = traits.kind
    _add(tally, ("instructions", "global", "ldgsts" if traits.copies else kind), warps)
    _add(tally, ("requests", "global", kind), warps)
    _add(tally, ("sectors", "global", kind), sectors)
    _add(tally, ("bytes", "global", kind), used)


def _constant_loads(size: int) -> int:
    """Return the number of machine instructions that load a constant, each of which loads up to 8 bytes."""
    return max(1, size // 8)


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


def _sectors_and_bytes(
    group: Group, address: Address, offset: int, size: int, positions: Any, warps: int, traits: Traits
) -> tuple[int, int]:
    """Return the sectors of the warps' accesses and the bytes that lanes use; bytes that lanes share count once."""
    places = address.places
    if places.__class__ is not ndarray:
        return warps, warps * size
    key = "sectors", offset % 32, size, traits.bypasses
    counts: tuple[int, int] | None = address.notes.get(key)
    if counts is None:
        rows = rows_of(group) if positions is None else WarpRows(group, positions)
        start = address.run_start(size) if rows.present is None and not traits.bypasses else -1
        # Offsets count from the region's start, which is aligned to a sector.
        if start >= 0:
            counts = run_sectors(start + offset, size, warps), 32 * size * warps
        else:
            arranged = rows.arrange(places if not offset % 32 else places + offset)
            # Accesses are aligned, so accesses at different offsets do not overlap.
            sectors = count_bypassing_sectors(arranged, rows.present) if traits.bypasses else count_sectors(arranged)
            counts = sectors, size * count_different(arranged)
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


def _atomic_sectors(group: Group, address: Address, offset: int, size: int, positions: Any) -> tuple[int, int]:
    places = address.places
    if places.__class__ is not ndarray:
        places = np.full(group.n if positions is None else len(positions), places)
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    return count_atomic_sectors(rows.arrange(places + offset), rows.present, size)


def _local_sectors(group: Group, address: Address, offset: int, size: int, positions: Any) -> int:
    """Return the sectors of an access to local memory, which interleaves the words of a warp's lanes."""
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    chunk = group.chunk
    lanes = group.lane_numbers if positions is None else group.lane_numbers.take(positions)
    own = (address.places + offset) % max(chunk.local_stride, 1)
    first = (own >> 2) * 128 + lanes % chunk.threads % 32 * 4
    return sum(count_sectors(rows.arrange(first + 128 * word)) for word in range(max(1, size // 4)))


def _wavefronts(group: Group, address: Address, offset: int, size: int, positions: Any, kind: Kind) -> tuple[int, int]:
    places = address.places
    rows = rows_of(group) if positions is None else WarpRows(group, positions)
    if places.__class__ is not ndarray:
        places = np.full(group.n if positions is None else len(positions), places)
    key = "wavefronts", offset % 4, size, kind
    counts: tuple[int, int] | None = address.notes.get(key)
    if counts is None:
        arranged = rows.arrange(places + offset % 4 if offset % 4 else places)
        counts = count_wavefronts(arranged, rows.present, size, kind)
        address.notes[key] = counts
    return counts
