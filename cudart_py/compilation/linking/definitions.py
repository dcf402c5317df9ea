"""The defined symbols and the architecture of machine code, PTX and link-time code."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from ..fatbins.compression import DecompressorMissingError, FatbinError
from ..fatbins.container import MAGIC as FATBIN
from ..fatbins.container import Kind, read_entries
from .ptx_linking import strong_definitions

LINK_TIME_CODE = b"\xedCN\x7f"
MACHINE_CODE = b"\x7fELF"
LIBRARY = b"!<arch>\n"
# The first bytes of images that are not text.
BINARY = (LINK_TIME_CODE, MACHINE_CODE, FATBIN, LIBRARY)

# ELF constants: the type of a symbol table (SHT_SYMTAB), the binding of symbols that may be defined only once
# (STB_GLOBAL), and the section indices SHN_UNDEF and SHN_COMMON.
_SYMBOLS, _GLOBAL = 2, 1
_UNDEFINED, _COMMON = 0, 0xFFF2
_TARGET = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)
# The assembler's options, which machine code keeps in a note.
_ASSEMBLED_FOR = re.compile(rb"-arch (sm_\d+[a-z]?)\b")
_NUMBER = re.compile(r"(?:sm|compute)_(\d+)([a-z]?)")


def is_ptx(code: bytes) -> bool:
    """Return whether an image is PTX."""
    # Machine code is excluded first, because with line information it contains its PTX.
    return not code.startswith(BINARY) and b".version" in code[:4096] and b".target" in code[:4096]


def definitions(code: bytes) -> set[str]:
    """Return the symbols that code defines and that no other part of a program may define.

    Empty for code from which they cannot be read: link-time code, fatbins for several architectures, libraries.
    """
    if code.startswith(MACHINE_CODE):
        return set(_elf_definitions(code))
    if code.startswith(FATBIN):
        return {symbol for part in _parts(code) for symbol in definitions(part)}
    if is_ptx(code):
        return strong_definitions(code.decode(errors="replace"))
    return set()


def architecture(code: bytes) -> str | None:
    """Return the architecture that code is for, such as "sm_90", or None if the code does not name it."""
    if code.startswith(MACHINE_CODE):
        noted = _ASSEMBLED_FOR.search(code)
        return noted[1].decode() if noted else None
    if code.startswith(LINK_TIME_CODE):
        (tenths,) = struct.unpack_from("<H", code.ljust(28, b"\0"), 26)
        return f"sm_{tenths // 10}" if tenths and tenths % 10 == 0 else None
    if is_ptx(code):
        target = _TARGET.search(code.decode(errors="replace"))
        return target[1] if target else None
    return None


def runs_on(own: str, target: str, *, is_machine_code: bool = True) -> bool:
    """Return whether code for the architecture `own` runs on `target`, or can be linked for it.

    Machine code and family-specific code ("sm_100f") run on the same major version from their minor version on.
    Architecture-specific code ("sm_90a") runs only on its own architecture, and other code on that or any later one. A
    device as a target has the suffix "a". Architectures with any other spelling count as suitable.
    """
    numbers = [_NUMBER.fullmatch(name) for name in (own, target)]
    if own == target or None in numbers:
        return True
    (number, suffix), (target_number, target_suffix) = (match.groups() for match in numbers if match)
    if suffix == "a" or (suffix and not target_suffix):
        return False
    needs_same_major = is_machine_code or suffix
    same_major = int(number) // 10 == int(target_number) // 10
    return int(number) <= int(target_number) and (same_major or not needs_same_major)


def _elf_definitions(code: bytes) -> Iterator[str]:
    """Yield the global symbols that an ELF file defines; of a damaged file, those found before the damage."""
    try:
        (start,) = struct.unpack_from("<Q", code, 0x28)
        size, count = struct.unpack_from("<HH", code, 0x3A)
        sections = [struct.unpack_from("<IIQQQQIIQQ", code, start + size * number) for number in range(count)]
        for section in sections:
            if section[1] != _SYMBOLS:
                continue
            names = sections[section[6]][4]
            for offset in range(section[4], section[4] + section[5], section[9]):
                name, info, _, index = struct.unpack_from("<IBBH", code, offset)
                if info >> 4 == _GLOBAL and index not in (_UNDEFINED, _COMMON):
                    begin = names + name
                    yield code[begin : code.index(b"\0", begin)].decode()
    except (struct.error, IndexError, ValueError):
        return  # The linker reports the damage.


def _parts(fatbin: bytes) -> list[bytes]:
    """Return the PTX and machine code in a fatbin, if all its code is for one architecture and can be decompressed."""
    try:
        entries = read_entries(fatbin)
        if len({entry.number for entry in entries}) != 1:
            return []
        return [entry.code() for entry in entries if entry.kind in (Kind.PTX, Kind.MACHINE_CODE)]
    except (FatbinError, DecompressorMissingError):
        return []  # The linker reports the damage, and decompresses the code itself.


def ptx_in_fatbin(fatbin: bytes, target: str) -> bytes:
    """Return the PTX in a fatbin for the highest architecture that can be linked for `target`; empty if there is none.

    Raises FatbinError and DecompressorMissingError.
    """
    entries = [entry for entry in read_entries(fatbin) if entry.kind is Kind.PTX]
    usable = [entry for entry in entries if runs_on(entry.arch, target, is_machine_code=False)]
    best = max(usable, key=lambda entry: (entry.number, entry.arch), default=None)
    return best.code() if best else b""
