"""Read a PTX module: headers and variables at once, bodies when they are first needed."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any

from .body import parse_body
from .declarations import declared_variable, parse_parameters
from .faults import PtxError
from .instructions import Function, Param, Variable

__all__ = ["FUNCTION_BASE", "FUNCTION_STEP", "Entry", "Module"]

# Function pointers lie in a window of their own, above every address of memory.
FUNCTION_BASE = 1 << 53
FUNCTION_STEP = 16

_TOP = re.compile(
    r"""(?:
      (?P<skip>\s+|//[^\n]*|/\*.*?\*/|\.(?:version|target|address_size)[^\n]*|\.pragma[^;]*;|\.alias[^;]*;)
    | \.file\s+(?P<file>\d+)\s+"(?P<path>[^"]*)"[^\n]*
    | \.section\s+[^{]*(?P<section>\{)
    | (?P<linkage>(?:\.(?:visible|extern|weak|common)\s+)*)
      (?:\.(?P<kind>entry|func)\b | (?P<variable>\.(?:global|const|shared)\b[^;]*);)
    )""",
    re.VERBOSE | re.DOTALL,
)
_HEADER = re.compile(
    r"\s*(?:\((?P<results>[^)]*)\)\s*)?(?P<name>[\w$]+)\s*(?:\((?P<parameters>[^)]*)\))?(?P<directives>[^{;]*)(?P<end>[{;])",
    re.DOTALL,
)
_WORD = re.compile(r"[\w$]+")
_COMMENT = re.compile(r"//[^\n]*")


class Entry:
    """Describe one kernel; its body is parsed when `function` is first read."""

    def __init__(self, module: Module, name: str, params: tuple[Param, ...], directives: str, body: str) -> None:
        self.module = module
        self.name = name
        self.params = params
        self.parameter_bytes = params[-1].offset + params[-1].size if params else 0
        self.required_block = _triple(directives, "reqntid")
        self.max_threads = _triple(directives, "maxntid")
        self.cluster = _triple(directives, "reqnctapercluster")
        self.body = body
        # The machine keeps what it compiled here.
        self.program: Any = None

    @property
    def static_shared_bytes(self) -> int:
        """Give the bytes of the shared variables that the kernel and what it calls declare."""
        return self._shared_layout[1]

    @property
    def shared_offsets(self) -> dict[str, int]:
        """Give each shared variable's offset; external ones stand behind the static ones."""
        return self._shared_layout[0]

    @cached_property
    def local_bytes(self) -> int:
        """Give the bytes of the kernel's own local variables."""
        return sum(variable.size for variable in _local_variables(self.body))

    @cached_property
    def function(self) -> Function:
        """Parse the kernel's body."""
        return parse_body(self.name, self.body)

    @cached_property
    def _shared_layout(self) -> tuple[dict[str, int], int]:
        bodies = [self.body, *self.module.reachable_bodies(self.body)]
        offsets: dict[str, int] = {}
        end = 0
        words = set().union(*(_WORD.findall(body) for body in bodies))
        variables = [v for v in self.module.shared.values() if v.name in words and not v.external]
        for body in bodies:
            variables += _shared_variables(body)
        for variable in variables:
            if variable.name in offsets:
                continue
            end = -(-end // variable.alignment) * variable.alignment
            offsets[variable.name] = end
            end += variable.size
        for variable in self.module.shared.values():
            if variable.external:
                alignment = max(variable.alignment, 1)
                offsets[variable.name] = -(-end // alignment) * alignment
        return offsets, end


def _declarations(body: str, space: str) -> list[Variable]:
    found = re.findall(rf"^\s*(\.{space}\s+\.[^;\n]*);", body, re.MULTILINE)
    return [declared_variable(text) for text in found]


def _shared_variables(body: str) -> list[Variable]:
    return _declarations(body, "shared")


def _local_variables(body: str) -> list[Variable]:
    return _declarations(body, "local")


def _triple(directives: str, name: str) -> tuple[int, int, int] | None:
    match = re.search(rf"\.{name}\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directives)
    return (int(match[1]), int(match[2] or 1), int(match[3] or 1)) if match else None


class Module:
    """Parse PTX text.

    `entries` and `variables` are complete at once; `function_addresses` gives the values that relocations
    to functions must be given. Raises PtxError for text that isn't PTX.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.entries: dict[str, Entry] = {}
        self.variables: dict[str, Variable] = {}
        self.shared: dict[str, Variable] = {}
        self.files: dict[int, str] = {}
        self.function_parameters: dict[str, tuple[Param, ...]] = {}
        self.function_results: dict[str, tuple[Param, ...]] = {}
        self.function_addresses: dict[str, int] = {}
        self._bodies: dict[str, str] = {}
        self._functions: dict[str, Function] = {}
        self._read()

    def source(self, file: int, line: int) -> str:
        """Name a source position as ``file:line``."""
        return f"{self.files[file]}:{line}" if file in self.files else f"line {line}"

    def function(self, name: str) -> Function | None:
        """Give a device function's parsed body, or None when the module has none of that name."""
        if name not in self._functions and name in self._bodies:
            self._functions[name] = parse_body(name, self._bodies[name])
        return self._functions.get(name)

    def function_at(self, address: int) -> str | None:
        """Give the name of the function at a function pointer's value."""
        index, rest = divmod(address - FUNCTION_BASE, FUNCTION_STEP)
        names = list(self.function_addresses)
        return names[index] if not rest and 0 <= index < len(names) else None

    def function_local_bytes(self, body: str) -> int:
        """Give the bytes of local variables that a body declares."""
        return sum(-(-variable.size // 16) * 16 for variable in _local_variables(body))

    def reachable_bodies(self, body: str) -> list[str]:
        """Give the bodies of all functions that `body` may call.

        A function whose address is taken anywhere counts, because an indirect call may reach it.
        """
        found: dict[str, str] = {}
        waiting = [body]
        taken = {symbol for variable in self.variables.values() for _, symbol, _ in variable.relocations}
        waiting += [self._bodies[name] for name in taken if name in self._bodies]
        while waiting:
            words = set(_WORD.findall(waiting.pop()))
            for name in words & self._bodies.keys():
                if name not in found:
                    found[name] = self._bodies[name]
                    waiting.append(found[name])
        return [found[name] for name in self._bodies if name in found]

    def _read(self) -> None:
        text = self.text
        position, length = 0, len(text.rstrip("\0 \n\t"))
        while position < length:
            match = _TOP.match(text, position)
            if match is None:
                raise PtxError(f"{text[position : position + 60].strip()!r} isn't understood")
            position = match.end()
            if match["file"]:
                self.files[int(match["file"])] = match["path"]
            elif match["section"]:
                position = _close(text, position)
            elif match["variable"]:
                self._variable(match["variable"], "extern" in match["linkage"])
            elif match["kind"]:
                position = self._header(match["kind"], position)

    def _variable(self, text: str, external: bool) -> None:
        variable = declared_variable(_COMMENT.sub("", text), external)
        if variable.space == "shared":
            self.shared[variable.name] = variable
        else:
            self.variables[variable.name] = variable

    def _header(self, kind: str, position: int) -> int:
        match = _HEADER.match(self.text, position)
        if match is None:
            raise PtxError(f"{self.text[position : position + 60].strip()!r} isn't understood")
        name = match["name"]
        params = parse_parameters(_COMMENT.sub("", match["parameters"] or ""))
        position = match.end()
        body = ""
        if match["end"] == "{":
            end = _close(self.text, position)
            body = self.text[position : end - 1]
            position = end
        if kind == "entry":
            self.entries[name] = Entry(self, name, params, match["directives"], body)
            return position
        self.function_parameters[name] = params
        self.function_results[name] = parse_parameters(match["results"] or "")
        self.function_addresses.setdefault(name, FUNCTION_BASE + FUNCTION_STEP * len(self.function_addresses))
        if match["end"] == "{":
            self._bodies[name] = body
        return position


_BRACE = re.compile(r"[{}]|//[^\n]*|/\*.*?\*/|\"[^\"]*\"", re.DOTALL)


def _close(text: str, position: int) -> int:
    """Give the position behind the brace that closes the one before `position`."""
    depth = 1
    for match in _BRACE.finditer(text, position):
        token = match[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if not depth:
                return match.end()
    raise PtxError("a brace is never closed")
