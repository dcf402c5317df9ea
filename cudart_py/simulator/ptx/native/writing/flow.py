"""Generate a kernel's function that runs one warp until its lanes have exited or wait at a barrier."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...compiling.analysis.control_flow import members
from ...compiling.analysis.reachability import Meetings
from ...compiling.codegen import exit_slots
from ...compiling.opcode_table.opcodes import form_of
from ...compiling.program import Program
from ...syntax.instructions import Register
from ..barriers import Barrier, numbers_of
from ..errors import UnsupportedInstruction
from ..instances import ASIDE, HELD, PARKED, Instance, Layout, Place, SharedCall, called
from ..layout import CLUSTER_BARRIER, POLLS, Context, Fault, Head, Status
from ..library.frame import fault_if, record_fault, when
from ..lowering.table import lowering
from ..sites import Sites
from ..vectors import I1, I32, I64, PTR, Builder
from .checking import Checking
from .counting import Counting, depends_on_order
from .emitter import Emitter
from .flushing import processor_flushes
from .scheduling import Loops, Scheduling
from .shared_calls import Passed, SharedCalls, passed, pieces_of

Value = Any

# The cost of a call, in instructions of the budget.
_CALL_COST = 8


class Flow:
    """The generator of a module's function ``warp``, and what the generators of its parts share.

    `context` and `state` are the function's arguments. `barriers` says whether the kernel has barriers, `spins` whether
    it has loops that may wait for other lanes, and `waits` whether some of these only wait at barriers in memory.
    `flushes` says that the processor flushes subnormal numbers to zero during the launch, and `clustered` that blocks
    run together with the others of their cluster. `checking` is None unless checks observe the launch.
    """

    def __init__(
        self,
        module: ir.Module,
        program: Program,
        layout: Layout,
        local_size: int,
        sites: Sites,
        watch: frozenset[str],
    ) -> None:
        self.program = program
        self.layout = layout
        self.sites = sites
        self.clustered = "clusters" in watch
        function = ir.Function(module, ir.FunctionType(I32, [PTR, PTR]), "warp")
        function.attributes.add("nounwind")
        self.context, self.state = function.args
        self.b = b = Builder(function.append_basic_block("entry"))
        self.flushes = b.flushes = processor_flushes(layout)
        self.schedule = Scheduling(self)
        if layout.calls and "counters" in watch:
            # Lanes of different calls are in the one copy of a function together.
            raise UnsupportedInstruction("counts of functions that are recursive or called through pointers")
        self.counting = Counting(self) if "counters" in watch else None
        self.shared_calls = SharedCalls(self, local_size)
        self.checking: Checking | None = None
        codes = {one.code for one in layout.instances}
        meets = (Meetings(lambda block: [one for _, one in called(program, block)]).exist_in(code) for code in codes)
        if "checks" not in watch and any(meets):
            # Lanes that meet would be stuck. The checks then doubt the launch, but nothing else could undo it.
            raise UnsupportedInstruction("copies of an instruction with a member mask on both sides of a branch")
        if "checks" in watch:
            self.checking = Checking(self, follows="undefined" in watch)
        self.barriers = bool(layout.barriers)
        self._loops = Loops(layout)
        self.spins = sites.spins = bool(self._loops.waiting())
        if self.clustered and layout.calls:
            raise UnsupportedInstruction("recursive functions or calls through pointers in a launch with clusters")
        if self.counting is not None and depends_on_order(layout, self._loops.edges):
            raise UnsupportedInstruction("counts of a loop in which lanes may wait for others")
        self.waits = any(place.block.waits for place in layout.places)
        self.converges = any(place.block.converges for place in layout.places)
        # Whether each warp runs to its end without waiting for others, so one state serves all warps.
        may_wait = self.clustered or self.barriers or self.spins or self.converges or self._loops.load()
        self.alone = sites.alone = not may_wait
        self._find_shared_registers()

    def _find_shared_registers(self) -> None:
        """Find the registers that waiting lanes may need: writing them must not change those lanes' values.

        Lanes wait at higher-numbered blocks than the one that runs, at a member mask, after a barrier, or in a loop
        that spins.
        """
        self._highest: dict[tuple[int, int], int] = {}
        self._always: set[tuple[int, int]] = set()
        for number, place in enumerate(self.layout.places):
            for register in place.live:
                self._highest[register] = number
            if place.block.converges or self.spins:
                self._always |= place.live
            if place.block.terminator.kind == "barrier":
                resume = place.instance.numbers[place.block.terminator.targets[0]]
                self._always |= self.layout.places[resume].live
                index = self.layout.instances.index(place.instance)
                self._always |= {(index, slot) for slot in members(exit_slots(place.instance.code, place.block))}

    def write(self) -> None:
        """Generate the function."""
        b = self.b
        self._enter()
        b.branch(self.schedule.dispatch)
        self.schedule.write_dispatch()
        self._write_idle()
        for number, place in enumerate(self.layout.places):
            b.position_at_end(self.schedule.entries[number])
            self._write_place(number, place)

    def _enter(self) -> None:
        b, schedule = self.b, self.schedule
        fresh = b.icmp_unsigned("!=", b.load(schedule.head(Head.FRESH), typ=I32), I32(0))
        main = self.layout.places[self.layout.start]
        with when(b, fresh):
            b.store(I32(0), schedule.head(Head.FRESH))
            for _, slot in sorted(main.live):
                kind = Emitter(self, main.instance).storage(slot)
                main.instance.store(b, self.state, slot, b.const(kind, 0))
            if self.checking is not None:
                self.checking.undefined.begin(main.block.live_slots)
        if self.barriers:
            released = b.load(schedule.head(Head.RELEASE), typ=I32)
            with when(b, b.icmp_unsigned("!=", released, I32(0))):
                b.store(I32(0), schedule.head(Head.RELEASE))
                for barrier in self.layout.barriers:
                    word = schedule.word(PARKED, barrier.resume)
                    waiting = b.load(word, typ=I32)
                    lanes = b.and_(waiting, self._chosen(barrier, released))
                    with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                        b.store(b.xor(waiting, lanes), word)
                        parked = schedule.head(Head.PARKED)
                        b.store(b.and_(b.load(parked, typ=I32), b.not_(lanes)), parked)
                        schedule.push(barrier.resume, lanes)

    def _chosen(self, barrier: Barrier, released: Value) -> Value:
        """Return the mask of the lanes whose number of a barrier is in a set."""
        b = self.b
        if not isinstance(barrier.number, Register):
            chosen = b.icmp_unsigned("!=", b.and_(released, I32(1 << barrier.number)), I32(0))
            return b.select(chosen, I32(-1), I32(0))
        chosen = b.and_(b.lshr(b.splat(released), numbers_of(b, self.state, barrier)), b.const(I32, 1))
        return b.bits(b.compare("!=", chosen, 0))

    def _write_idle(self) -> None:
        """Generate the code for when no lane is ready: make lanes that stand aside ready, and yield to other warps."""
        b, schedule = self.b, self.schedule
        b.position_at_end(schedule.idle)
        if self.spins:
            yields: Value = I1(0)
            for number in self._resumed():
                word = schedule.word(ASIDE, number)
                lanes = b.load(word, typ=I32)
                some = b.icmp_unsigned("!=", lanes, I32(0))
                with when(b, some):
                    b.store(I32(0), word)
                    schedule.push(number, lanes)
                    if self._loops.polls(number):
                        b.set_word(self.context, Context.YIELDS, I64(POLLS))
                yields = b.or_(yields, some)
            with when(b, yields):
                b.ret(I32(Status.YIELDED))
        b.ret(I32(Status.DONE))

    def _resumed(self) -> list[int]:
        """Return the blocks at which lanes that stood aside go on."""
        after = [
            place.instance.numbers[place.block.terminator.targets[0]]
            for number, place in enumerate(self.layout.places)
            if self._gives_way(number)
        ]
        return sorted({*self._loops.waiting(), *after})

    def _gives_way(self, number: int) -> bool:
        """Return whether other lanes get a turn after a block, so that they leave the barriers at which they wait."""
        return self.waits and self.layout.places[number].block.gives_way

    # --- one block

    def _write_place(self, number: int, place: Place) -> None:
        b, block, instance = self.b, place.block, place.instance
        e = Emitter(self, instance)
        if block.converges:
            self._come_together(number, place)
            if self.checking is not None:
                self.checking.together(place)
        if self.checking is not None:
            self.checking.passing(place)
        e.mask = b.load(self.schedule.mask, typ=I32)
        if self.waits and not block.waits:
            b.set_word(self.context, Context.PROGRESS, I64(1))
        if self.counting is not None:
            self.counting.block(number, e.mask)
        for instruction in block.instructions:
            e.instruction = instruction
            form = form_of(instruction)
            if self.checking is None:
                lowering(form)(e, instruction, form)
                continue
            self.checking.undefined.before(instruction, instance, e.mask)
            lowering(form)(e, instruction, form)
            self.checking.undefined.after(instruction, instance, e.mask)
        if e.accessed:
            with when(b, b.icmp_unsigned("!=", b.word(self.context, Context.FAULT), I64(0)), likely=False):
                b.ret(I32(Status.FAULT))
        terminator = block.terminator
        condition = None
        if self.checking is not None:
            self.checking.undefined.ended(block, instance, e.mask)
        if terminator.kind == "branch":
            condition = e.register(terminator.condition)
        elif terminator.kind == "switch":
            condition = e.viewed(e.register(terminator.condition), I32)
        elif terminator.kind == "call":
            pointer = terminator.ending.call.target
            condition = e.value(pointer, "u64") if isinstance(pointer, Register) else None
        arguments = self._arguments(e, place) if terminator.kind == "call" else []
        returns = self._returned(e, place) if terminator.kind == "return" else []
        kept = block.live_out
        if terminator.kind == "barrier":
            # They are read when the barrier is complete.
            kept |= exit_slots(instance.code, block)
        for slot in sorted(e.written):
            if kept >> slot & 1:
                self._keep(number, e.mask, instance, slot, e.register(slot))
        if terminator.kind == "call":
            self._enter_functions(number, place, e.mask, condition, arguments)
        elif terminator.kind == "return":
            self._leave(returns)
        else:
            self._end(number, place, e, condition)

    def _keep(self, number: int, mask: Value, instance: Instance, slot: int, value: Value) -> None:
        """Store a register without changing its value in lanes that wait elsewhere and need it."""
        register = (self.layout.instances.index(instance), slot)
        if self._highest.get(register, -1) > number or register in self._always:
            old = instance.load(self.b, self.state, slot, value.type.element)
            value = self.b.select(self.b.truth(mask), value, old)
        instance.store(self.b, self.state, slot, value)

    def _come_together(self, number: int, place: Place) -> None:
        """Hold the lanes until all members of their member mask have arrived or exited."""
        b, schedule = self.b, self.schedule
        mask = b.load(schedule.mask, typ=I32)
        alive = b.load(schedule.head(Head.ALIVE), typ=I32)
        with when(b, b.icmp_unsigned("!=", mask, alive), likely=False):
            word = schedule.word(HELD, number)
            here = b.or_(mask, b.load(word, typ=I32))
            b.store(I32(0), word)
            b.store(here, schedule.mask)
            missing = b.and_(schedule.members(place), b.splat(b.and_(alive, b.not_(here))))
            waits = b.and_(b.bits(b.compare("!=", missing, 0)), here)
            with when(b, b.icmp_unsigned("!=", waits, I32(0))):
                forced = b.and_(b.load(schedule.head(Head.FORCED), typ=I32), here)
                with when(b, b.icmp_unsigned("==", forced, I32(0)), likely=True):
                    b.store(here, word)
                    b.branch(schedule.dispatch)
                if self.checking is not None:
                    self.checking.deserted(place, here)
        waiting_no_more = b.not_(b.load(schedule.mask, typ=I32))
        b.store(b.and_(b.load(schedule.head(Head.FORCED), typ=I32), waiting_no_more), schedule.head(Head.FORCED))

    # --- ends of blocks

    def _arguments(self, e: Emitter, place: Place) -> list[Passed]:
        """Return the registers of the callees that a call assigns, and their new values."""
        instance, functions = place.instance, self.program.entry.module.function_parameters
        given = instance.code.call_sites[id(place.block.terminator.ending)].arguments
        found = []
        for callee in instance.callees[place.block.index]:
            code = callee.instance.code
            found += passed(e, given, callee.instance, pieces_of(code, functions[code.name]))
        return found

    def _enter_functions(self, number: int, place: Place, mask: Value, pointer: Value, arguments: list[Passed]) -> None:
        """Let lanes continue in the functions that they call, or return to Python if the budget is used up."""
        b, instance, schedule = self.b, place.instance, self.schedule
        instruction = place.block.terminator.ending
        callees = instance.callees[place.block.index]
        found, rest = [], mask
        for callee in callees:
            lanes = mask
            if callee.address is not None:
                lanes = b.and_(b.bits(b.compare("==", pointer, callee.address)), mask)
                rest = b.and_(rest, b.not_(lanes))
            found.append((callee, lanes))
        if pointer is not None:
            fault_if(b, self.context, rest, Fault.CALL, self.sites.add(instruction, instance), pointer)
        if instance.root.shared or any(callee.number is not None for callee in callees):
            site = self.sites.add(instruction, instance)
            for callee, lanes in found:
                self.shared_calls.check_stack(instance, callee.instance.code.local_bytes, lanes, site)
        for callee, lanes in found:
            if callee.number is not None:
                with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                    self.shared_calls.enter(callee.number, lanes)
        for target, slot, value in arguments:
            self._keep(number, mask, target, slot, value)
        if pointer is None and callees[0].number is None:
            schedule.go(callees[0].instance.numbers[0], mask)
            return
        for callee, lanes in found:
            with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                schedule.push(callee.instance.numbers[0], lanes)
        with when(b, schedule.spend(len(place.block.instructions) + _CALL_COST), likely=False):
            b.ret(I32(Status.PAUSED))
        b.branch(schedule.dispatch)

    def _returned(self, e: Emitter, place: Place) -> list[tuple[SharedCall, Value, list[Passed]]]:
        """Return the calls to which lanes return from a function, the lanes, and the caller's new registers."""
        module, code = self.program.entry.module, place.instance.code
        pieces = pieces_of(code, module.function_results[code.name])
        found = []
        for call, lanes in self.shared_calls.returning(place.instance, e.mask):
            site = call.caller.code.call_sites[id(call.block.terminator.ending)]
            found.append((call, lanes, passed(e, pieces, call.caller, site.results)))
        return found

    def _leave(self, returns: list[tuple[SharedCall, Value, list[Passed]]]) -> None:
        """Let lanes continue after the calls that led to a function."""
        b, schedule = self.b, self.schedule
        go_on = schedule.go if len(returns) == 1 else schedule.push
        for call, lanes, values in returns:
            with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                self.shared_calls.leave(call, lanes)
                for target, slot, value in values:
                    old = target.load(b, self.state, slot, value.type.element)
                    target.store(b, self.state, slot, b.select(b.truth(lanes), value, old))
                go_on(call.caller.numbers[call.block.terminator.targets[0]], lanes)
        b.branch(schedule.dispatch)

    def _end(self, number: int, place: Place, e: Emitter, condition: Value) -> None:
        b, schedule = self.b, self.schedule
        terminator, instance = place.block.terminator, place.instance
        kind, mask = terminator.kind, e.mask
        if kind == "next":
            self._go(number, instance.numbers[terminator.targets[0]], mask)
        elif kind == "branch":
            taken = b.and_(b.bits(condition), mask)
            if terminator.negated:
                taken = b.xor(taken, mask)
            self._branch(number, [instance.numbers[target] for target in terminator.targets], mask, taken)
        elif kind == "switch":
            self._switch(number, place, mask, condition)
        elif kind == "exit":
            alive = schedule.head(Head.ALIVE)
            b.store(b.and_(b.load(alive, typ=I32), b.not_(mask)), alive)
            b.branch(schedule.dispatch)
        elif kind == "barrier":
            if self.checking is not None:
                self.checking.arrive(number)
            barrier = next(one for one in self.layout.barriers if one.instruction is terminator.instruction)
            if not barrier.waits and barrier.number != CLUSTER_BARRIER:
                assert isinstance(barrier.number, int)
                count = b.at(b.pointer(self.context, Context.ARRIVALS), 8 * barrier.number)
                b.store(b.add(b.load(count, typ=I64), b.zext(b.ones(mask), I64)), count)
            if not barrier.waits:
                self._go(number, instance.numbers[terminator.targets[0]], mask)
                return
            schedule.add_lanes(schedule.word(PARKED, instance.numbers[terminator.targets[0]]), mask)
            schedule.add_lanes(schedule.head(Head.PARKED), mask)
            b.branch(schedule.dispatch)
        else:
            site = I32(self.sites.add(terminator.ending, instance))
            record_fault(b, self.context, Fault.TRAP, site, mask, None)
            b.ret(I32(Status.FAULT))

    def _go(self, number: int, target: int, lanes: Value) -> None:
        b, schedule = self.b, self.schedule
        if self._gives_way(number):
            self._stand_aside(target, lanes)
            b.branch(schedule.dispatch)
            return
        if target > number:
            schedule.go(target, lanes)
            return
        turns = self._loops.turns(number, target)
        if turns:
            with when(b, self._has_spun(turns)):
                self._stand_aside(target, lanes)
                b.branch(schedule.dispatch)
        cost = sum(len(place.block.instructions) + 1 for place in self.layout.places[target : number + 1])
        schedule.go_back(target, lanes, cost)

    def _has_spun(self, turns: int) -> Value:
        """Count an iteration of a loop that may wait; return whether the lanes must now let others run."""
        b, place = self.b, self.schedule.head(Head.SPINS)
        spins = b.add(b.load(place, typ=I32), I32(1))
        b.store(spins, place)
        return b.icmp_unsigned(">=", spins, I32(turns))

    def _stand_aside(self, target: int, lanes: Value) -> None:
        """Make lanes that go to `target` wait until other lanes have had a turn."""
        schedule = self.schedule
        self.b.store(I32(0), schedule.head(Head.SPINS))
        schedule.add_lanes(schedule.word(ASIDE, target), lanes)

    def _branch(self, number: int, targets: list[int], mask: Value, taken: Value) -> None:
        b, schedule = self.b, self.schedule
        yes, no = targets
        rest = b.xor(mask, taken)
        for none, target in ((rest, yes), (taken, no)):
            with when(b, b.icmp_unsigned("==", none, I32(0))):
                self._go(number, target, mask)
        (low, low_lanes), (high, high_lanes) = sorted([(yes, taken), (no, rest)], key=lambda item: item[0])
        schedule.push(high, high_lanes)
        self._go(number, low, low_lanes)

    def _switch(self, number: int, place: Place, mask: Value, index: Value) -> None:
        b, schedule = self.b, self.schedule
        targets = [place.instance.numbers[target] for target in place.block.terminator.targets]
        instruction = place.block.terminator.ending
        outside = b.and_(b.bits(b.compare(">=", index, len(targets))), mask)
        fault_if(b, self.context, outside, Fault.BRANCH, self.sites.add(instruction, place.instance), index)
        for target in sorted(set(targets)):
            chosen = [place for place, other in enumerate(targets) if other == target]
            truth = b.compare("==", index, chosen[0])
            for other in chosen[1:]:
                truth = b.or_(truth, b.compare("==", index, other))
            lanes = b.and_(b.bits(truth), mask)
            with when(b, b.icmp_unsigned("!=", lanes, I32(0))):
                turns = 0
                if target <= number:
                    schedule.spend(number - target + 8)
                    turns = self._loops.turns(number, target)
                if not turns:
                    schedule.push(target, lanes)
                    continue
                over = self._has_spun(turns)
                with when(b, over):
                    self._stand_aside(target, lanes)
                with when(b, b.not_(over)):
                    schedule.push(target, lanes)
        if any(target <= number for target in targets):
            with when(b, b.icmp_signed("<", b.word(self.context, Context.BUDGET), I64(0)), likely=False):
                b.ret(I32(Status.PAUSED))
        b.branch(schedule.dispatch)
