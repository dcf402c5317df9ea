"""Tables of the state of a stopped launch: warps, lanes, variables, shared memory and barriers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..expression_syntax import parse
from .texts import (
    UNKNOWN,
    element_text,
    index_text,
    mask_text,
    place_text,
    site_text,
    table,
    thread_text,
    value_text,
    waiting_text,
)
from .type_texts import declaration, definition

if TYPE_CHECKING:
    from ...simulator.debugging.moments import LaneGroup
    from ...simulator.debugging.scope import Scope
    from ...simulator.debugging.values import Value
    from ..session import Session

# The widest row of a grid, and the number of its rows that are shown.
_COLUMNS = 16
_WORD = 4
_ROWS = 64
AROUND = 5
# The number of lines that a listing shows.
LISTED = 2 * AROUND + 1


def location(session: Session) -> str:
    """Return the thread in focus, the mask of its warp's active lanes, its place, and the text of the line."""
    moment, group = session.moment, session.group
    active = [moment.warp_of(lane)[1] for lane in moment.warp_lanes(session.lane) if group.has(lane)]
    head = f"{thread_text(moment, session.lane)}, active lanes {mask_text(active)}"
    wait = waiting_text(group)
    place = f"{session.frame.function}, {place_text(session.recorder, group, session.level)}" + (
        f", {wait}" if wait else ""
    )
    return f"{head}\n{place}\n{source_line(session)}".rstrip()


def source_line(session: Session) -> str:
    """Return the number and the text of the line of the thread in focus, or "" if it is not available."""
    place, site = session.frame.place, session.group.levels[session.frame.level].site
    if place is None:
        return ""
    text = session.recorder.lines.text(place.file)
    if not 0 < place.line <= len(text):
        return f"    {site.text}" if site is not None else ""
    return f"{place.line:>6}  {text[place.line - 1].rstrip()}"


def present_line(session: Session) -> int:
    """Return the line of the thread in focus."""
    return 1 if session.frame.place is None else session.frame.place.line


def source(session: Session, around: int | None = None, lines: int = AROUND, file: int | None = None) -> str:
    """Return the lines around a line of a file, by default around that of the thread in focus in its file.

    `lines` is the number of lines before and after it. Raises ValueError if the file ends before them.
    """
    place = session.frame.place
    if place is None:
        return ""
    file = place.file if file is None else file
    texts = session.recorder.lines.text(file)
    middle = place.line if around is None else around
    if texts and middle - lines > len(texts):
        raise ValueError(f"{session.recorder.lines.name(file)} has {len(texts)} lines")
    numbers = range(max(1, middle - lines), min(len(texts), middle + lines) + 1)
    stops = {
        one.found[1]
        for one in session.breakpoints
        if one.found is not None and one.found[0] == session.recorder.lines.name(file)
    }
    marked = []
    for number in numbers:
        marks = ("*" if number in stops else " ") + (">" if (file, number) == place else " ")
        marked.append(f"{marks}{number:>5}  {texts[number - 1]}".rstrip())
    return "\n".join(marked)


def calls(session: Session) -> str:
    """Return the call stack of the thread in focus."""
    rows = []
    for number, one in enumerate(session.recorder.frames(session.group)):
        mark = ">" if number == session.level else " "
        name = f"{one.function} (inlined)" if one.inlined is not None else one.function
        rows.append((f"{mark}#{number}", name, place_text(session.recorder, session.group, number)))
    return table(rows, left=3)


def calls_with_variables(session: Session) -> str:
    """Return the call stack of the thread in focus, with the variables of each function."""
    shown, before = [], session.level
    try:
        for number, row in enumerate(calls(session).split("\n")):
            session.level = number
            shown += [row, *(f"      {line}" for line in variables(session).split("\n"))]
    finally:
        session.level = before
    return "\n".join(shown)


def instructions(session: Session, count: int, text: str) -> str:
    """Return PTX instructions from that of the thread in focus on, or from the start of a function."""
    lines = session.recorder.lines
    level = session.group.levels[session.frame.level]
    found = [level.site] if text in ("", "$pc") else session.recorder.function(text)
    if not found or found[0] is None:
        raise ValueError("instructions are shown from $pc on, or from a function on")
    body, first = lines.body(found[0]), lines.index(found[0])
    return "\n".join(
        f"{'=>' if site is level.site else '  '} {site_text(session.recorder, site)}:\t{site.text}"
        for site in body.instructions[first : first + count]
    )


def warps(session: Session) -> str:
    """Return the places of the lanes of each warp of the block."""
    moment, recorder = session.moment, session.recorder
    lanes = moment.block_lanes(session.lane)
    rows: list[tuple[str, ...]] = []
    first = lanes.start
    while first < lanes.stop:
        warp = moment.warp_lanes(first)
        left = set(warp)
        for group in moment.groups:
            inside = [lane for lane in warp if group.has(lane)]
            if inside:
                left -= set(inside)
                state = "runs" if group is moment.running else waiting_text(group) or "ready"
                mark = ">" if session.lane in inside else " "
                rows.append(
                    (mark, str(moment.warp_of(first)[0]), _mask(session, inside), state, place_text(recorder, group))
                )
        if left:
            rows.append((" ", str(moment.warp_of(first)[0]), _mask(session, sorted(left)), "exited", ""))
        first = warp.stop
    return table([(" ", "warp", "lanes", "state", "at"), *rows], left=5)


def _mask(session: Session, lanes: Sequence[int]) -> str:
    return mask_text(session.moment.warp_of(lane)[1] for lane in lanes)


def lanes(session: Session, expressions: Sequence[str], letter: str = "") -> str:
    """Return the values of expressions for each lane of the warp in focus, as a table; see `formats` for `letter`."""
    group, moment = session.group, session.moment
    chosen = expressions or [one.name for one in session.scope.variables]
    columns: list[Value | None] = []
    for text in chosen:
        try:
            columns.append(session.recorder.evaluate(text, session.scope))
        except ValueError:
            if expressions:
                raise
            columns.append(None)
    rows = [("", "lane", "thread", *chosen)]
    for lane in moment.warp_lanes(session.lane):
        position = _position(group, lane)
        if position is None:
            continue
        cells = [UNKNOWN if value is None else value_text(session, value, position, letter) for value in columns]
        mark = ">" if lane == session.lane else ""
        rows.append((mark, str(moment.warp_of(lane)[1]), index_text(moment.thread_index(lane)), *cells))
    return table(rows)


def variables(session: Session, *, only_parameters: bool = False) -> str:
    """Return the variables of the thread in focus, or the parameters of its function, with their types and values."""
    if not session.recorder.information:
        return "no variables: compile the kernel with -G, or show its registers (info registers)"
    if only_parameters:
        rows = parameters(session, session.level)
        return table([(*row[:2], "=", row[2]) for row in rows], left=4) if rows else "no arguments"
    rows = _described(session, session.scope, session.scope.variables)
    return table([(*row[:2], "=", row[2]) for row in rows], left=4) if rows else "no variables"


def parameters(session: Session, frame: int) -> list[tuple[str, str, str]]:
    """Return the names, types and values of the parameters of the function in a frame."""
    scope = session.recorder.scope(session.moment, session.group, frame)
    return _described(session, scope, [one for one in scope.variables if one.is_parameter])


def _described(session: Session, scope: Scope, shown: Sequence[Any]) -> list[tuple[str, str, str]]:
    position = _position(session.group, session.lane)
    assert position is not None
    values = scope.values([one.name for one in shown])
    return [
        (name, one.type.name, UNKNOWN if value is None else value_text(session, value, position))
        for one, (name, value) in zip(shown, values, strict=True)
    ]


def registers(session: Session, names: Sequence[str] = ()) -> str:
    """Return the registers of the thread in focus that it has written, or those with these names."""
    scope, position = session.scope, _position(session.group, session.lane)
    assert position is not None
    chosen = [name if name.startswith("%") else f"%{name}" for name in names]
    rows = []
    for name in chosen or scope.registers:
        value = scope.value(name)
        if not chosen and not value.known[position]:
            continue
        text = value_text(session, value, position)
        raw = value.data[position]
        rows.append((name, value.type.name, text, f"{int(raw):#x}" if raw.dtype.kind in "iu" and raw >= 0 else ""))
    return table(rows, left=2)


def printed(session: Session, expression: str, letter: str = "") -> str:
    """Return the value of an expression for the thread in focus, in the format of a letter of `formats`."""
    value = session.recorder.evaluate(expression, session.scope)
    position = _position(session.group, session.lane)
    assert position is not None
    return value_text(session, value, position, letter)


def keep(session: Session, expression: str) -> None:
    """Keep the value of an expression for the thread in focus, so that later expressions can name it."""
    value = session.recorder.evaluate(expression, session.scope)
    position = _position(session.group, session.lane)
    assert position is not None
    if value.known[position]:
        session.shown.append(session.recorder.shown_value(value, position))


def address(session: Session, expression: str) -> int:
    """Return an expression of the thread in focus as an address; raises ValueError if it has no value."""
    value = session.recorder.pointer(expression, session.scope)
    position = _position(session.group, session.lane)
    assert position is not None
    if not value.known[position]:
        raise ValueError(f"{expression!r} has no value here")
    return int(value.data[position]) & (1 << 64) - 1


def memory(session: Session, start: int, size: int, lane: int | None = None) -> tuple[Any, Any]:
    """Return bytes of memory as a thread sees them, by default that in focus, and which of them have a value."""
    view = session.recorder.memory_of(session.moment, session.lane if lane is None else lane, size)
    data, known = view.bytes(np.uint64(start) + np.arange(size, dtype=np.uint64), 1)
    return data.reshape(-1), known


def type_text(session: Session, text: str, *, with_members: bool) -> str:
    """Return the type of an expression, or the type that a text names, as C++ declares it."""
    type_ = session.recorder.type_of(text, session.scope)
    return definition(type_) if with_members else declaration(type_)


def check(expression: str) -> None:
    """Raise ValueError for an expression that is not understood."""
    parse(expression)


def shared(session: Session, names: Sequence[str] = ()) -> str:
    """Return the block's variables in shared memory as grids of their elements, and of the threads that wrote them."""
    known = session.recorder.shared_variables
    for name in names:
        if name not in known:
            raise ValueError(
                f"the kernel has no shared variable {name!r}" + (f": it has {', '.join(known)}" if known else "")
            )
    texts = [_shared(session, known[name]) for name in names or known]
    return "\n".join(texts) if texts else "the kernel has no shared variables"


def _shared(session: Session, variable: Any) -> str:
    element, shape = element_and_shape(variable.type)
    count = prod(shape)
    values, threads, places = shared_elements(session, variable, element, count, session.lane)
    columns = shape[-1] if len(shape) > 1 else min(count, _COLUMNS)
    title = f"{variable.type.name} {variable.name}, {variable.type.size} bytes at offset {variable.offset}"
    writers = [_writer(session, int(thread), int(place)) for thread, place in zip(threads, places, strict=True)]
    return "\n".join(
        (title, _grid(values, columns), f"written by (thread:line, {UNKNOWN} for nobody)", _grid(writers, columns))
    )


def element_and_shape(type_: Any) -> tuple[Any, list[int]]:
    """Return the type of the elements of an array, and its shape; the shape of anything else is empty.

    A variable of an unknown type has words as elements, or bytes if it does not consist of words.
    """
    shape = []
    if type(type_).__name__ == "Unknown":
        each = _WORD if type_.size % _WORD == 0 else 1
        return replace(type_, size=each), [type_.size // each]
    while type(type_).__name__ == "Array":
        shape.append(type_.count)
        type_ = type_.element
    return type_, shape


def shared_elements(session: Session, variable: Any, element: Any, count: int, lane: int) -> tuple[list[str], Any, Any]:
    """Return the texts of a shared variable's elements, the threads that wrote them, and the indices of the places.

    The variable is that of a lane's block.
    """
    moment, recorder = session.moment, session.recorder
    chunk = moment.chunk
    start = lane // chunk.threads * chunk.shared_stride + (chunk.state.shared_end - chunk.state.shared_size)
    where = start + variable.offset + np.arange(count * element.size)
    raw = recorder.read(chunk.shared.bytes, where, moment)
    firsts = where[:: element.size]
    writers = recorder.writers(chunk)
    threads = recorder.read(writers.lanes, firsts, moment) % chunk.threads
    data, written = raw.tobytes(), (recorder.read(writers.places, where, moment) >= 0).tolist()
    spans = [slice(first, first + element.size) for first in range(0, len(data), element.size)]
    texts = [element_text(element, data[span], written[span]) for span in spans]
    return texts, threads, recorder.read(writers.places, firsts, moment)


def _writer(session: Session, thread: int, place: int) -> str:
    return UNKNOWN if place < 0 else f"{thread}:{session.recorder.writing_line(place)}"


def _grid(cells: Sequence[str], columns: int) -> str:
    rows = [["", *(f"[{column}]" for column in range(columns))]]
    for number, first in enumerate(range(0, len(cells), columns)):
        if number == _ROWS:
            return f"{table(rows)}\n  ... {-(-len(cells) // columns) - _ROWS} more rows"
        rows.append([f"[{first}]" if columns == _COLUMNS else f"[{number}]", *cells[first : first + columns]])
    return table(rows)


def _position(group: LaneGroup, lane: int) -> int | None:
    """Return a lane's position in a group, or None if it is not in it."""
    return int(np.searchsorted(group.lanes, lane)) if group.has(lane) else None
