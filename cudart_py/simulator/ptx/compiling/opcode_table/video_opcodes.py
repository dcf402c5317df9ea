"""The rows of the opcode table for video instructions, which calculate with selected bytes and halves of words.

`opcodes` explains the patterns.
"""

from __future__ import annotations

from ...instructions import video
from ..emitters.lowered import Lowers
from ..forms import Row

# The types of the second source. Of the patterns of an opcode, the one with the most operands is the first, because an
# instruction's types are looked up there.
_BOTH = ("u32", "s32")

VIDEO_ROWS = (
    *(
        Row(
            name, Lowers(video.scalar, "selectors", "name", "word", "to"),
            *(f"INT32 INT32 {second} sat? | =T.1 U.1 {second}.1 T" for second in _BOTH),
            *(f"INT32 INT32 {second} sat? | =T U.1 {second}.1" for second in _BOTH),
            *(f"INT32 INT32 {second} sat? add/min/max | =T U.1 {second}.1 T" for second in _BOTH),
        )
        for name in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")
    ),
    *(
        Row(
            name, Lowers(video.shift, "selectors", "name", "to"),
            "INT32 INT32 u32 sat? clamp/wrap | =T.1 U.1 u32.1 T", "INT32 INT32 u32 sat? clamp/wrap | =T U.1 u32.1",
            "INT32 INT32 u32 sat? clamp/wrap add/min/max | =T U.1 u32.1 T",
        )
        for name in ("vshl", "vshr")
    ),
    Row(
        "vmad", Lowers(video.vmad, "selectors", "to"),
        *(f"INT32 INT32 {second} sat? shr7/shr15? | =T -U.1 -{second}.1 -T" for second in _BOTH),
        *(f"INT32 INT32 {second} po sat? shr7/shr15? | =T U.1 {second}.1 T" for second in _BOTH),
    ),
    Row(
        "vset", Lowers(video.scalar, "selectors", "name", "word", "to"),
        *(f"ORDER INT32 {second} | =u32.1 T.1 {second}.1 u32" for second in _BOTH),
        *(f"ORDER INT32 {second} | =u32 T.1 {second}.1" for second in _BOTH),
        *(f"ORDER INT32 {second} add/min/max | =u32 T.1 {second}.1 u32" for second in _BOTH),
    ),
    # --- on two halves or four bytes at a time
    *(
        row
        for count in (2, 4)
        for name in (f"vadd{count}", f"vsub{count}", f"vabsdiff{count}", f"vmin{count}", f"vmax{count}")
        for row in (
            Row(
                name, Lowers(video.packed, "selectors", "name", "word"),
                *(f"INT32 INT32 {second} sat? | =T.{count} U.{count} {second}.{count} T" for second in _BOTH),
                flow="bytewise" if name == "vabsdiff4" else "all",
            ),
            Row(
                name, Lowers(video.accumulated, "selectors", "name", "word"),
                *(f"INT32 INT32 {second} add | =T.{count} U.{count} {second}.{count} T" for second in _BOTH),
            ),
        )
    ),
    *(
        row
        for count in (2, 4)
        for row in (
            Row(
                f"vset{count}", Lowers(video.packed, "selectors", "name", "word"),
                *(f"ORDER INT32 {second} | =u32.{count} T.{count} {second}.{count} u32" for second in _BOTH),
            ),
            Row(
                f"vset{count}", Lowers(video.accumulated, "selectors", "name", "word"),
                *(f"ORDER INT32 {second} add | =u32.{count} T.{count} {second}.{count} u32" for second in _BOTH),
            ),
        )
    ),
)  # fmt: skip  # rows of a table
