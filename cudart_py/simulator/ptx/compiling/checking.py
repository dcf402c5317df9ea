"""Check a module's instructions when it is loaded: each distinct form once, each name and literal at each use."""

from __future__ import annotations

from functools import lru_cache

from ..faults import PtxError, UnsupportedError
from ..syntax.instructions import (
    Access,
    Function,
    Immediate,
    Instruction,
    Operand,
    Register,
    Symbol,
    UnsupportedUse,
    Vector,
)
from ..syntax.parser import Module
from ..syntax.places import SourceText
from ..syntax.special_names import NAMES
from ..syntax.types import register_fits, type_size
from .analysis.control_flow import passes_parameter
from .emitters.memory import SYSTEM_FUNCTIONS
from .forms import Form
from .opcode_table.opcodes import find_forms
from .operand_kinds import (
    ADDRESS,
    DOUBLE,
    INTEGER,
    LITERALS,
    MEMORY,
    SELECTED,
    SINGLE,
    SINK,
    SPECIAL,
    TEXTURE,
    Kind,
    fitting,
)
from .unsupported import hint, is_ptx

_MOST_BARRIERS = 16
# The beginnings of the names of the device runtime's functions, with which kernels launch kernels.
_DEVICE_RUNTIME = ("cuda", "__cudaCDP2")
_WARP = 32
# The number of modules kept, with their compiled code, for programs that load the same image many times.
_KEPT_MODULES = 32


@lru_cache(_KEPT_MODULES)
def load_module(text: str, source: SourceText | None = None, *, relocatable: bool = False) -> Module:
    """Return the parsed and checked module of a PTX text; `source` is the source from which it was compiled.

    Loading the same text again returns the same module, because a module contains nothing that belongs to a context.

    Instructions that aren't simulated are recorded in `Module.unsupported`. Raise PtxError for text that isn't PTX and,
    unless it is `relocatable`, for calls of functions that it doesn't define. Raise UnsupportedError for an address
    size other than 64 bits.
    """
    module = Module(text)
    if source is not None:
        module.places.keep(source)
    for function in module.bodies:
        _Checker(module, function, relocatable).check()
    return module


def undefined_names(module: Module) -> list[str]:
    """Return the functions and variables that a module uses and declares, but doesn't define."""
    initial = {symbol for variable in module.variables.values() for _, symbol, _ in variable.relocations}
    used = initial.union(*(body.names for body in module.bodies))
    functions = [name for name in module.function_parameters if module.function(name) is None and _is_foreign(name)]
    variables = [name for name, variable in module.variables.items() if variable.external]
    known = {*module.function_parameters, *module.variables, *module.shared}
    kernels = sorted(module.announced - known)
    return [name for name in (*functions, *variables, *kernels) if name in used]


def _is_foreign(function: str) -> bool:
    """Return whether a function is neither one of the system's nor one of the device runtime's."""
    return function not in SYSTEM_FUNCTIONS and not function.startswith(_DEVICE_RUNTIME)


class _Checker:
    """The checker of one body; the functions that a `relocatable` module calls may be defined elsewhere."""

    def __init__(self, module: Module, function: Function, relocatable: bool) -> None:
        self._module = module
        self._function = function
        self._relocatable = relocatable
        self._parameters = dict(function.parameter_sizes)
        entry = module.entries.get(function.name)
        self._kernel = {p.name: p.size for p in entry.params} if entry is not None and entry.body is function else {}
        for parameter in (
            *module.function_parameters.get(function.name, ()),
            *module.function_results.get(function.name, ()),
        ):
            if not self._kernel and not parameter.register_type:
                self._parameters[parameter.name] = parameter.size
        self._symbols: dict[str, Kind] = {}

    def check(self) -> None:
        """Check all instructions of the body, including that the labels of branches exist."""
        for instruction in self._function.instructions:
            try:
                self._check(instruction)
            except UnsupportedError as error:
                self._leave_out(instruction, error.report)
            except PtxError as error:
                what = f"{error} in '{instruction.text}', in {self._function.name}"
                raise PtxError(what, instruction.ptx_line) from None

    def _check(self, instruction: Instruction) -> None:
        forms = find_forms(instruction.opcode)
        if not forms:
            if not is_ptx(instruction.opcode):
                raise PtxError(f"{instruction.opcode} is not a PTX instruction")
            self._leave_out(instruction, hint(instruction.opcode))
            return
        ends = forms[0].row.ends
        if ends == "call":
            self._check_call(instruction)
        elif ends in ("branch", "switch"):
            self._check_branch(instruction)
        elif forms[0].row.access == "tex" and _tells_residency(instruction):
            self._leave_out(instruction, "leave out the second result: sparse textures are not simulated")
        else:
            form = fitting(forms, tuple(self._kind(operand) for operand in instruction.operands))
            if form.has_numbers:
                _check_numbers(instruction, form)
            if passes_parameter(form):
                self._check_parameter(instruction, form)

    def _leave_out(self, instruction: Instruction, why: str, key: str = "") -> None:
        """Record an instruction that isn't simulated; a report lists one per key, which is the opcode by default."""
        use = UnsupportedUse(instruction, why, key or instruction.opcode)
        self._module.unsupported.setdefault(self._function.name, []).append(use)

    # --- kinds of operands

    def _kind(self, operand: Operand) -> Kind:
        if isinstance(operand, Register):
            register = self._function.registers[operand.name]
            return f"{SELECTED}{operand.selector} {register}" if operand.selector else register
        if isinstance(operand, Immediate):
            return {0: INTEGER, 32: SINGLE, 64: DOUBLE}[operand.float_bits]
        if isinstance(operand, Symbol):
            kind = self._symbols.get(operand.name)
            if kind is None:
                kind = self._symbols[operand.name] = self._symbol_kind(operand.name)
            if operand.offset and kind != ADDRESS:
                raise PtxError(f"{operand.name} is not an address")
            return kind
        if isinstance(operand, Vector):
            return tuple(self._kind(item) for item in operand.items)
        assert isinstance(operand, Access)
        return self._access_kind(operand)

    def _symbol_kind(self, name: str) -> Kind:
        if name == "_":
            return SINK
        if name == "WARP_SZ":
            return INTEGER
        if name == "%is_explicit_cluster":
            return "pred"
        if name.startswith("%"):
            if name in NAMES:
                return SPECIAL
            raise PtxError(f"{name} is neither declared nor a special register that the simulator has")
        function, module = self._function, self._module
        declared = (
            function.shared, function.local, self._kernel, self._parameters,
            module.variables, module.shared, module.code_addresses,
        )  # fmt: skip  # grouped by meaning
        if any(name in names for names in declared) or (self._relocatable and name in module.announced):
            return ADDRESS
        raise PtxError(f"{name} isn't declared")

    def _access_kind(self, access: Access) -> Kind:
        base = self._kind(access.base)
        if access.coordinates is not None:
            items = tuple(self._kind(item) for item in access.coordinates.items)
            return (TEXTURE, base, *items)
        if base in LITERALS or base == ADDRESS:
            return MEMORY
        if isinstance(access.base, Symbol):  # the sink `_` or a special register
            raise PtxError(f"{access.base.name} cannot be used as an address")
        if isinstance(base, str) and (register_fits(base, "u64") or register_fits(base, "u32")):
            return MEMORY
        raise PtxError(f"an address is in a register of .{base}")

    # --- checks that need more than the form

    def _check_parameter(self, instruction: Instruction, form: Form) -> None:
        """Check that an access stays within the parameter that it names."""
        load = form.row.access == "ld"
        access = instruction.access
        if not isinstance(access.base, Symbol):
            if not load or self._function.name not in self._module.entries:
                raise PtxError("a function's parameter has no address in a register")
            return
        name = access.base.name
        size = self._parameters.get(name)
        if size is None:
            size = self._kernel.get(name) if load else None
        if size is None:
            raise PtxError(f"{name} is not a parameter that can be {'read' if load else 'written'} here")
        start = access.base.offset + access.offset
        end = start + form.vector * type_size(form.types[0])
        if start < 0 or end > size:
            raise PtxError(f"bytes {start} to {end - 1} aren't within {name}, which has {size}")

    def _check_branch(self, instruction: Instruction) -> None:
        function = self._function
        target = instruction.operands[-1]
        assert isinstance(target, Symbol)
        if len(instruction.operands) == 1:
            if target.name not in function.labels:
                raise PtxError(f"{target.name} is not a label")
            return
        places = function.branch_targets.get(target.name)
        if places is None:
            raise PtxError(f"{target.name} is not a list of branch targets")
        for name in places:
            if name not in function.labels:
                raise PtxError(f"{name} is not a label")
        selector = instruction.operands[0]
        if not isinstance(selector, Register) or not register_fits(function.registers[selector.name], "u32"):
            raise PtxError("the index of a branch is not a 32-bit register")

    def _check_call(self, instruction: Instruction) -> None:
        """Check that the function exists, and that the call has the right numbers of arguments and results."""
        call = instruction.call
        for operand in (*call.results, *call.arguments):
            if isinstance(operand, Symbol) and operand.name not in self._function.parameter_sizes:
                raise PtxError(f"{operand.name} is not a parameter of this function")
            if not isinstance(operand, Symbol | Register):
                raise PtxError("the argument passed is neither a parameter nor a register")
        if isinstance(call.target, Register):
            if not register_fits(self._function.registers[call.target.name], "u64"):
                raise PtxError("a function's address has 64 bits")
            return
        name = call.target.name
        module = self._module
        if name not in module.function_parameters:
            raise PtxError(f"function {name} isn't declared")
        counts = len(module.function_results[name]), len(module.function_parameters[name])
        if counts != (len(call.results), len(call.arguments)):
            raise PtxError(f"function {name} returns {counts[0]} results and takes {counts[1]} arguments")
        if name in SYSTEM_FUNCTIONS:
            expected, _ = SYSTEM_FUNCTIONS[name]
            if counts[1] != expected or any(isinstance(a, Register) for a in call.arguments):
                raise PtxError(f"{name} takes {expected} parameters")
        elif module.function(name) is None:
            if _is_foreign(name):
                if self._relocatable:
                    return
                raise PtxError(
                    f"the function {name} is declared but not defined; compile the source that defines it, and this "
                    'one, with compile_image(source, options=["-rdc=true"]), and load both by cuda.link([...])'
                )
            why = "not simulated: of the runtime's functions for kernels, those that launch, copy and allocate are"
            self._leave_out(instruction, why, f"call {name}")


def _tells_residency(fetch: Instruction) -> bool:
    """Return whether a fetch also writes a predicate, which says whether all texels are in memory."""
    destination = fetch.operands[0] if fetch.operands else None
    return isinstance(destination, Vector) and any(isinstance(item, Vector) for item in destination.items)


def _check_numbers(instruction: Instruction, form: Form) -> None:
    """Check the literals that must be in a range."""
    for pattern, operand in zip(form.operands, instruction.operands, strict=False):
        if not isinstance(operand, Immediate):
            continue
        value = operand.value
        if pattern[0] == "#" and not 0 <= value <= int(pattern[1:]):
            raise PtxError(f"{value} isn't from 0 to {pattern[1:]}")
        if pattern[0] == "@" and value not in map(int, pattern[1:].split("/")):
            raise PtxError(f"{value} isn't {' or '.join(pattern[1:].split('/'))}")
        if pattern == "B" and not 0 <= value < _MOST_BARRIERS:
            raise PtxError(f"{value} is not a barrier number from 0 to {_MOST_BARRIERS - 1}")
        if pattern in ("N", "N?") and (value <= 0 or value % _WARP):
            raise PtxError(f"{value} threads are not a positive multiple of {_WARP}")
