"""The memory that the command x shows: units of it in rows, as in gdb."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import tables
from .formats import SIZES, Format, formatted
from .texts import UNKNOWN

if TYPE_CHECKING:
    from ..session import Session

# The number of units in a row, by their size in bytes.
_COLUMNS = {1: 8, 2: 8, 4: 4, 8: 2}
_MOST_UNITS = 1 << 16
# The sizes that the letters use if none is named.
_OWN_SIZES = {"c": "b", "a": "g"}


class MemoryDump:
    """The command x, which continues after the memory that it has shown last, in the same format."""

    def __init__(self) -> None:
        self._address = 0
        self._last = Format(1, "x", "w")

    def show(self, session: Session, expression: str, chosen: Format) -> str:
        """Return units of memory at the address that an expression is, or at the following address without one.

        Raises ValueError if the expression has no value, or if a letter does not suit a size.
        """
        letter = chosen.letter or self._last.letter
        size = chosen.size or (_OWN_SIZES.get(letter) if chosen.letter else None) or self._last.size
        if letter == "f" and SIZES[size] < SIZES["w"]:
            if chosen.size:
                raise ValueError("floating-point numbers have the size w or g")
            size = "w"
        count = (1 if expression else self._last.count) if chosen.count is None else chosen.count
        assert count is not None
        if count > _MOST_UNITS:
            raise ValueError(f"x shows at most {_MOST_UNITS:,} units of memory")
        start = tables.address(session, expression) if expression else self._address
        self._last = Format(count, letter, size)
        self._address = start + count * SIZES[size]
        return "\n".join(_rows(session, start, self._last))


def _rows(session: Session, start: int, chosen: Format) -> list[str]:
    each, count = SIZES[chosen.size], chosen.count or 0
    data, known = tables.memory(session, start, count * each)
    units = data.view(f"f{each}" if chosen.letter == "f" else f"{'u' if chosen.letter == 'u' else 'i'}{each}")
    written = known.reshape(-1, each).all(axis=1)
    texts = [_unit(unit, chosen.letter) if is_known else UNKNOWN for unit, is_known in zip(units, written, strict=True)]
    columns, rows = _COLUMNS[each], []
    for first in range(0, count, columns):
        address = start + first * each
        name = session.scope.name_at(address)
        rows.append("\t".join([f"{address:#x}{f' <{name}>' if name else ''}:", *texts[first : first + columns]]))
    return rows


def _unit(unit: np.generic, letter: str) -> str:
    """Return a unit; numbers in hexadecimal and binary have all their digits."""
    if letter == "t":
        return formatted(unit, "t").zfill(8 * unit.dtype.itemsize)
    return formatted(unit, "z" if letter == "x" else letter)
