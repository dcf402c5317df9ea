"""The first values of an array, for display in a terminal or a notebook."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray


class ArrayPreview:
    """The first values of an array, as a NumPy array of at most two axes; returned by `DeviceArray.preview`."""

    __slots__ = {
        "shape": "The shape of the whole array.",
        "values": "The first values.",
    }

    def __init__(self, shape: tuple[int, ...], values: NDArray[Any]) -> None:
        self.shape = shape
        self.values = values

    def __repr__(self) -> str:
        return f"<first values of {self.shape} {self.values.dtype}>\n{self.values}"

    def _repr_html_(self) -> str:
        if not self.values.size:
            return f"<p>no values in {escape(str(self.shape))}</p>"
        below, beside = self._more()
        rows = [[escape(str(value)) for value in row] for row in np.atleast_2d(self.values)]
        if beside:
            rows = [[*row, "…"] for row in rows]
        if below:
            rows.append(["…"] * len(rows[0]))
        lines = "".join(f"<tr>{''.join(f'<td>{text}</td>' for text in row)}</tr>" for row in rows)
        return f"<table><tbody>{lines}</tbody></table>"

    def _more(self) -> tuple[bool, bool]:
        """Return whether the whole array has more rows than those shown, and whether it has more columns."""
        whole = (1, 1, *self.shape)[-2:]
        shown = np.atleast_2d(self.values).shape
        return whole[0] > shown[0], whole[1] > shown[1]
