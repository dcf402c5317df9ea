"""Check a module's instructions when it is loaded: each distinct form once, each name and literal where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from .control_flow import EXTERNS
from .faults import PtxError, UnsupportedError
from .instructions import Access, Call, Function, Immediate, Instruction, Operand, Register, Symbol, Vector
from .library import has_conversion
from .opcodes import Form, find_forms, hint, is_ptx
from .operand_types import doubled, fragment_length, register_fits, type_size
from .special_names import known

if TYPE_CHECKING:
    from .parser import Module

__all__ = ["check_module"]

# What an operand is, as far as a form asks: a register's type, or a word in brackets for what is no register.
_Kind: TypeAlias = "str | tuple[_Kind, ...]"
_INTEGER, _SINGLE, _DOUBLE = "(integer)", "(float 32)", "(float 64)"
_SPECIAL, _ADDRESS, _SINK = "(special)", "(symbol)", "(_)"
_MEMORY, _TEXTURE = "(address)", "(texture)"
_LITERALS = {_INTEGER, _SINGLE, _DOUBLE}
_SYSTEM_ARGUMENTS = {"vprintf": 2, "malloc": 1, "free": 1, "__assertfail": 5}
_MOST_BARRIERS = 16
_WARP = 32
# How many of the unsupported instructions a report lists.
_MOST_LISTED = 20


def check_module(module: Module) -> None:
    """Check all bodies; raise PtxError for what is no PTX, or UnsupportedError that names all that isn't run."""
    unsupported: dict[str, str] = {}
    for function in module.bodies:
        _Checker(module, function, unsupported).check()
    if unsupported:
        found = list(unsupported.values())
        more = f"\n  and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
        listing = "".join(f"\n  {text}" for text in found[:_MOST_LISTED])
        raise UnsupportedError(f"the simulator doesn't run {_count(len(found))} of this module:{listing}{more}")


def _count(count: int) -> str:
    return "an instruction" if count == 1 else f"{count} instructions"


class _Checker:
    """Check one body. `unsupported` collects, by opcode, what the simulator doesn't run."""

    def __init__(self, module: Module, function: Function, unsupported: dict[str, str]) -> None:
        self._module = module
        self._function = function
        self._unsupported = unsupported
        self._parameters = dict(function.parameter_sizes)
        entry = module.entries.get(function.name)
        self._kernel = {p.name: p.size for p in entry.params} if entry is not None and entry.body is function else {}
        for parameter in (
            *module.function_parameters.get(function.name, ()),
            *module.function_results.get(function.name, ()),
        ):
            if not self._kernel and not parameter.register_type:
                self._parameters[parameter.name] = parameter.size
        self._symbols: dict[str, _Kind] = {}

    def check(self) -> None:
        """Check all instructions of the body, and that its labels stand where they are used."""
        for instruction in self._function.instructions:
            try:
                self._check(instruction)
            except PtxError as error:
                what = f"{error} in '{instruction.text}', in {self._function.name}"
                raise PtxError(what, instruction.ptx_line) from None

    def _check(self, instruction: Instruction) -> None:
        forms = find_forms(instruction.opcode)
        opcode = forms[0].opcode if forms else instruction.opcode
        if not forms or (opcode.startswith("cvt.") and not has_conversion(opcode)):
            if not forms and not is_ptx(opcode):
                raise PtxError(f"{opcode} is no instruction of PTX")
            self._unsupported.setdefault(opcode, self._sentence(instruction, hint(opcode)))
            return
        instruction.opcode = opcode
        base = opcode.partition(".")[0]
        if base == "call":
            self._check_call(instruction)
        elif base in ("bra", "brx"):
            self._check_branch(instruction)
        else:
            kinds = tuple(self._kind(operand) for operand in instruction.operands)
            key = (opcode, kinds)
            found = _checked.get(key)
            if found is None:
                found = _checked[key] = _fitting(forms, kinds)
            if isinstance(found, str):
                raise PtxError(found)
            if base == "wmma" and any(
                isinstance(operand, Access) and isinstance(operand.base, Symbol) for operand in instruction.operands
            ):
                why = "put the variable's address into a register first"
                self._unsupported.setdefault(opcode, self._sentence(instruction, why))
            if found.has_numbers:
                self._check_numbers(instruction, found)
            if base in ("ld", "st") and ".param" in opcode:
                self._check_parameter(instruction, found)

    def _sentence(self, instruction: Instruction, why: str) -> str:
        where = self._module.source(*instruction.user)
        return f"'{instruction.text}' at {where}, in {self._function.name}: {why}"

    # --- kinds of operands

    def _kind(self, operand: Operand) -> _Kind:
        if isinstance(operand, Register):
            return self._function.registers[operand.name]
        if isinstance(operand, Immediate):
            return {0: _INTEGER, 32: _SINGLE, 64: _DOUBLE}[operand.float_bits]
        if isinstance(operand, Symbol):
            kind = self._symbols.get(operand.name)
            if kind is None:
                kind = self._symbols[operand.name] = self._symbol_kind(operand.name)
            if operand.offset and kind != _ADDRESS:
                raise PtxError(f"{operand.name} is no address")
            return kind
        if isinstance(operand, Vector):
            return tuple(self._kind(item) for item in operand.items)
        assert isinstance(operand, Access)
        return self._access_kind(operand)

    def _symbol_kind(self, name: str) -> _Kind:
        if name == "_":
            return _SINK
        if name == "WARP_SZ":
            return _INTEGER
        if name == "%is_explicit_cluster":
            return "pred"
        if name.startswith("%"):
            if known(name):
                return _SPECIAL
            raise PtxError(f"{name} is neither declared nor a special register that the simulator has")
        function, module = self._function, self._module
        declared = (
            function.shared, function.local, self._kernel, self._parameters,
            module.variables, module.shared, module.function_addresses,
        )  # fmt: skip  # grouped by meaning
        if any(name in names for names in declared):
            return _ADDRESS
        raise PtxError(f"{name} isn't declared")

    def _access_kind(self, access: Access) -> _Kind:
        base = self._kind(access.base)
        if access.coordinates is not None:
            items = tuple(self._kind(item) for item in access.coordinates.items)
            return (_TEXTURE, base, *items)
        if base in _LITERALS or base == _ADDRESS or (isinstance(base, str) and register_fits(base, "u64")):
            return _MEMORY
        if isinstance(base, str) and register_fits(base, "u32"):
            return _MEMORY
        raise PtxError(f"an address is in a register of .{base}")

    # --- what depends on more than the form

    def _check_numbers(self, instruction: Instruction, form: Form) -> None:
        """Check the literals that have a range."""
        for pattern, operand in zip(form.operands, instruction.operands, strict=False):
            if not isinstance(operand, Immediate):
                continue
            value = operand.value
            if pattern[0] == "#" and not 0 <= value <= int(pattern[1:]):
                raise PtxError(f"{value} isn't from 0 to {pattern[1:]}")
            if pattern == "B" and not 0 <= value < _MOST_BARRIERS:
                raise PtxError(f"{value} is no barrier: they are numbered from 0 to {_MOST_BARRIERS - 1}")
            if pattern == "N?" and (value <= 0 or value % _WARP):
                raise PtxError(f"{value} threads are no positive multiple of {_WARP}")
        if form.opcode.startswith("cp.async.c"):
            size = instruction.operands[2]
            sizes = (16,) if ".cg." in form.opcode else (4, 8, 16)
            if not isinstance(size, Immediate) or size.value not in sizes:
                raise PtxError(f"{form.opcode} copies {' or '.join(map(str, sizes))} bytes")

    def _check_parameter(self, instruction: Instruction, form: Form) -> None:
        """Check that an access stays within the parameter that it names."""
        load = form.opcode.startswith("ld")
        access = instruction.operands[1 if load else 0]
        assert isinstance(access, Access)
        if not isinstance(access.base, Symbol):
            if not load or self._function.name not in self._module.entries:
                raise PtxError("a function's parameter has no address in a register")
            return
        name = access.base.name
        size = self._parameters.get(name)
        if size is None:
            size = self._kernel.get(name) if load else None
        if size is None:
            raise PtxError(f"{name} is no parameter that can be {'read' if load else 'written'} here")
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
                raise PtxError(f"{target.name} is no place in the code")
            return
        places = function.branch_targets.get(target.name)
        if places is None:
            raise PtxError(f"{target.name} is no list of targets")
        for name in places:
            if name not in function.labels:
                raise PtxError(f"{name} is no place in the code")
        selector = instruction.operands[0]
        if not isinstance(selector, Register) or not register_fits(function.registers[selector.name], "u32"):
            raise PtxError("the index of a branch is no register of 32 bits")

    def _check_call(self, instruction: Instruction) -> None:
        """Check that what is called exists and is given what it takes."""
        call = instruction.operands[0]
        assert isinstance(call, Call)
        for operand in (*call.results, *call.arguments):
            if isinstance(operand, Symbol) and operand.name not in self._function.parameter_sizes:
                raise PtxError(f"{operand.name} is no parameter that is declared here")
            if not isinstance(operand, Symbol | Register):
                raise PtxError("what is passed is neither a parameter nor a register")
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
            raise PtxError(f"function {name} gives {counts[0]} results and takes {counts[1]} arguments")
        if name in EXTERNS:
            if counts[1] != _SYSTEM_ARGUMENTS[name] or any(isinstance(a, Register) for a in call.arguments):
                raise PtxError(f"{name} takes {_SYSTEM_ARGUMENTS[name]} parameters")
        elif module.function(name) is None:
            if not name.startswith("cuda"):
                raise PtxError(f"function {name} is declared and nowhere defined: link the module with what defines it")
            why = "not simulated: the runtime's functions for kernels, such as launching another"
            self._unsupported.setdefault(f"call {name}", self._sentence(instruction, why))


# The form that an opcode has with operands of these kinds, or what is wrong with it.
_checked: dict[tuple[str, tuple[_Kind, ...]], Form | str] = {}


def _fitting(forms: tuple[Form, ...], kinds: tuple[_Kind, ...]) -> Form | str:
    """Return the form that has operands of these kinds, or what is wrong with the last one."""
    mistake = ""
    for form in forms:
        mistake = _mistake(form, kinds)
        if not mistake:
            return form
    return mistake


def _mistake(form: Form, kinds: tuple[_Kind, ...]) -> str:
    """Return what is wrong with the operands of an instruction, an empty text if nothing."""
    if form.operands == ("P", "P"):
        return _moved(form, kinds)
    patterns = list(form.operands)
    if patterns and patterns[-1] == "b64?" and form.opcode.startswith(("ld.", "st.", "atom.", "red.", "cp.")):
        # The policy of caching stands last, and only where the opcode says so.
        patterns.pop()
        if "L2::cache_hint" in form.opcode:
            if not kinds or _source(kinds[-1], "b64"):
                return "the cache policy is no register of 64 bits"
            kinds = kinds[:-1]
    least = sum(not pattern.endswith("?") for pattern in patterns)
    if not least <= len(kinds) <= len(patterns):
        expected = str(least) if least == len(patterns) else f"{least} to {len(patterns)}"
        return f"{form.opcode} has {expected} operands, not {len(kinds)}"
    for place, (pattern, kind) in enumerate(zip(patterns, kinds, strict=False)):
        found = _misfit(form, pattern.removesuffix("?"), kind, place)
        if found:
            return f"operand {place + 1} {found}"
    return ""


def _misfit(form: Form, pattern: str, kind: _Kind, place: int) -> str:
    """Return how an operand differs from what its place asks for."""
    if pattern[0] == "=":
        return _destination(form, pattern[1:], kind)
    if pattern == "M":
        return "" if kind == _MEMORY else "is no address in brackets"
    if pattern == "V":
        items = kind if isinstance(kind, tuple) else (kind,)
        if len(items) != form.vector or items[0] == _TEXTURE:
            return f"has {len(items)} elements, not {form.vector}"
        return next(filter(None, (_source(item, form.types[0], wider=True) for item in items)), "")
    if pattern == "F":
        return _fragment(kind, 4 if form.opcode.startswith("tex") else fragment_length(form.opcode, place))
    if pattern == "X":
        return _texture(form, kind)
    if pattern[0] == "#":
        return "" if kind == _INTEGER else "is no literal"
    if pattern in ("B", "N"):
        return _source(kind, "u32") if kind != _SPECIAL else "is a special register"
    if pattern == "Z":
        return "" if kind == "pred" else _source(kind, "u32")
    if pattern == "A":
        return _source(kind, "u64") and _source(kind, "u32")
    wanted, wider = _type(form, pattern)
    return _source(kind, wanted, wider)


def _type(form: Form, pattern: str) -> tuple[str, bool]:
    """Return the type that a pattern stands for, and whether a wider register serves."""
    name, wider = pattern.removesuffix("~"), pattern.endswith("~")
    if name == "T":
        name = form.types[0]
    elif name == "U":
        name = form.types[1]
    elif name == "W":
        name = doubled(form.types[0])
    return name, wider


def _source(kind: _Kind, wanted: str, wider: bool = False) -> str:
    """Return why an operand can't be read as a type."""
    if isinstance(kind, tuple):
        return "is a vector"
    if kind in _LITERALS:
        return _literal(kind, wanted)
    if kind in (_SPECIAL, _ADDRESS):
        if (
            wanted[0] not in "bus"
            or wanted.endswith("x2")
            or wanted.startswith("bf")
            or type_size(wanted) not in (2, 4, 8)
        ):
            return f"is no value of .{wanted}"
        return ""
    if kind in (_SINK, _MEMORY):
        return "is no value"
    return "" if register_fits(kind, wanted, wider) else f"is a register of .{kind}, not of .{wanted}"


def _literal(kind: str, wanted: str) -> str:
    """Return why a literal isn't one of a type."""
    if wanted == "b128":
        return "is a literal of 128 bits"
    if kind == _INTEGER or wanted in ("f32", "f64"):
        return ""
    size = 4 if kind == _SINGLE else 8
    return "" if type_size(wanted) == size and wanted != "pred" else f"is a floating-point literal, not of .{wanted}"


def _destination(form: Form, pattern: str, kind: _Kind) -> str:
    """Return why an operand can't be written as a type."""
    main, _, beside = pattern.partition("|")
    if pattern == "V":
        items = kind if isinstance(kind, tuple) else (kind,)
        if len(items) != form.vector:
            return f"has {len(items)} elements, not {form.vector}"
        return next(filter(None, (_register(item, form.types[0], True) for item in items)), "")
    wanted, wider = _type(form, main)
    if not isinstance(kind, tuple):
        if beside and main == "pred" and form.types[0].endswith("x2"):
            return "is one predicate, not two"
        if form.opcode.startswith("elect"):
            return "is a register without a predicate beside it"
        return _register(kind, wanted, wider)
    if not beside or len(kind) != 2:
        return "is a vector"
    return _register(kind[0], wanted, wider) or _register(kind[1], "pred", False)


def _register(kind: _Kind, wanted: str, wider: bool) -> str:
    if kind == _SINK:
        return ""
    if isinstance(kind, tuple) or kind[0] == "(":
        return "is no register"
    return "" if register_fits(kind, wanted, wider) else f"is a register of .{kind}, not of .{wanted}"


def _moved(form: Form, kinds: tuple[_Kind, ...]) -> str:
    """Return what is wrong with the operands of ``mov``, which packs and unpacks vectors too."""
    if len(kinds) != 2:
        return f"{form.opcode} has 2 operands, not {len(kinds)}"
    whole = form.types[0]
    to, source = kinds
    if isinstance(to, tuple) and isinstance(source, tuple):
        return "both operands are vectors"
    for vector, other in ((to, source), (source, to)):
        if isinstance(vector, tuple):
            bits = 8 * type_size(whole) // len(vector)
            if whole[0] not in "bus" or bits * len(vector) != 8 * type_size(whole) or bits not in (8, 16, 32, 64):
                return f"a vector of {len(vector)} is no .{whole}"
            check = _register if vector is to else lambda item, wanted, wider: _source(item, wanted, wider)
            found = next(filter(None, (check(item, f"b{bits}", False) for item in vector)), "")
            return found or (_source(other, whole) if vector is to else _register(other, whole, False))
    return _register(to, whole, False) or _source(source, whole)


def _fragment(kind: _Kind, length: int) -> str:
    """Return why an operand isn't the vector that a matrix or a texture fetch asks for."""
    if not isinstance(kind, tuple) or kind[0] == _TEXTURE:
        return "is no vector"
    if len(kind) != length:
        return f"has {len(kind)} elements, not {length}"
    return next(filter(None, (_source(item, "b32") if item != _SINK else "" for item in kind)), "")


def _texture(form: Form, kind: _Kind) -> str:
    if not isinstance(kind, tuple) or kind[0] != _TEXTURE:
        return "is no texture with its coordinates"
    least = 1 if ".1d." in form.opcode else 2
    if len(kind) - 2 not in (least, 4):
        return f"has {len(kind) - 2} coordinates, not {least}"
    items = kind[2:]
    return _source(kind[1], "u64") or next(filter(None, (_source(item, form.types[1]) for item in items)), "")
