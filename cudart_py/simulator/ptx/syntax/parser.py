"""Read a PTX module: its header, variables, kernels and functions."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from ..faults import PtxError, PtxVersionError, UnsupportedError
from ..windows import FUNCTION_WINDOW, KERNEL_WINDOW
from .body import parse_body
from .declarations import declared_variable, parse_parameters
from .instructions import Call, Function, Param, UnsupportedUse, Variable, placed
from .operand_syntax import integer
from .places import Places
from .source import Source

# The distance in bytes between the addresses of functions in their window.
_FUNCTION_STEP = 16

_HEADER = re.compile(
    r"\s*(?:\((?P<results>[^()]*)\)\s*)?(?P<name>[\w$%]+)\s*(?:\((?P<parameters>[^()]*)\)\s*)?(?P<directives>[^{};]*)(?P<end>[{;])"
)
_WORD = re.compile(r"\.(\w+)")
_LINKAGE = re.compile(r"\.(visible|extern|weak|common)\s*")
_VERSION = re.compile(r"\.version\s+(\d{1,3})\.(\d{1,3})(?!\S)")
_TARGET = re.compile(r"\.target\s+([^\n;.]*)")
# The major version of PTX in CUDA 13.
_NEWEST_VERSION = 9
_TARGETS = re.compile(r"sm_\d{2,3}[af]?|texmode_(?:unified|independent)|debug|map_f64_to_f32")
_ADDRESS_SIZE = re.compile(r"\.address_size\s+(\d+)(?!\S)")
_FILE = re.compile(r'\.file\s+(\d{1,9})\s+"((?:[^"\\\n]|\\.)*)"[^\n]*')
_SECTION = re.compile(r"\.section\s+[^{};]*\{")
_LOCATION = re.compile(r"\.loc\b[^\n]*")
_VARIABLES = ("global", "const", "shared")
_DIRECTIVE = re.compile(r"\.(\w+)([^.]*)")
_DIRECTIVES = {
    "maxntid", "reqntid", "minnctapersm", "maxnctapersm", "maxnreg", "pragma", "noreturn", "unique", "attribute",
    "reqnctapercluster", "explicitcluster", "maxclusterrank", "blocksareclusters", "local_maxnreg", "abi_preserve",
    "abi_preserve_control",
}  # fmt: skip  # a list of words
_MOST_STATIC_SHARED = 48 << 10
_MOST_CONSTANT = 64 << 10
_MOST_LOCAL = 512 << 10
_MOST_PARAMETERS = 32764


class Entry:
    """One kernel with its parsed body."""

    def __init__(
        self,
        module: Module,
        name: str,
        params: tuple[Param, ...],
        directives: dict[str, tuple[int, ...]],
        body: Function,
    ) -> None:
        self.module = module
        self.name = name
        self.params = params
        self.parameter_bytes = params[-1].offset + params[-1].size if params else 0
        self.required_block = _triple(directives, "reqntid")
        self.max_threads = _triple(directives, "maxntid")
        self.cluster = _triple(directives, "reqnctapercluster")
        self.body = body
        # The compiled program, which `program_of` stores here, and the one for a debugger, keyed by whether it is that.
        self.programs: dict[bool, Any] = {}

    @cached_property
    def home(self) -> int:
        """Return the number of the source file that contains the kernel, or 0 if the PTX names none."""
        return next((site.user[0] for site in self.body.instructions if site.user[0]), 0)

    @property
    def static_shared_bytes(self) -> int:
        """Return the size in bytes of the static shared variables of the kernel and of its possible callees."""
        return self._shared_layout[1]

    @property
    def shared_offsets(self) -> dict[str, int]:
        """Return each shared variable's offset; external (dynamic) ones begin after the static ones."""
        return self._shared_layout[0]

    @cached_property
    def has_dynamic_shared(self) -> bool:
        """Return whether the kernel or a possible callee uses an external shared variable, sized by the launch."""
        names = set().union(*(body.names for body in (self.body, *self.called)))
        return any(variable.external and variable.name in names for variable in self.module.shared.values())

    @property
    def local_bytes(self) -> int:
        """Return the size in bytes of the kernel's own local variables."""
        return sum(variable.size for variable in self.body.local.values())

    @cached_property
    def called(self) -> list[Function]:
        """Return the bodies of all functions that the kernel may call."""
        return self.module.reachable_bodies(self.body)

    @cached_property
    def _shared_layout(self) -> tuple[dict[str, int], int]:
        bodies = [self.body, *self.called]
        names = set().union(*(body.names for body in bodies))
        variables = [v for v in self.module.shared.values() if v.name in names and not v.external]
        for body in bodies:
            variables += body.shared.values()
        offsets, end = placed(variables)
        for variable in self.module.shared.values():
            if variable.external:
                offsets[variable.name] = -(-end // variable.alignment) * variable.alignment
        return offsets, end


def _triple(directives: dict[str, tuple[int, ...]], name: str) -> tuple[int, int, int] | None:
    extents = directives.get(name)
    return (*extents, 1, 1, 1)[:3] if extents else None  # type: ignore[return-value]  # because of the slice


def _read_directives(text: str) -> dict[str, tuple[int, ...]]:
    """Return the numbers of each directive between a function's header and its body."""
    found: dict[str, tuple[int, ...]] = {}
    rest = text.strip()
    while rest:
        match = _DIRECTIVE.match(rest)
        if match is None or match[1] not in _DIRECTIVES:
            raise PtxError(f"{rest[:60]!r} isn't understood after a function's name")
        rest = rest[match.end() :]
        argument = match[2].strip()
        if match[1] in ("maxntid", "reqntid", "reqnctapercluster"):
            extents = [integer(item.strip()) for item in argument.split(",")]
            if len(extents) > 3 or any(extent is None or not 0 < extent < 1 << 31 for extent in extents):
                raise PtxError(f".{match[1]} {argument} must have positive extents")
            found[match[1]] = tuple(extent or 0 for extent in extents)
    return found


class Module:
    """A parsed PTX module.

    All of the text is parsed at once. `function_addresses` and `kernel_addresses` contain the addresses to which
    relocations to functions and kernels must resolve. Raises PtxError for text that isn't PTX, and UnsupportedError for
    an address size other than 64 bits.
    """

    def __init__(self, text: str) -> None:
        # The target architecture, such as "sm_90".
        self.target = ""
        self.entries: dict[str, Entry] = {}
        self.variables: dict[str, Variable] = {}
        self.shared: dict[str, Variable] = {}
        self.places = Places()
        self.function_parameters: dict[str, tuple[Param, ...]] = {}
        self.function_results: dict[str, tuple[Param, ...]] = {}
        self.function_addresses: dict[str, int] = {}
        self.kernel_addresses: dict[str, int] = {}
        # The uses of instructions that aren't simulated, keyed by the function, as `load_module` found them.
        self.unsupported: dict[str, list[UnsupportedUse]] = {}
        self._functions: dict[str, Function] = {}
        # The position of each name's declaration, and the names that are so far only declared, not defined.
        self._declared_at: dict[str, int] = {}
        self.announced: set[str] = set()
        self._source = Source(text)
        self._read()
        self._check_variables()
        for entry in self.entries.values():
            if entry.static_shared_bytes > _MOST_STATIC_SHARED:
                what = f"kernel {entry.name} has {entry.static_shared_bytes} bytes of static shared memory"
                raise self._error(entry.name, f"{what}; at most {_MOST_STATIC_SHARED} are allowed")

    def function(self, name: str) -> Function | None:
        """Return a device function's body, or None if the module has no body of that name."""
        return self._functions.get(name)

    @property
    def text(self) -> str:
        """Return the module's text, with blanks in place of comments."""
        return self._source.text

    @property
    def bodies(self) -> list[Function]:
        """Return the bodies of all kernels and functions."""
        return [*(entry.body for entry in self.entries.values()), *self._functions.values()]

    def function_at(self, address: int) -> str | None:
        """Return the name of the function to which a function pointer points, or None."""
        index, rest = divmod(address - FUNCTION_WINDOW, _FUNCTION_STEP)
        names = list(self.function_addresses)
        return names[index] if not rest and 0 <= index < len(names) else None

    def kernel_at(self, address: int) -> Entry | None:
        """Return the kernel that has an address, or None."""
        return next((self.entries[name] for name, place in self.kernel_addresses.items() if place == address), None)

    @property
    def code_addresses(self) -> dict[str, int]:
        """Return the addresses of all functions and kernels."""
        return self.function_addresses | self.kernel_addresses

    def accepts(self, name: str, call: Call) -> bool:
        """Return whether a function has as many parameters and results as a call passes."""
        counts = len(self.function_parameters[name]), len(self.function_results[name])
        return counts == (len(call.arguments), len(call.results))

    @cached_property
    def taken(self) -> frozenset[str]:
        """Return the names whose addresses the module takes, among them those of all functions called by pointers."""
        taken = {symbol for variable in self.variables.values() for _, symbol, _ in variable.relocations}
        return frozenset(taken.union(*(other.taken for other in self.bodies)))

    def reachable_bodies(self, body: Function) -> list[Function]:
        """Return the bodies of all functions that `body` may call.

        An indirect call may reach every function whose address is taken anywhere in the module.
        """
        found: set[str] = set()
        waiting = [body]
        while waiting:
            caller = waiting.pop()
            names = caller.names | self.taken if caller.calls_pointers else caller.names
            for name in names & self._functions.keys() - found:
                found.add(name)
                waiting.append(self._functions[name])
        return [function for name, function in self._functions.items() if name in found]

    def _error(self, name: str, what: str) -> PtxError:
        return self._source.error(self._declared_at[name], what)

    # --- reading

    def _read(self) -> None:
        source = self._source
        position = source.skip_blanks(0)
        position = self._header_line(position, _VERSION, "the image is not PTX: it has no .version at its start")
        position = self._header_line(position, _TARGET, ".version isn't followed by .target")
        while position < source.end:
            try:
                position = source.skip_blanks(self._read_one(position))
            except PtxError as error:
                if error.line:
                    raise
                raise source.error(position, str(error)) from None

    def _header_line(self, position: int, pattern: re.Pattern[str], what: str) -> int:
        match = pattern.match(self._source.text, position)
        if match is None:
            raise self._source.error(position, what)
        if pattern is _TARGET:
            self._check_target(match[1], position)
            self.target = match[1].split(",")[0].strip()
        elif int(match[1]) > _NEWEST_VERSION:
            what = f"the PTX has version {match[1]}.{match[2]}, and the newest supported version is {_NEWEST_VERSION}.x"
            raise PtxVersionError(what, self._source.line(position))
        return self._source.skip_blanks(match.end())

    def _check_target(self, text: str, position: int) -> None:
        words = [word.strip() for word in text.split(",")]
        for word in words:
            if not _TARGETS.fullmatch(word):
                raise self._source.error(position, f"target {word!r} isn't known")
        if not words[0].startswith("sm_"):
            raise self._source.error(position, ".target does not begin with an architecture")

    def _read_one(self, position: int) -> int:
        """Read one directive, variable or function, and return where it ends."""
        source, text = self._source, self._source.text
        linkage = set()
        start = position
        while (match := _LINKAGE.match(text, position)) is not None:
            linkage.add(match[1])
            position = match.end()
        keyword = _WORD.match(text, position)
        name = keyword[1] if keyword else ""
        if name in ("entry", "func"):
            assert keyword is not None
            return self._function(name, keyword.end(), start)
        if name in _VARIABLES:
            end = source.statement_end(position)
            self._variable(text[position:end], start, "extern" in linkage)
            return end + 1
        if linkage:
            raise PtxError(f"{source.excerpt(start)!r} declares nothing")
        if name == "section" and (match := _SECTION.match(text, position)) is not None:
            return source.close(match.end()) + 1
        if name == "file" and (match := _FILE.match(text, position)) is not None:
            self.places.add(int(match[1]), match[2])
            return match.end()
        if name == "loc" and (match := _LOCATION.match(text, position)) is not None:
            return match.end()
        if name == "target" and (match := _TARGET.match(text, position)) is not None:
            self._check_target(match[1], position)
            return match.end()
        if name == "address_size" and (match := _ADDRESS_SIZE.match(text, position)) is not None:
            if match[1] != "64":
                raise UnsupportedError(
                    f"the simulator supports only 64-bit addresses, and the PTX has {match[1]}-bit ones"
                )
            return match.end()
        if name in ("pragma", "alias"):
            return source.statement_end(position) + 1
        raise PtxError(f"{source.excerpt(position)!r} isn't understood")

    def _declare(self, name: str, position: int, announced: bool) -> None:
        """Record a name of the module; it may be declared twice only if one of the declarations doesn't define it."""
        if name in self._declared_at and name not in self.announced and not announced:
            line = self._source.line(self._declared_at[name])
            raise self._source.error(position, f"{name} is declared twice, first in PTX line {line}")
        if not announced:
            self.announced.discard(name)
        elif name not in self._declared_at:
            self.announced.add(name)
        self._declared_at.setdefault(name, position)

    def _variable(self, text: str, position: int, external: bool) -> None:
        variable = declared_variable(text, external)
        known = variable.name in self._declared_at
        self._declare(variable.name, position, external)
        if external and known:
            return
        if variable.space == "shared":
            self.shared[variable.name] = variable
        else:
            self.variables[variable.name] = variable

    def _function(self, kind: str, position: int, start: int) -> int:
        source = self._source
        match = _HEADER.match(source.text, position)
        if match is None:
            raise PtxError(f"{source.excerpt(start)!r} isn't understood")
        name = match["name"]
        params = parse_parameters(match["parameters"] or "")
        results = parse_parameters(match["results"] or "")
        directives = _read_directives(match["directives"])
        defined = match["end"] == "{"
        self._declare(name, start, not defined)
        if kind == "entry" and (results or any(parameter.register_type for parameter in params)):
            raise PtxError(f"kernel {name} has results or parameters in registers")
        if kind == "entry" and params and params[-1].offset + params[-1].size > _MOST_PARAMETERS:
            raise PtxError(f"kernel {name} has more than {_MOST_PARAMETERS} bytes of parameters")
        if kind == "func":
            self.function_parameters[name] = params
            self.function_results[name] = results
            self.function_addresses.setdefault(name, FUNCTION_WINDOW + _FUNCTION_STEP * len(self.function_addresses))
        position = match.end()
        if not defined:
            return position
        end = source.close(position)
        body = parse_body(name, source, position, end, params, results, kind == "entry")
        if sum(variable.size for variable in body.local.values()) > _MOST_LOCAL:
            raise PtxError(f"{name} has more than {_MOST_LOCAL} bytes of local variables")
        self.variables.update(body.variables)
        self._declared_at.update(dict.fromkeys(body.variables, start))
        if kind == "entry":
            self.entries[name] = Entry(self, name, params, directives, body)
            self.kernel_addresses[name] = KERNEL_WINDOW + _FUNCTION_STEP * len(self.kernel_addresses)
        else:
            self._functions[name] = body
        return end + 1

    def _check_variables(self) -> None:
        for name, variable in self.variables.items():
            for _, symbol, _ in variable.relocations:
                if symbol not in self.variables and symbol not in self.code_addresses:
                    what = f"variable {name} is initialised with the address of {symbol}, which isn't defined"
                    raise self._error(name, what)
        constant = sum(variable.size for variable in self.variables.values() if variable.space == "const")
        if constant > _MOST_CONSTANT:
            what = f"the module has {constant} bytes of constant variables"
            raise PtxError(f"{what}; at most {_MOST_CONSTANT} are allowed")
