"""Decompress the entries of fatbins: LZ4 blocks and Zstandard frames."""

from __future__ import annotations

import sys
from typing import Any


class FatbinError(ValueError):
    """A fatbin is damaged."""


class DecompressorMissingError(Exception):
    """The module that decompresses an entry is not installed; the text says how to install it."""


def decompress_lz4(block: bytes, size: int) -> bytes:
    """Return the `size` bytes that an LZ4 block contains; raise FatbinError if it is damaged.

    A block is a list of sequences. Each consists of a token, literals, and a match: a copy of earlier output. The token
    has the number of literals in its upper half, and the length of the match minus 4 in its lower half. The last
    sequence has no match.
    """
    output = bytearray()
    try:
        position = 0
        while True:
            token = block[position]
            count, position = _length(block, position + 1, token >> 4)
            output += block[position : position + count]
            position += count
            if position >= len(block):
                break
            distance = int.from_bytes(block[position : position + 2], "little")
            count, position = _length(block, position + 2, token & 15)
            count += 4
            if not 0 < distance <= len(output):
                raise FatbinError("a compressed entry of the fatbin is damaged")
            # A match may overlap its own copy, which then repeats.
            match = output[len(output) - distance :][:count]
            output += (match * -(-count // len(match)))[:count]
    except IndexError:
        raise FatbinError("a compressed entry of the fatbin is damaged") from None
    return _checked(bytes(output), size)


def _length(block: bytes, position: int, length: int) -> tuple[int, int]:
    """Return a length and the position after it; from 15 on, further bytes are added, up to one that is not 255."""
    if length == 15:
        more = 255
        while more == 255:
            more = block[position]
            position += 1
            length += more
    return length, position


def decompress_zstd(frame: bytes, size: int) -> bytes:
    """Return the `size` bytes that a Zstandard frame contains.

    Raise FatbinError if it is damaged, and DecompressorMissingError if Python has no module for it.
    """
    zstd = _zstd()
    try:
        return _checked(zstd.ZstdDecompressor().decompress(frame, max_length=size), size)
    except zstd.ZstdError as error:
        raise FatbinError(f"a compressed entry of the fatbin is damaged: {error}") from None


def _checked(output: bytes, size: int) -> bytes:
    if len(output) != size:
        raise FatbinError(f"a compressed entry of the fatbin contains {len(output)} bytes instead of {size}")
    return output


def _zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd  # imported late because some builds of Python lack it
        else:
            from backports import zstd  # imported late because it is optional
    except ImportError:
        raise DecompressorMissingError(
            "the fatbin is compressed with Zstandard, as nvcc does by default, and this Python cannot decompress it: "
            "pip install 'cudart-py[run]', or compile with --compress-mode=speed"
        ) from None
    return zstd
