"""Fill memory with 8-, 16- and 32-bit values. An 8-bit fill of 32-bit integers repeats the byte.

On the simulator, which checks results but does not measure time:

    $ library-tour run memset
    memset: Filling memory with 8-, 16- and 32-bit values
    size 1,048,579: 32-bit integers to fill
                          each integer  check
    ─────────────────────────────────────────
    8 bits                  16,843,009  right
    16 bits                     65,537  right
    32 bits                          1  right
    32 bits, in a stream             1  right
    8 bits, value 258                   right
    8 bits, value 258: refused; C would write the byte 2. memset: argument 'value'
    must be a value that fits uint8, not the int 258
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import refusal
from ..limits import write_limit
from ..stop import Result, Row, Size
from ..variants import Variant, measure

TITLE = "Filling memory with 8-, 16- and 32-bit values"
SIZE = Size("32-bit integers to fill", full=2**27 + 3, small=2**20 + 3)
VALUE = 1
WIDTHS = (np.uint8, np.uint16, np.uint32)


def reference(width: type[np.unsignedinteger], size: int) -> NDArray[np.int32]:
    """Return 32-bit integers that consist of copies of the value, each of the given width."""
    return np.full(size * 4 // np.dtype(width).itemsize, VALUE, width).view(np.int32)


def run(device: cuda.Device, size: int) -> Result:
    """Fill the same integers with a value of each width, and once in a stream; then try a value that does not fit."""
    integers = cuda.empty(size, np.int32)
    stream = cuda.Stream()

    def fill(width: type[np.unsignedinteger]) -> None:
        cuda.memset(integers.view(width), VALUE)

    def fill_in_a_stream() -> None:
        cuda.memset(integers, VALUE, stream=stream)
        stream.synchronize()

    def variant(name: str, launch: Callable[[], object], width: type[np.unsignedinteger]) -> Variant:
        expected = reference(width, size)
        return Variant(
            name=name,
            launch=launch,
            output=integers,
            expected=expected,
            amount=integers.nbytes,
            columns={"each integer": int(expected[0])},
            work={"elements filled": integers.nbytes // width().itemsize, "bytes written": integers.nbytes},
        )

    variants = [variant(f"{8 * width().itemsize} bits", partial(fill, width), width) for width in WIDTHS]
    variants.append(variant("32 bits, in a stream", fill_in_a_stream, np.uint32))
    limit = write_limit(device)
    rows = measure(variants, limit)

    too_large = refusal("258 does not fit a byte", ValueError, lambda: cuda.memset(integers.view(np.uint8), 258))
    note = f"refused; C would write the byte {258 % 256}. {too_large.detail}"
    return Result([*rows, Row("8 bits, value 258", check=too_large, note=note)], limit)
