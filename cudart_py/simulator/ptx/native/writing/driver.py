"""Generate the loops over a launch's blocks and over each block's warps; each warp runs from barrier to barrier."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...syntax.instructions import Immediate, Register, Vector
from ..barriers import Barrier, numbers_of
from ..instances import PARKED, WAITING, word_of
from ..layout import BARRIERS, CLUSTER_BARRIER, PER_BLOCK, ROW_BYTES, BlockCheck, Context, Head, Status
from ..library.checking.records import block_value
from ..library.frame import each_number, element, when
from ..vectors import I1, I32, I64, PTR, Builder
from .checking import Checking, begin_checks, release_checks
from .flow import Flow

Value = Any

# The bits of MXCSR, the processor's floating-point control word, that flush subnormal results and operands to zero.
_FLUSH = 0x8040
# The cost of running a warp once, apart from its loops, in instructions of the budget.
_WARP_COST = 32
# The number of rounds with yielding warps that a block may run before machine code returns to Python.
_PATIENCE = 8


class _Driver:
    """The generator of the function ``run(context)``.

    The function returns a `Status`. When it is called again, it resumes where it returned.
    """

    def __init__(self, module: ir.Module, flow: Flow) -> None:
        self._layout = flow.layout
        self._flow = flow
        self._checking = flow.checking
        self._warp = module.globals["warp"]
        function = ir.Function(module, ir.FunctionType(I32, [PTR]), "run_blocks" if flow.flushes else "run")
        function.attributes.add("nounwind")
        (self._context,) = function.args
        self._b = Builder(function.append_basic_block("entry"))

    def _get(self, word: Context) -> Value:
        return self._b.word(self._context, word)

    def _set(self, word: Context, value: Value) -> None:
        self._b.set_word(self._context, word, value)

    def write(self) -> None:
        b = self._b
        if self._flow.clustered:
            # The rank of the current block; -1 after a return to Python, which may have made another one current.
            self._entered = b.alloca(I64)
            b.store(I64(-1), self._entered)
        blocks, sweep, after = (b.append_basic_block(name) for name in ("blocks", "sweep", "swept"))
        b.branch(blocks)
        b.position_at_end(blocks)
        block = self._get(Context.BLOCK)
        if self._flow.clustered:
            block = b.sub(block, b.urem(block, self._get(Context.CLUSTER)))
        with when(b, b.icmp_unsigned(">=", block, self._get(Context.LAST_BLOCK))):
            b.ret(I32(Status.DONE))
        self._first = block
        if not self._flow.clustered:
            self._place_block(block)
        # If warps run alone, FRESH is set before every warp, and the launch may pause between two warps. Only warp 0
        # begins the block in that case.
        fresh = b.icmp_unsigned("!=", self._get(Context.FRESH), I64(0))
        with when(b, b.and_(fresh, b.icmp_unsigned("==", self._get(Context.WARP), I64(0)))):
            self._begin_blocks()
        b.branch(sweep)
        b.position_at_end(sweep)
        self._write_sweep(sweep, after)
        b.position_at_end(after)
        self._end_sweep(block, blocks, sweep)

    def _enter(self, rank: Value) -> None:
        """Make a block of the cluster the current one."""
        b = self._b
        b.store(rank, self._entered)
        block = b.add(self._first, rank)
        self._set(Context.BLOCK, block)
        self._place_block(block)
        row = b.at(b.pointer(self._context, Context.CLUSTER_BLOCKS), b.mul(rank, I64(ROW_BYTES)))
        for place, word in enumerate(PER_BLOCK):
            self._set(word, b.load(b.at(row, 8 * place), typ=I64))

    def _each_block(self, body: Any) -> None:
        """Generate a loop over the blocks of the cluster, each of which becomes the current one."""
        if not self._flow.clustered:
            body(I64(0))
            return

        def enter(rank: Value) -> None:
            self._enter(rank)
            body(rank)

        each_number(self._b, self._get(Context.CLUSTER), enter)

    def _place_block(self, block: Value) -> None:
        """Generate the computation of the block's index along each axis of the grid."""
        b = self._b
        grid = [self._get(Context.GRID_X), self._get(Context.GRID_Y)]
        if not self._flow.clustered:
            place = self._divided(block, *grid)
        else:
            # Blocks are numbered cluster by cluster.
            cluster = [self._get(word) for word in (Context.CLUSTER_X, Context.CLUSTER_Y, Context.CLUSTER_Z)]
            size = self._get(Context.CLUSTER)
            extents = [b.udiv(count, part) for count, part in zip(grid, cluster, strict=False)]
            first = self._divided(b.udiv(block, size), *extents)
            inside = self._divided(b.urem(block, size), *cluster[:2])
            place = [b.add(b.mul(one, part), rest) for one, part, rest in zip(first, cluster, inside, strict=True)]
        for word, value in zip((Context.BLOCK_X, Context.BLOCK_Y, Context.BLOCK_Z), place, strict=True):
            self._set(word, value)

    def _divided(self, number: Value, width: Value, height: Value) -> list[Value]:
        """Return the coordinates of a number in a grid with this width and height."""
        b = self._b
        rows = b.udiv(number, width)
        return [b.urem(number, width), b.urem(rows, height), b.udiv(rows, height)]

    def _clear(self, base: Context, size: Context) -> None:
        self._b.fill(self._b.pointer(self._context, base), self._get(size))

    def _begin_blocks(self) -> None:
        self._each_block(lambda rank: self._begin_block())
        if self._checking is not None and self._flow.clustered:
            self._set(Context.CLUSTER_TIME, self._get(Context.NOW))
        if not self._flow.alone:
            self._set(Context.FRESH, I64(0))
            self._each_state(self._begin_warp)

    def _begin_block(self) -> None:
        self._clear(Context.SHARED, Context.SHARED_LIMIT)
        self._clear(Context.LOCAL, Context.LOCAL_BYTES)
        self._set(Context.YIELDS, I64(0))
        self._set(Context.PATIENCE, I64(_PATIENCE))
        if self._layout.barriers:
            b = self._b
            b.store(b.each(I64, [0] * BARRIERS), b.pointer(self._context, Context.ARRIVALS), align=8)
        if self._checking is not None:
            self._clear(Context.LOCAL_WRITTEN, Context.LOCAL_WRITTEN_BYTES)
            begin_checks(self._b, self._context, self._checking)

    def _each_state(self, body: Any, rank: Value | None = None) -> None:
        """Generate a loop over the warps' states; `body` generates its body from a warp's index and state.

        With a rank, these are only the states of that block of the cluster.
        """
        b, warps = self._b, self._get(Context.WARPS)
        first, count = (I64(0) if rank is None else b.mul(rank, warps)), warps
        if rank is None and self._flow.clustered:
            count = b.mul(warps, self._get(Context.CLUSTER))
        each_number(b, count, lambda number: body(number, self._state(b.add(first, number))))

    def _state(self, number: Value) -> Value:
        b = self._b
        states = b.pointer(self._context, Context.STATES)
        return states if self._flow.alone else b.at(states, b.mul(number, I64(self._layout.bytes)))

    def _begin_warp(self, number: Value, state: Value) -> None:
        """Make all lanes of a warp wait at the kernel's first block; the other words of the state are 0 already."""
        b = self._b
        if self._flow.clustered:
            number = b.urem(number, self._get(Context.WARPS))
        members = b.load(b.gep(b.pointer(self._context, Context.MEMBERS), [number], source_etype=I32), typ=I32)
        b.store(members, b.at(state, 4 * Head.ALIVE))
        b.store(I32(1), b.at(state, 4 * Head.FRESH))
        b.store(I32(0), b.at(state, 4 * Head.SPINS))
        start = self._layout.start
        b.store(members, b.at(state, word_of(self._layout, WAITING, start)))
        b.store(I64(1 << start % 64), b.at(state, self._layout.ready_at + 8 * (start // 64)))

    def _write_sweep(self, sweep: ir.Block, after: ir.Block) -> None:
        """Generate the loop that runs each warp once; `sweep` is the LLVM block at which it starts."""
        b = self._b
        number = self._get(Context.WARP)
        warps = self._get(Context.WARPS)
        total = b.mul(warps, self._get(Context.CLUSTER)) if self._flow.clustered else warps
        with when(b, b.icmp_unsigned(">=", number, total)):
            b.branch(after)
        state = self._state(number)
        inside = number
        if self._flow.clustered:
            rank = b.udiv(number, warps)
            inside = b.sub(number, b.mul(rank, warps))
            with when(b, b.icmp_unsigned("!=", rank, b.load(self._entered, typ=I64))):
                self._enter(rank)
        self._set(Context.WARP_AT_HAND, inside)
        left = b.sub(self._get(Context.BUDGET), I64(_WARP_COST))
        self._set(Context.BUDGET, left)
        with when(b, b.icmp_signed("<", left, I64(0)), likely=False):
            b.ret(I32(Status.PAUSED))
        if self._flow.alone:
            with when(b, b.icmp_unsigned("!=", self._get(Context.FRESH), I64(0))):
                self._begin_warp(number, state)
                self._set(Context.FRESH, I64(0))
        status = b.call(self._warp, [self._context, state])
        with when(b, b.icmp_unsigned("!=", status, I32(Status.DONE))):
            with when(b, b.icmp_unsigned("!=", status, I32(Status.YIELDED))):
                b.ret(status)
            self._set(Context.YIELDS, b.or_(self._get(Context.YIELDS), I64(1)))
        if self._flow.alone:
            self._set(Context.FRESH, I64(1))
        self._set(Context.WARP, b.add(number, I64(1)))
        b.branch(sweep)

    def _end_sweep(self, block: Value, blocks: ir.Block, sweep: ir.Block) -> None:
        """Generate the end of a sweep: start the next block if no lane is alive, or release a complete barrier."""
        b = self._b
        if self._flow.alone:
            self._next_block(block, blocks)
            return
        self._set(Context.WARP, I64(0))
        self._release_barriers(sweep)
        yields = self._get(Context.YIELDS)
        with when(b, b.icmp_unsigned("!=", yields, I64(0)), likely=False):
            if self._flow.waits:
                self._look_for_progress(yields)
            self._set(Context.YIELDS, I64(0))
            patience = b.sub(self._get(Context.PATIENCE), I64(1))
            self._set(Context.PATIENCE, patience)
            with when(b, b.icmp_signed("<", patience, I64(0))):
                self._set(Context.PATIENCE, I64(_PATIENCE))
                b.ret(I32(Status.YIELDED))
            b.branch(sweep)
        alive = b.alloca(I32)
        b.store(I32(0), alive)

        def look(number: Value, state: Value) -> None:
            lanes = b.load(b.at(state, 4 * Head.ALIVE), typ=I32)
            b.store(b.or_(b.load(alive, typ=I32), lanes), alive)

        self._each_state(look)
        with when(b, b.icmp_unsigned("==", b.load(alive, typ=I32), I32(0))):
            self._next_block(block, blocks)
        b.ret(I32(Status.STUCK))

    def _release_barriers(self, sweep: ir.Block) -> None:
        """Release the lanes at complete barriers, and run the warps again."""
        barriers = [barrier for barrier in self._layout.barriers if barrier.waits]
        if not barriers:
            return
        b, released = self._b, self._b.alloca(I1)
        b.store(I1(0), released)
        of_blocks = [barrier for barrier in barriers if barrier.number != CLUSTER_BARRIER]

        def release(rank: Value) -> None:
            if any(isinstance(barrier.number, Register) for barrier in of_blocks):
                each_number(b, BARRIERS, lambda number: self._release_one(number, of_blocks, released, rank))
                return
            for number in sorted({barrier.number for barrier in of_blocks if isinstance(barrier.number, int)}):
                here = [barrier for barrier in of_blocks if barrier.number == number]
                self._release_one(I32(number), here, released, rank)

        if of_blocks:
            self._each_block(release)
        everywhere = [barrier for barrier in barriers if barrier.number == CLUSTER_BARRIER]
        if everywhere:
            self._release_one(I32(CLUSTER_BARRIER), everywhere, released, None)
        with when(b, b.load(released, typ=I1)):
            b.branch(sweep)

    def _release_one(self, number: Value, here: list[Barrier], released: Value, rank: Value | None) -> None:
        """Release the lanes at a barrier if it is complete; without a rank, the barrier is the cluster's.

        `here` are the barriers in the code that have the number, or may have it because theirs is in a register.
        """
        b = self._b
        # Whether lanes wait nowhere else, so that the waiting lanes need not be counted for each barrier in the code.
        alike = len(here) == sum(barrier.waits for barrier in self._layout.barriers) and all(
            barrier.is_literal and barrier.expected is None and not barrier.operation for barrier in here
        )
        # The numbers of lanes that wait, that are alive, that combine predicates, and whose predicates are true; and
        # the number of threads that the barrier expects, 0 for all of the block.
        counters = [b.alloca(I64) for _ in range(5)]
        waiting, alive, reducing, true, expected = counters
        for variable in counters:
            b.store(I64(0), variable)

        def count(_: Value, state: Value) -> None:
            counted = [(alive, b.load(b.at(state, 4 * Head.ALIVE), typ=I32))]
            if alike:
                counted.append((waiting, b.load(b.at(state, 4 * Head.PARKED), typ=I32)))
            for barrier in here if not alike else []:
                lanes = self._parked(state, barrier, number)
                counted.append((waiting, lanes))
                if barrier.operation:
                    counted += [(reducing, lanes), (true, b.and_(lanes, self._truths(state, barrier)))]
                if barrier.expected is not None:
                    some = b.icmp_unsigned("!=", lanes, I32(0))
                    wanted = self._expected(state, barrier, lanes)
                    b.store(b.select(some, wanted, b.load(expected, typ=I64)), expected)
            for variable, lanes in counted:
                b.store(b.add(b.load(variable, typ=I64), b.zext(b.ones(lanes), I64)), variable)

        self._each_state(count, rank)
        there, early = b.load(waiting, typ=I64), I64(0)
        if rank is not None:
            arrivals = element(b, b.pointer(self._context, Context.ARRIVALS), b.zext(number, I64), I64)
            early = b.load(arrivals, typ=I64)
        partly = b.icmp_unsigned("!=", b.load(expected, typ=I64), I64(0))
        wanted = b.select(partly, b.load(expected, typ=I64), b.load(alive, typ=I64))
        complete = b.icmp_unsigned(">=", b.add(there, early), wanted)
        with when(b, b.and_(complete, b.icmp_unsigned("!=", there, I64(0)))):
            b.store(I1(1), released)
            if rank is not None:
                b.store(I64(0), arrivals)
            if self._checking is not None and any(barrier.expected is None for barrier in here):
                with when(b, b.not_(partly)):
                    self._release_checks(self._checking, rank)

            def release(warp: Value, state: Value) -> None:
                for barrier in here:
                    lanes = self._parked(state, barrier, number)
                    if barrier.operation:
                        self._reduce(state, barrier, lanes, b.load(true, typ=I64), b.load(reducing, typ=I64))
                    if self._checking is not None and barrier.expected is not None:
                        with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                            b.invoke("named.release", ir.VoidType(), self._context, b.zext(number, I64), warp)
                place = b.at(state, 4 * Head.RELEASE)
                b.store(b.or_(b.load(place, typ=I32), b.shl(I32(1), number)), place)

            self._each_state(release, rank)

    def _parked(self, state: Value, barrier: Barrier, number: Value) -> Value:
        """Return the mask of a warp's lanes that wait at a barrier in the code with a number."""
        b = self._b
        lanes = b.load(b.at(state, word_of(self._layout, PARKED, barrier.resume)), typ=I32)
        if isinstance(barrier.number, Register):
            return b.and_(lanes, b.bits(b.icmp_unsigned("==", numbers_of(b, state, barrier), b.splat(number))))
        return b.select(b.icmp_unsigned("==", number, I32(barrier.number)), lanes, I32(0))

    def _expected(self, state: Value, barrier: Barrier, lanes: Value) -> Value:
        """Return the number of threads that a warp's lanes expect at a barrier that does not expect all."""
        if not isinstance(barrier.expected, Register):
            return I64(barrier.expected)
        b, instance = self._b, barrier.instance
        counts = instance.load(b, state, instance.code.slot(barrier.expected.name), I32)
        first = b.select(b.icmp_unsigned("!=", lanes, I32(0)), b.trailing_zeros(lanes), I32(0))
        return b.zext(b.extract_element(counts, first), I64)

    def _truths(self, state: Value, barrier: Barrier) -> Value:
        """Return the mask of a warp's lanes whose predicate at a reducing barrier is true."""
        operand = barrier.predicate
        if isinstance(operand, Immediate):
            return I32(-1 if operand.value else 0)
        assert isinstance(operand, Register)
        slot = barrier.instance.code.slot(operand.name)
        truths = self._b.load(self._b.at(state, barrier.instance.registers[slot]), typ=I32)
        return self._b.not_(truths) if operand.negated else truths

    def _reduce(self, state: Value, barrier: Barrier, lanes: Value, true: Value, all_lanes: Value) -> None:
        """Store a reducing barrier's result for a warp's lanes, given the numbers of true predicates and of lanes."""
        b, instance = self._b, barrier.instance
        result = barrier.result.items[0] if isinstance(barrier.result, Vector) else barrier.result
        if not isinstance(result, Register):
            return
        slot = instance.code.slot(result.name)
        if barrier.operation == "popc":
            before, new = instance.load(b, state, slot, I32), b.splat(b.trunc(true, I32))
        else:
            relation, other = ("==", all_lanes) if barrier.operation == "and" else ("!=", I64(0))
            before, new = instance.load(b, state, slot, I1), b.splat(b.icmp_unsigned(relation, true, other))
        instance.store(b, state, slot, b.select(b.truth(lanes), new, before))

    def _release_checks(self, checking: Checking, rank: Value | None) -> None:
        """Generate the checks at a barrier that releases the current block or, without a rank, the whole cluster."""
        b = self._b
        if rank is not None or not self._flow.clustered:
            release_checks(b, self._context, checking)
            return

        def release(_: Value) -> None:
            waits = block_value(b, self._context, BlockCheck.WAITS)
            # All lanes of a block may have exited.
            with when(b, b.icmp_unsigned("!=", waits, I64(0))):
                release_checks(b, self._context, checking)

        self._each_block(release)
        self._set(Context.CLUSTER_TIME, self._get(Context.NOW))

    def _look_for_progress(self, yields: Value) -> None:
        """Continue with this block as long as some of its warps wait at barriers in memory, and others don't."""
        b = self._b
        with when(b, b.icmp_unsigned("!=", self._get(Context.PROGRESS), I64(0))):
            self._set(Context.PROGRESS, I64(0))
            self._set(Context.ADVANCED, I64(1))
            with when(b, b.icmp_unsigned("==", yields, I64(1))):
                self._set(Context.PATIENCE, I64(_PATIENCE))

    def _next_block(self, block: Value, blocks: ir.Block) -> None:
        b = self._b
        if self._flow.clustered:
            b.store(I64(-1), self._entered)
        self._set(Context.BLOCK, b.add(block, self._get(Context.CLUSTER) if self._flow.clustered else I64(1)))
        self._set(Context.WARP, I64(0))
        self._set(Context.FRESH, I64(1))
        b.branch(blocks)


def write_driver(module: ir.Module, flow: Flow) -> None:
    """Generate the function ``run`` for a warp's function."""
    _Driver(module, flow).write()
    if flow.flushes:
        _write_flushing(module)


def _write_flushing(module: ir.Module) -> None:
    """Generate ``run`` as a call to ``run_blocks`` with the processor's control word set to flush."""
    function = ir.Function(module, ir.FunctionType(I32, [PTR]), "run")
    b = Builder(function.append_basic_block("entry"))
    kept, changed = b.alloca(I32), b.alloca(I32)
    b.invoke("llvm.x86.sse.stmxcsr", ir.VoidType(), kept)
    b.store(b.or_(b.load(kept, typ=I32), I32(_FLUSH)), changed)
    b.invoke("llvm.x86.sse.ldmxcsr", ir.VoidType(), changed)
    status = b.call(module.globals["run_blocks"], [function.args[0]])
    b.invoke("llvm.x86.sse.ldmxcsr", ir.VoidType(), kept)
    b.ret(status)
