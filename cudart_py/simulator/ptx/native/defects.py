"""Recognise machine code that a defect of LLVM's may have made wrong."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

__all__ = ["may_be_wrong"]

# The instruction is `vpternlogd` or `vpternlogq` of AVX-512 with one operand in memory, merging its results by a mask.
# LLVM up to 22 selects it for `mask ? (x & c) | (y & ~c) : x`, with constant bits c. Where it has to reorder the
# operands, it permutes the immediate operand, the table of results, in the opposite direction
# (https://github.com/llvm/llvm-project/issues/157929, fixed in LLVM 23). A wrong instruction looks like a right one.
#
# Its bytes: 62, the opcode's map (3 of 8), the prefix (1 of 4), a mask other than 0 that merges, 25, and an operand
# that is not a register.
_BYTES = (
    [0x62],
    [byte for byte in range(0x100) if byte & 7 == 3],
    [byte for byte in range(0x100) if byte & 3 == 1],
    [byte for byte in range(0x80) if byte & 7],
    [0x25],
    range(0xC0),
)
_MERGING_TERNARY = re.compile(b"".join(b"[" + re.escape(bytes(choice)) + b"]" for choice in _BYTES))


def may_be_wrong(code: bytes) -> bool:
    """Return whether an object file for x86-64 has an instruction that LLVM may have given a wrong table of results.

    None of these instructions is missed. Bytes of two other instructions may look like one; data are not searched,
    because among random bytes that would happen once in some megabytes.
    """
    sections = llvm.ObjectFileRef.from_data(code).sections()
    return any(_MERGING_TERNARY.search(section.data()) for section in sections if section.is_text())
