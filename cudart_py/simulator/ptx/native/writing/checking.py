"""Generate the checks in a kernel's function: calls before each access, and updates of the synchronisation times."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from ...compiling.analysis.guessed_loads import GuessedLoads
from ...compiling.analysis.reachability import lies_past, reachable
from ...compiling.forms import Form, is_relaxed
from ...compiling.opcode_table.opcodes import form_of
from ...syntax.instructions import Immediate, Instruction
from ...syntax.types import type_size
from ..errors import UnsupportedInstruction
from ..instances import Instance, Layout, Place
from ..layout import APART, BlockCheck, Context, Doubt, HostCall, Status
from ..library.checking.clocks import EVENT
from ..library.checking.comparing import LOADS
from ..library.checking.copies import GROUPS
from ..library.checking.records import TICK, block_value, block_word, in_complete_records, raise_doubt
from ..library.frame import ask_about, ask_python, element, when
from ..vectors import I1, I32, I64, Builder
from .undefined import Undefined

if TYPE_CHECKING:
    from .flow import Flow

Value = Any

_SPACES = ("global", "shared", "local", "generic")
_PASSED_WORDS = BlockCheck.COPY_TIME - BlockCheck.PASSED
_MOST_BARRIERS = 64 * _PASSED_WORDS
_WORD = 2


def whole(instruction: Instruction) -> bool:
    """Return whether lanes wait at a barrier for all threads of a block, or of a cluster."""
    if "cluster" in form_of(instruction).words:
        return "wait" in form_of(instruction).words
    return len(instruction.operands) == (3 if "red" in form_of(instruction).words else 1)


class Checking:
    """The generator of the checks in a warp's function.

    `copies` says whether the kernel has asynchronous copies, `clocks` whether it has barriers in memory, and `fences`
    whether it has fences. With `follows`, the code follows undefined values that are loaded.
    """

    def __init__(self, flow: Flow, *, follows: bool) -> None:
        layout, sites = flow.layout, flow.sites
        if any(not barrier.is_literal and not whole(barrier.instruction) for barrier in layout.barriers):
            raise UnsupportedInstruction("checks of a barrier of some warps whose number or count is in a register")
        if any(place.instance.root.shared and place.block.terminator.kind == "barrier" for place in layout.places):
            # Each call of the function would count as another barrier.
            raise UnsupportedInstruction("barriers in a recursive function or one that is called through a pointer")
        self._b, self._context = flow.b, flow.context
        self._layout = layout
        self._sites = sites
        self._schedule = flow.schedule
        self.undefined = Undefined(flow, follows, self._doubt_if)
        self._shift = sites.shift = _least_shift(layout)
        forms = {form_of(instruction) for place in layout.places for instruction in place.block.instructions}
        accesses = {form.row.access for form in forms}
        self.copies = sites.copies = "cp" in accesses
        self.clocks = sites.clocks = (
            "mbarrier" in accesses
            or any("mbarrier" in form.words for form in forms)
            or any(barrier.expected is not None for barrier in layout.barriers)
        )
        self.fences = sites.fences = any(map(_fences, forms))
        self.bulk = sites.bulk = "bulk" in accesses
        self._clustered = flow.clustered
        if self._clustered and (self.bulk or self.copies or self.clocks or self.fences):
            raise UnsupportedInstruction("checks of fences, copies, mbarriers and named barriers in clusters")
        self._barriers = [
            number
            for number, place in enumerate(layout.places)
            if place.block.terminator.kind == "barrier" and whole(place.block.terminator.ending)
        ]
        if len(self._barriers) > _MOST_BARRIERS:
            raise UnsupportedInstruction("so many barriers")
        self._guessed = GuessedLoads()
        self._reachable = cache(reachable)

    # --- accesses

    def access(
        self,
        kind: str,
        space: str,
        address: Value,
        size: int,
        count: int,
        site: int,
        mask: Value,
        values: Sequence[Value],
    ) -> None:
        """Check an access to `count` elements of `size` bytes before it happens; `values` are the values of a store.

        `kind` is one of the kinds that `library/checking/checks.py` defines.
        """
        if space not in _SPACES:
            return
        if self._clustered:
            space = {"shared": "cluster", "generic": "wide"}.get(space, space)
        if self.copies and space in ("shared", "generic"):
            self._call(f"copied.{space}.{size * count}", self._context, address, mask, I32(site))
        if self.bulk and space in ("shared", "generic"):
            verb = "ld" if kind in LOADS else "st"
            self._call(f"bulked.{verb}.{space}.{size * count}", self._context, address, mask, I32(site))
        at = self._sites.sites[site]
        form = form_of(at.instruction)
        if kind == "load" and not form.strong and self._guessed.contain(at.instance.code, at.instruction):
            kind = "guess"
        name = f"check.{kind}.{_strength(form, space)}.{space}.{size}.{count}.{self._shift}"
        self._call(name, self._context, address, mask, I32(site), *values)
        self.undefined.access(kind, space, address, size * count, mask, at)
        if self.fences and form.strong and space in ("global", "generic"):
            if _fences(form):
                self._fence(mask)
            happens = {"ld": "ld", "atom": "at"}.get(form.row.access, "st")
            self._call(f"strong.{happens}.{space}", self._context, address, mask)
        if kind not in LOADS:
            self._stop_after_a_doubt()

    def constant(self, address: Value, size: int, count: int, site: int, mask: Value) -> None:
        """Record a load of constants, which only other work may change."""
        with in_complete_records(self._b, self._context):
            name = f"check.load.plain.global.{size}.{count}.{self._shift}"
            self._call(name, self._context, address, mask, I32(site))

    def _stop_after_a_doubt(self) -> None:
        """Return from the warp's function if there is a doubt, as is required before any access that changes memory.

        A check or a call to Python that raises a doubt may return before it has saved the memory that this access
        changes. Undoing the launch would not undo that change, and the launch would run again on changed memory.
        Without a doubt, the checks have saved everything that the access changes.
        """
        b = self._b
        doubted = b.icmp_unsigned("!=", b.word(self._context, Context.FAULT), I64(0))
        with when(b, doubted, likely=False):
            b.ret(I32(Status.FAULT))

    def fence(self, instruction: Instruction, mask: Value) -> None:
        """Record a fence, unless its scope is the block."""
        if _fences(form_of(instruction)):
            self._fence(mask)

    def _fence(self, mask: Value) -> None:
        ask_python(self._b, self._context, HostCall.FENCE, self._b.zext(mask, I64))

    def _call(self, name: str, *arguments: Value) -> None:
        """Call a function of the library that returns nothing."""
        self._b.invoke(name, ir.VoidType(), *arguments)

    def barrier(self, form: Form, space: str, address: Value, site: int, mask: Value, arrivals: Value) -> None:
        """Record an operation on barriers in memory before it happens; lanes make at most `arrivals` arrivals each."""
        if form.row.name == "cp" and self.copies:
            # The lanes arrive when their copies are complete.
            self.group("wait_all", 0, mask)
        kind = "wait" if form.row.spins else "relaxed" if is_relaxed(form) else "arrive"
        self._call(f"clock.{kind}.{space}", self._context, address, mask, I32(site), arrivals)
        self._stop_after_a_doubt()

    def bulk_copy(self, site: int, mask: Value, *operands: Value) -> None:
        """Check bulk copies to shared memory; the operands are where to, where from, the sizes and the barriers."""
        self._call(f"bulkcopy.{self._shift}", self._context, *operands, mask, I32(site))
        self._stop_after_a_doubt()

    def issued(self, address: Value, size: int, mask: Value) -> None:
        """Record asynchronous copies of `size` bytes to shared memory."""
        self._call(f"issued.{size}", self._context, address, mask)

    def group(self, event: str, allowed: int, mask: Value) -> None:
        """Record the end of a group of copies (`event` is commit), or a wait for groups (wait) or all (wait_all)."""
        if event == "wait":
            # The end times of older groups aren't kept.
            if allowed < GROUPS:
                self._call(f"awaited.{allowed}", self._context, mask)
        else:
            self._call(f"awaited.{event.removeprefix('wait_')}", self._context, mask)

    def absent(self, lanes: Value, instruction: Instruction, instance: Instance) -> None:
        """Follow the values of lanes that shuffle from inactive ones, or ask Python whether the launch may go on."""
        if self.undefined.received(instruction, instance, lanes):
            return
        with when(self._b, self._b.icmp_unsigned("!=", lanes, I32(0)), likely=False):
            self._tell(HostCall.ABSENT, lanes, instruction, instance)
            self._stop_after_a_doubt()

    def _tell(self, call: HostCall, lanes: Value, instruction: Instruction, instance: Instance) -> None:
        """Tell Python about lanes at an instruction."""
        ask_about(self._b, self._context, call, lanes, self._sites.add(instruction, instance))

    def _doubt_if(
        self, truth: Value, instruction: Instruction, instance: Instance, doubt: Doubt = Doubt.FINDING
    ) -> None:
        """Raise a doubt and return from the warp's function if a condition holds."""
        b = self._b
        with when(b, truth, likely=False):
            raise_doubt(b, self._context, I32(self._sites.add(instruction, instance)), doubt)
            b.ret(I32(Status.FAULT))

    # --- lanes that synchronise

    def deserted(self, place: Place, lanes: Value) -> None:
        """Tell Python that lanes continue without members of their mask."""
        if place.block.first is not None:
            self._tell(HostCall.DESERTED, lanes, place.block.first, place.instance)

    def together(self, place: Place) -> None:
        """Record that a block synchronises its warp; tell Python if the member mask omits a lane that executes it."""
        b, operand, site = self._b, place.block.mask, place.block.first
        mask = b.load(self._schedule.mask, typ=I32)
        names_all = isinstance(operand, Immediate) and operand.value & 0xFFFFFFFF == 0xFFFFFFFF
        if site is not None and not names_all:
            named = b.and_(b.lshr(self._schedule.members(place), b.lanes()), b.const(I32, 1))
            outside = b.and_(b.bits(b.compare("==", named, 0)), mask)
            with when(b, b.icmp_unsigned("!=", outside, I32(0)), likely=False):
                self._tell(HostCall.OUTSIDE, outside, site, place.instance)
        now = _advance(b, self._context)
        warp = b.word(self._context, Context.WARP_AT_HAND)
        b.store(now, element(b, block_word(b, self._context, BlockCheck.WARPS), warp, I64))
        lanes = element(b, block_word(b, self._context, BlockCheck.CONVERGED), b.shl(warp, I64(5)), I64)
        b.invoke("llvm.masked.store.v32i64.p0", ir.VoidType(), b.splat(now), lanes, b.truth(mask))
        if self.copies:
            self._call("settle.warp", self._context)
        if self.bulk:
            self._call("waited.warp", self._context)
        if self.fences:
            fenced = b.load(element(b, block_word(b, self._context, BlockCheck.FENCED), warp, I64), typ=I64)
            with when(b, b.icmp_unsigned(">=", fenced, I64(EVENT)), likely=False):
                ask_python(b, self._context, HostCall.CONVERGE, warp)

    # --- barriers

    def arrive(self, number: int) -> None:
        """Record that lanes wait at a barrier, and whether other lanes wait at a different barrier."""
        b, place = self._b, self._layout.places[number]
        if number not in self._barriers:
            if "cluster" in form_of(place.block.terminator.ending).words:
                # The lanes arrive again when they wait.
                return
            named = next(one for one in self._layout.barriers if one.instruction is place.block.terminator.ending)
            self._call("named.arrive", self._context, I64(named.number))
            return
        mine = I64(1 + self._barriers.index(number))
        word = block_word(b, self._context, BlockCheck.WAITS)
        there = b.load(word, typ=I64)
        apart = b.and_(b.icmp_unsigned("!=", there, I64(0)), b.icmp_unsigned("!=", there, mine))
        b.store(b.select(apart, b.or_(mine, I64(APART)), mine), word)
        if self._clustered:
            self._doubt_if(apart, place.block.terminator.ending, place.instance)

    def passing(self, place: Place) -> None:
        """Record that the lanes in a block have gone past the barriers that lead to it but can't be reached from it."""
        if not place.block.instructions:
            return
        b, bits, here = self._b, 0, place.stack
        for bit, number in enumerate(self._barriers):
            if lies_past(place.block, here, self._layout.places[number].stack, self._reachable):
                bits |= 1 << bit
        passed = block_word(b, self._context, BlockCheck.PASSED)
        waits = b.sub(b.and_(block_value(b, self._context, BlockCheck.WAITS), I64(APART - 1)), I64(1))
        for index in range(_PASSED_WORDS):
            part = bits >> 64 * index & 0xFFFFFFFFFFFFFFFF
            if part:
                word = b.at(passed, 8 * index)
                before = b.load(word, typ=I64)
                b.store(b.or_(before, I64(part)), word)
                if not self._clustered:
                    new = b.and_(I64(part), b.not_(before))
                    here = b.and_(b.lshr(new, b.and_(waits, I64(63))), I64(1))
                    told = b.and_(b.icmp_unsigned("==", b.lshr(waits, I64(6)), I64(index)), b.trunc(here, I1))
                    with when(b, told, likely=False):
                        lanes = b.shl(b.zext(b.load(self._schedule.mask, typ=I32), I64), I64(32))
                        number = I64(self._layout.places.index(place))
                        ask_python(b, self._context, HostCall.PASSING, b.or_(lanes, number))


def begin_checks(b: Builder, context: Value, checking: Checking) -> None:
    """Generate the reset of the checks for a new block: nothing has been written, copied, fenced or acquired yet."""
    now = _advance(b, context)
    for word in BlockCheck:
        if word < BlockCheck.WARPS:
            begins = word in (BlockCheck.BEGIN, BlockCheck.BARRIER)
            b.store(now if begins else I64(0), block_word(b, context, word))
    _forget_passed(b, context)
    checking.undefined.begin_block(b)
    if checking.copies:
        b.invoke("settle.begin", ir.VoidType(), context)
    if checking.fences:
        first = block_word(b, context, BlockCheck.ACQUIRED)
        b.store(b.each(I64, [0] * (BlockCheck.KNOWN - BlockCheck.ACQUIRED)), first, align=8)
    if checking.clocks:
        first = block_word(b, context, BlockCheck.KNOWN)
        b.store(b.each(I64, [0] * (BlockCheck.CONVERGED - BlockCheck.KNOWN)), first, align=8)
        b.fill(b.pointer(context, Context.CLOCKS), b.word(context, Context.CLOCKS_BYTES))
    if checking.bulk:
        b.fill(b.pointer(context, Context.BULK_MARKS), b.word(context, Context.BULK_WORDS))


def release_checks(b: Builder, context: Value, checking: Checking) -> None:
    """Generate the checks at a barrier that releases a block; raise a doubt if some lanes had gone past it."""
    waits = block_word(b, context, BlockCheck.WAITS)
    apart = b.icmp_unsigned(">=", b.load(waits, typ=I64), I64(APART))
    barrier = b.sub(b.and_(b.load(waits, typ=I64), I64(APART - 1)), I64(1))
    passed = element(b, block_word(b, context, BlockCheck.PASSED), b.lshr(barrier, I64(6)), I64)
    bit = b.and_(b.lshr(b.load(passed, typ=I64), b.and_(barrier, I64(63))), I64(1))
    with when(b, b.or_(apart, b.trunc(bit, I1)), likely=False):
        ask_python(b, context, HostCall.DIVERGED, I64(0))
        with when(b, b.icmp_unsigned("!=", b.word(context, Context.FAULT), I64(0))):
            b.ret(I32(Status.FAULT))
    b.store(I64(0), waits)
    _forget_passed(b, context)
    b.store(_advance(b, context), block_word(b, context, BlockCheck.BARRIER))
    if checking.copies:
        b.invoke("settle.block", ir.VoidType(), context)
    if checking.bulk:
        b.invoke("waited.all", ir.VoidType(), context)
    if checking.fences:
        some = b.icmp_unsigned("!=", block_value(b, context, BlockCheck.EVENTS), I64(0))
        with when(b, some, likely=False):
            ask_python(b, context, HostCall.BARRIER, I64(0))


def _forget_passed(b: Builder, context: Value) -> None:
    passed = block_word(b, context, BlockCheck.PASSED)
    b.store(b.each(I64, [0] * _PASSED_WORDS), passed, align=8)


def _advance(b: Builder, context: Value) -> Value:
    """Advance the time and return it."""
    now = b.add(b.word(context, Context.NOW), I64(TICK))
    b.set_word(context, Context.NOW, now)
    return now


def _strength(form: Form, space: str) -> str:
    """Return the strength of an access, as `library/checking/checks.py` defines it."""
    if not form.strong:
        return "plain"
    # No other block accesses shared or local memory, so block scope suffices there.
    return "block" if form.scope == "cta" and space not in ("shared", "local") else "strong"


def _fences(form: Form) -> bool:
    """Return whether an instruction is a fence with device scope, or an access that releases with device scope."""
    if form.row.access:
        return form.releases and form.scope == "gpu"
    weaker = {"proxy", "mbarrier_init", "acquire"}
    return form.row.name in ("membar", "fence") and form.scope == "gpu" and weaker.isdisjoint(form.words)


def _least_shift(layout: Layout) -> int:
    """Return the binary logarithm of the smallest access's size in bytes, at most 2 (a 4-byte word)."""
    sizes = [
        form.vector * type_size(form.type)
        for place in layout.places
        for form in map(form_of, place.block.instructions)
        # An access without a type, tensormap.cp_fenceproxy, is larger than any other.
        if form.types
        and form.row.access in ("ld", "st", "atom", "red")
        and form.space not in ("param", "const", "local")
    ]
    return min([_WORD, *(size.bit_length() - 1 for size in sizes)])
