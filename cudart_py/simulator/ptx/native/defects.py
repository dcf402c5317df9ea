"""Keep defects of LLVM's out of machine code: recognise code that one made wrong, and write around another."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

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


# LLVM up to 22 takes the upper bits of a product of 16-bit integers for those of their 32-bit product: it makes
# `pmulhw` and a further shift of the truncation to i16 of a shifted product of i64 or i128. That is wrong for a
# negative product, and for shifts by 32 and more (https://github.com/llvm/llvm-project/issues/218844). Only a shift by
# a constant is recognised, so the count is loaded from memory that might change.
_NAME = r'%(?:"[^"]+"|[-\w.$]+)'
_WIDE = r"i(?:64|128)"
_PRODUCT = re.compile(
    rf"^ *({_NAME}) = mul (?:nuw |nsw )*<\d+ x {_WIDE}> {_NAME}, (?:{_NAME}|splat \({_WIDE} (-?\d+)\))", re.MULTILINE
)
_SHIFT = re.compile(
    rf"^ *{_NAME} = [al]shr (?:exact )?(<\d+ x {_WIDE}>) ({_NAME}), (splat \({_WIDE} (\d+)\))", re.MULTILINE
)


def with_hidden_shifts(text: str) -> str:
    """Return LLVM's IR with the counts of those shifts hidden that LLVM may get wrong.

    They shift a product by more than 16 bits. Whether LLVM gets one wrong depends on the ranges of the factors and on
    whether the result is truncated, which it may find out in its last passes. A product by a constant of more than 16
    bits, as in a division by a constant, is safe and stays as fast as it is.
    """
    products = {name for name, factor in _PRODUCT.findall(text) if abs(int(factor or 0)) < 1 << 16}
    counts = {}

    def hidden(shift: re.Match[str]) -> str:
        kind, shifted, constant, bits = shift.groups()
        if shifted not in products or int(bits) <= 16:
            return shift[0]
        place, count = f'@"shift {kind} {bits}"', f"%shift.{shift.start()}"
        counts[place] = f"internal global {kind} {constant}"
        return f"{count} = load {kind}, ptr {place}\n{shift[0].removesuffix(constant)}{count}"

    text = _SHIFT.sub(hidden, text)
    return text + "".join(f"\n{place} = {value}\n" for place, value in counts.items())
