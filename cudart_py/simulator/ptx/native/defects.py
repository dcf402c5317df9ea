"""Work around two defects of LLVM: detect code that one may have broken, and avoid what triggers the other."""

from __future__ import annotations

import re

import llvmlite.binding as llvm

# The instruction is AVX-512's `vpternlogd` or `vpternlogq` with one operand in memory and merge masking. LLVM up to 22
# selects it for `mask ? (x & c) | (y & ~c) : x`, with constant bits c. When it has to reorder the operands, it permutes
# the immediate operand (the truth table) in the wrong direction (https://github.com/llvm/llvm-project/issues/157929,
# fixed in LLVM 23). A wrong instruction can't be distinguished from a correct one, so all of them are suspect.
#
# Its bytes, in hexadecimal: 62; a byte whose low three bits select opcode map 3; a byte whose low two bits select
# prefix 1; a byte with a mask register other than k0, and merging; the opcode 25; and an operand that isn't a register.
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
    """Return whether an x86-64 object file contains an instruction to which LLVM may have given a wrong truth table.

    No such instruction is missed. False positives are possible if bytes of two adjacent instructions look like one.
    Data sections are not searched, because random bytes would match once in a few megabytes.
    """
    sections = llvm.ObjectFileRef.from_data(code).sections()
    return any(_MERGING_TERNARY.search(section.data()) for section in sections if section.is_text())


# LLVM up to 22 turns a product of i64 or i128 whose factors fit in 16 bits, shifted right and truncated to i16, into
# `pmulhw` and a further shift. `pmulhw` returns only the upper half of the 32-bit product, so the result is wrong for a
# negative product, and for shifts by 32 or more (https://github.com/llvm/llvm-project/issues/218844). LLVM recognises
# only a shift by a constant, so `with_hidden_shifts` loads the count from memory that might change.
_NAME = r'%(?:"[^"]+"|[-\w.$]+)'
_WIDE = r"i(?:64|128)"
_PRODUCT = re.compile(
    rf"^ *({_NAME}) = mul (?:nuw |nsw )*<\d+ x {_WIDE}> {_NAME}, (?:{_NAME}|splat \({_WIDE} (-?\d+)\))", re.MULTILINE
)
_SHIFT = re.compile(
    rf"^ *{_NAME} = [al]shr (?:exact )?(<\d+ x {_WIDE}>) ({_NAME}), (splat \({_WIDE} (\d+)\))", re.MULTILINE
)


def with_hidden_shifts(text: str) -> str:
    """Return LLVM IR in which the counts of shifts that LLVM may miscompile are hidden from LLVM.

    These are the shifts of a product by more than 16 bits. Whether LLVM miscompiles one depends on the ranges of the
    factors and on whether the result is truncated, which LLVM may find out only in its last passes. A product with a
    constant of more than 16 bits, as in a division by a constant, is safe and left alone, so it stays fast.
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
