"""The extern "C" kernels, variables and constants that the text of a source declares at file or namespace scope.

The scan is fast and may be wrong, since only the compiler knows macros, headers and conditions. Its caller therefore
checks each name and size against the PTX. Declarations in comments, in strings and inside `#if` are skipped, except
below a few conditions that are known to be true.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

# Text that is not code, and the tokens that end a declaration. An unterminated comment or string matches up to the end
# of the text or of the line, so no text is scanned twice.
_PIECE = re.compile(
    r"""
    (?P<directive>^[ \t\v\f]*\#(?:\\\r?\n|/\*(?s:.*?)(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*|"(?:\\.|[^"\\\n])*"|[^\n])*+)
    |(?P<comment>//(?:\\\r?\n|[^\n])*+|/\*(?s:.*?)(?:\*/|\Z))
    |(?P<raw>(?<![\w$])(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s"]{0,16})\((?s:.*?)(?:\)(?P=delimiter)"|\Z))
    |(?P<quoted>"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?)
    |(?P<number>(?<![\w$])\d[\w.]*'[\w.']*)
    |(?P<mark>[{};])
    |(?P<unclear>[\#\\]|\?\?|%:|<%|%>)
    """,
    re.VERBOSE | re.MULTILINE | re.ASCII,
)
_CONDITION = re.compile(r"\s*\#\s*(if|ifdef|ifndef|elif|elifdef|elifndef|else|endif)\b")
# Conditions that are true in NVRTC, which appear in files that host compilers also read, and conditions that test for a
# header.
_HOLDS = re.compile(r"\s*\#\s*ifdef\s+(?:__CUDACC__|__CUDACC_RTC__|__CUDA_ARCH__)\s*", re.ASCII)
_ASKS = re.compile(r"\s*\#\s*if\s+__has_include\s*\(\s*<([^<>]*)>\s*\)\s*", re.ASCII)
# Directives that redefine a keyword for which the patterns below search.
_CHANGED_KEYWORD = re.compile(
    r"\s*\#\s*(?:define|undef)\s+(?:__(?:global|device|constant|managed)__|const|constexpr|signed|unsigned|bool|char"
    r"|short|int|long|float|double)(?!\w)"
)
# A trigraph of C++14 and older that changes the ends of comments and strings.
_BACKSLASH_TRIGRAPH = b"??/"
_NAMESPACE = re.compile(r"\s*(?:inline\s+)?namespace\s+(\w+(?:\s*::\s*\w+)*)\s*", re.ASCII)
_EXTERN_C = re.compile(r'\bextern\s*"C"')
_LINKAGE = re.compile(r'\s*extern\s*"C"\s*')
_ATTRIBUTE = re.compile(r"\b(?:__\w+__|alignas)\s*\([^()]*\)|\[\[[^\[\]]*\]\]", re.ASCII)
_KERNEL = re.compile(r"\bvoid\s+([A-Za-z_]\w*)\s*\(", re.ASCII)
_SPACE = re.compile(r"\b__(?:device|constant|managed)__\b")
_BRACKET = re.compile(r"[<(]")
_DECLARATOR = re.compile(r"\b((?:[A-Za-z_]\w*::)*[A-Za-z_]\w*)\s*(?:\[[^\[\]]*\]\s*)*(?:=.*)?\Z", re.DOTALL | re.ASCII)
# Declarations that are left out: with internal linkage, of symbols that another file defines, of templates, types and
# functions.
_LEFT_OUT = re.compile(
    r"\b(?:template|auto|static|const|constexpr|constinit|inline|extern|thread_local|typedef|using|friend|struct|class|union"
    r"|enum|operator|__shared__)\b"
)
_CONSTANT = re.compile(
    r"\s*(?:(?:static|inline|__device__)\s+)*(?:constexpr|const)\s+((?:[a-z]+\s+)+?)(?=[A-Za-z_]\w*\s*(?:=|$))",
    re.ASCII,
)
_CONSTANT_NAME = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:=.*)?", re.DOTALL | re.ASCII)
# The spellings of constants' types in a source, keyed by the compiler's spelling.
_TYPES = {
    "bool": ("bool",),
    "int": ("int", "signed", "signed int"),
    "unsigned int": ("unsigned", "unsigned int"),
    "long": ("long", "long int"),
    "unsigned long": ("unsigned long", "unsigned long int"),
    "long long": ("long long", "long long int"),
    "unsigned long long": ("unsigned long long", "unsigned long long int"),
    "float": ("float",),
    "double": ("double",),
}
_CONSTANT_TYPES = {words: f"{type} const" for type, spellings in _TYPES.items() for words in spellings}
# In characters. Longer declarations are left to the compiler.
_LONGEST = 4096
# Beyond this column the compiler shortens the lines that it quotes.
_LONGEST_LINE = 400


class Declarations(NamedTuple):
    """Names of extern "C" kernels, and qualified names of variables; `managed` variables are in managed memory.

    `types` are the types at the start of the variables' declarations. If one of them is not a type, it is a macro that
    may expand to `static`. `constants` maps names of constants to their types; these are not queried, because a query
    would suppress the warning about an unused constant. `end` is the offset in bytes of the end of the last
    declaration, where more declarations may be inserted.
    """

    kernels: list[str]
    variables: list[str]
    managed: list[str]
    types: list[str]
    constants: dict[str, str]
    end: int


class _Condition(NamedTuple):
    """An open `#if`: the scopes open at the start of its branches, and whether the current branch is compiled."""

    scopes: list[_Scope]
    holds: bool


class _Scope(NamedTuple):
    """The prefix of the names in a scope, None inside functions and types, and whether the scope has C linkage."""

    prefix: str | None
    is_c: bool


_FILE = _Scope("", False)
_HIDDEN = _Scope(None, False)


def read_declarations(source: bytes, folders: Sequence[str] = ()) -> Declarations | None:
    """Return the declarations of a source, or None if their ends cannot be found in its text.

    Declarations below a condition that tests for a header are included if one of the folders has the header.
    """
    if _BACKSLASH_TRIGRAPH in source:
        return None
    text = source.decode("latin-1")
    found = Declarations([], [], [], [], {}, 0)
    scopes = [_FILE]
    conditions: list[_Condition] = []
    statement: list[str] = []
    start = end = 0
    is_active = True
    for piece in _PIECE.finditer(text):
        kind = piece.lastgroup
        if kind == "unclear" or (kind == "directive" and _CHANGED_KEYWORD.match(piece[0])):
            return None
        if is_active:
            statement.append(text[start : piece.start()])
        start = piece.end()
        if kind == "directive":
            _follow_condition(piece[0], scopes, conditions, folders)
            is_active = all(condition.holds for condition in conditions)
        elif kind != "mark":
            statement.append(piece[0] if kind == "quoted" and is_active else " ")
        else:
            declaration = "".join(statement)
            statement.clear()
            if is_active:
                _add(declaration, scopes[-1], found, opens=piece[0] == "{")
            if piece[0] == "{":
                scopes.append(_inner(declaration, scopes[-1]))
            elif piece[0] == "}" and len(scopes) > 1:
                scopes.pop()
            if len(scopes) == 1 and is_active:
                end = start
    is_complete = end and not conditions and not "".join([*statement, text[start:]]).strip()
    if not is_complete or _line_length(text, end) > _LONGEST_LINE:
        return None
    return found._replace(end=end)


def _line_length(text: str, position: int) -> int:
    following = text.find("\n", position)
    return (len(text) if following < 0 else following) - text.rfind("\n", 0, position) - 1


def _follow_condition(
    directive: str, scopes: list[_Scope], conditions: list[_Condition], folders: Sequence[str]
) -> None:
    match = _CONDITION.match(directive)
    if match is None:
        return
    if match[1].startswith("if"):
        conditions.append(_Condition(scopes.copy(), _holds(directive, folders)))
    elif conditions and match[1] == "endif":
        conditions.pop()
    elif conditions:
        scopes[:] = conditions[-1].scopes
        conditions[-1] = conditions[-1]._replace(holds=False)


def _holds(condition: str, folders: Sequence[str]) -> bool:
    asked = _ASKS.fullmatch(condition)
    if asked:
        return any(os.path.isfile(os.path.join(folder, asked[1])) for folder in folders)
    return _HOLDS.fullmatch(condition) is not None


def _inner(declaration: str, outer: _Scope) -> _Scope:
    """Return the scope that the brace after a declaration opens."""
    if outer.prefix is None:
        return _HIDDEN
    if _LINKAGE.fullmatch(declaration):
        return _Scope(outer.prefix, True)
    namespace = _NAMESPACE.fullmatch(declaration)
    if namespace is None or len(outer.prefix) > _LONGEST:
        return _HIDDEN
    return _Scope(outer.prefix + "".join(namespace[1].split()) + "::", outer.is_c)


def _add(declaration: str, scope: _Scope, found: Declarations, *, opens: bool) -> None:
    """Add the names in a declaration, if it declares a kernel or variables."""
    if scope.prefix is None or len(declaration) > _LONGEST:
        return
    code, count = _EXTERN_C.subn(" ", _ATTRIBUTE.sub(" ", declaration))
    is_c = scope.is_c or count > 0
    constant = _CONSTANT.match(code)
    if constant is not None and not is_c:
        _add_constants(code[constant.end() :], " ".join(constant[1].split()), scope.prefix, found)
    if _LEFT_OUT.search(code.partition("(")[0]):
        return
    if "__global__" in code:
        kernel = _KERNEL.search(code)
        # An extern "C" kernel's symbol does not contain its namespace. One without a body may be defined elsewhere.
        if kernel is not None and opens and is_c and not scope.prefix:
            found.kernels.append(kernel[1])
    elif _SPACE.search(code) and not is_c and "(" not in code.partition("=")[0]:
        _add_variables(code, scope.prefix, found)


def _add_variables(code: str, prefix: str, found: Declarations) -> None:
    # With brackets, a comma may also separate the arguments of a template or of a call.
    declarators = [code] if _BRACKET.search(code) else code.split(",")
    matches = [match for match in map(_DECLARATOR.search, declarators) if match]
    if len(matches) < len(declarators):
        return
    names = found.managed if "__managed__" in code else found.variables
    names += [prefix + match[1] for match in matches]
    found.types.append(_SPACE.sub(" ", code[: matches[0].start()]).rstrip("* \t\n\r").strip())


def _add_constants(code: str, type: str, prefix: str, found: Declarations) -> None:
    names = [_CONSTANT_NAME.fullmatch(declarator) for declarator in code.split(",")]
    if type in _CONSTANT_TYPES and all(names):
        found.constants.update((prefix + match[1], _CONSTANT_TYPES[type]) for match in names if match)
