"""The container format of fatbins, which hold machine code and PTX for several architectures."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from .compression import FatbinError, decompress_lz4, decompress_zstd

MAGIC = b"\x50\xed\x55\xba"
# The magic number, the version, the size of this header, and the size of the entries that follow.
_HEADER = struct.Struct("<4sHHQ")
# Of an entry: its kind, two unused bytes, the sizes of its header and of its data, the size of the compressed data,
# eight unused bytes, the architecture, eight unused bytes, flags, eight unused bytes, and the size after decompression.
_ENTRY = struct.Struct("<H2xIQI8xI8xQ8xQ")
_LZ4, _ZSTD = 0x2000, 0x8000
_SPECIFIC, _FAMILY = 0x10_0000, 0x20_0000


class Kind(Enum):
    """The kinds of code in a fatbin."""

    PTX = 1
    MACHINE_CODE = 2
    LINK_TIME_CODE = 8


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: its kind (None if it is not known), its architecture, such as "sm_90a", and its data, as stored."""

    kind: Kind | None
    arch: str
    flags: int
    stored: bytes
    size: int

    def code(self) -> bytes:
        """Return the decompressed code, PTX without the zeros at its end; link-time code has a form of its own.

        Raises FatbinError if the entry is damaged, and DecompressorMissingError if Python cannot decompress it.
        """
        code = self.stored
        if self.flags & _ZSTD:
            code = decompress_zstd(code, self.size)
        elif self.flags & _LZ4:
            code = decompress_lz4(code, self.size)
        return code.rstrip(b"\0") if self.kind is Kind.PTX else code

    @property
    def number(self) -> int:
        """Return the number of the architecture, such as 90."""
        return int(self.arch[3:].rstrip("af"))


def size_of(header: bytes) -> int:
    """Return the size in bytes of a fatbin that begins with these 16 bytes."""
    try:
        _, _, start, size = _HEADER.unpack(header)
    except struct.error:
        raise FatbinError("the fatbin is incomplete") from None
    return int(start + size)


def read_entries(fatbin: bytes) -> list[Entry]:
    """Return the entries of a fatbin in order, without decompressing them; raise FatbinError if it is damaged."""
    entries = []
    try:
        _, _, position, size = _HEADER.unpack_from(fatbin)
        end = position + size
        while position < end:
            kind, start, length, compressed, number, flags, expanded = _ENTRY.unpack_from(fatbin, position)
            first = position + start
            position = first + length
            if start < _ENTRY.size or position > min(end, len(fatbin)) or compressed > length:
                raise FatbinError("the fatbin is incomplete")
            suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
            stored = fatbin[first : first + (compressed or length)]
            known = Kind(kind) if kind in (item.value for item in Kind) else None
            entries.append(Entry(known, f"sm_{number}{suffix}", flags, stored, expanded))
    except struct.error:
        raise FatbinError("the fatbin is incomplete") from None
    return entries
