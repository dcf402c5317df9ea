"""Find pieces of a stop's code by name: in its device code, in the headers that it includes, and in its program."""

from __future__ import annotations

import ast
import functools
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import stops
from .device_code import find as find_device_code

# A part of a Python function, as in "fit_row[points:x]".
_PART = re.compile(r"([\w.]+)\[(\w+)(?::(\w+))?\]")
_BOUNDS = re.compile(r"\w.*\b__launch_bounds__\([^()]*\)$")


@dataclass(frozen=True)
class Excerpt:
    """Lines of a file, with the comments directly above them; `first` is the number of the first line."""

    file: Path
    first: int
    lines: Sequence[str]


def find(stop: str, name: str) -> Excerpt:
    """Return the definition of a function, structure, class or constant in the code of a stop.

    A method of a Python class is named as in "Pieces.queue". "fit_row[x]" is the first statement in the Python function
    `fit_row` that assigns to `x`, and "fit_row[points:x]" extends from the one that assigns to `points` to the next one
    that assigns to `x`.
    The arguments of a template instance, as in "transpose_tile<1>", select an explicit specialisation if there is one,
    and are ignored otherwise. Raises LookupError with the files that were searched if none has the definition.
    """
    plain = name.partition("<")[0]
    part = _PART.fullmatch(name)
    files: list[Path] = []
    for file in _files(stop):
        files.append(file)
        text = file.read_text(encoding="utf-8")
        if part:
            found = _part_of_function(text, *part.groups()) if file.suffix == ".py" else None
        else:
            found = _in_python(text, plain) if file.suffix == ".py" else _in_cuda(text.splitlines(), name)
        if found:
            first, last = found
            lines = text.splitlines()[first - 1 : last]
            return Excerpt(file, first, textwrap.dedent("\n".join(lines)).splitlines() if part else lines)
    raise LookupError(f"no {name} in {', '.join(file.name for file in files)}")


def _files(stop: str) -> Iterator[Path]:
    """Yield the stop's device code, the headers next to it that it includes, its program, and the modules that it uses.

    The modules are those that the program imports from its own folder, and then those from the tour's.
    """
    try:
        code = find_device_code(stop)
    except FileNotFoundError:  # the stop has only host code
        pass
    else:
        sources = [code]
        for source in sources:  # the list grows in the loop
            yield source
            included = re.findall(r'^#include "([^"]+)"', source.read_text(encoding="utf-8"), re.MULTILINE)
            sources += [code.parent / header for header in included if code.parent / header not in sources]
    program = Path(__file__).parent.parent.joinpath(*stops.module_name(stop).split(".")).with_suffix(".py")
    yield program
    text = program.read_text(encoding="utf-8")
    for module in re.findall(r"^from \.(\w+) import ", text, re.MULTILINE):
        yield program.parent / f"{module}.py"
    for module in re.findall(r"^from \.\.(\w+) import ", text, re.MULTILINE):
        yield program.parent.parent / f"{module}.py"


@functools.lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def _in_python(text: str, name: str) -> tuple[int, int] | None:
    owner, _, name = name.rpartition(".")
    body: Sequence[ast.stmt] = _parsed(text).body
    if owner:
        body = [part for node in body if isinstance(node, ast.ClassDef) and node.name == owner for part in node.body]
    for node in body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                found = node.name == name
            case ast.Assign() | ast.AnnAssign():
                first = node.lineno
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found = any(isinstance(part, ast.Name) and part.id == name for to in targets for part in ast.walk(to))
            case _:
                continue
        if found:
            return first, node.end_lineno or first
    return None


def _part_of_function(text: str, name: str, first: str, last: str | None) -> tuple[int, int] | None:
    found = _in_python(text, name)
    if not found:
        return None
    begin, end = None, None
    for node in sorted(_statements(_parsed(text)), key=lambda node: node.lineno):
        if not found[0] < node.lineno <= found[1]:
            continue
        if begin is None and first in _assigned(node):
            begin = node.lineno
        if begin is not None and (last or first) in _assigned(node):
            end = node.end_lineno
            break
    return (begin, end) if begin and end else None


def _statements(tree: ast.AST) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt))


def _assigned(node: ast.stmt) -> set[str]:
    """Return the variables and attributes to which a statement assigns."""
    targets: list[ast.expr] = []
    match node:
        case ast.Assign():
            targets = node.targets
        case ast.AnnAssign():
            targets = [node.target]
        case ast.With():
            targets = [item.optional_vars for item in node.items if item.optional_vars]
    names = (part for target in targets for part in ast.walk(target))
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in names
        if isinstance(part, ast.Name | ast.Attribute)
    }


def _in_cuda(lines: Sequence[str], name: str) -> tuple[int, int] | None:
    """Return the first and last line of a definition, which begins and ends without indentation."""
    word = re.escape(name.partition("<")[0])
    # A function's name is followed by its parameters, a structure's by its base or body, a constant's by its value.
    begins = re.compile(
        rf"^(?!//)\w.*\b{word}\s*\(|^(?:struct|class)\s+(?:alignas\(\d+\)\s+)?{word}\b"
        rf"|^\w[^(]*\b{word}\b\s*(?:=|\[|;)"
    )
    # A function's name may be on a line of its own, below its launch bounds.
    indented = re.compile(rf"\s+{word}\s*\(")
    found = [
        at
        for at, line in enumerate(lines)
        if begins.search(line) or (at and _BOUNDS.match(lines[at - 1]) and indented.match(line))
    ]
    # An explicit specialisation of a template has the template arguments in its definition.
    special = [at for at in found if re.search(rf"\b{re.escape(name)}", lines[at])] if "<" in name else []
    for at in special or found:
        last = at
        while not re.match(r"\}|\S.*[;}]\s*(?://.*)?$", lines[last]):
            last += 1
            if last == len(lines):
                return None
        first = at
        while first and (re.match(r"//|template\b", lines[first - 1]) or _BOUNDS.match(lines[first - 1])):
            first -= 1
        return first + 1, last + 1
    return None
