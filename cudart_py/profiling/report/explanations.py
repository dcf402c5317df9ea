"""What the figures of a profile are and what they leave out, for all forms that it is written in."""

from __future__ import annotations

FIGURES = {
    "sectors a load, a store, an atomic (sect.)": "pieces of 32 bytes of global memory that a warp's instruction "
    "touches; 4 are enough for 32 lanes of 4 bytes, and 16 for 32 lanes of 16 bytes",
    "used by loads, by stores (used%)": "the bytes that lanes use, of the bytes of the sectors that are moved for "
    "them; bytes that several lanes of a warp use count once",
    "bank conflicts (confl.)": "turns that shared memory took beyond those that it must, for loads, stores and "
    "atomics; lanes of an atomic that add to one word take turns too",
    "active lanes": "of a warp's 32, on average over instructions",
    "share": "a line's part of the cycles for which all lines keep a multiprocessor's units busy, at 4 instructions of "
    "warps, 1 pass of shared memory or 2 sectors a cycle; it says where to look first, and is no time",
}
LIMITS = (
    "No cache is modelled: sectors that the first-level cache (L1) would serve are counted all the same, so that a "
    "value that is loaded again counts here as much as at the first time.",
    "Bulk copies (cp.async.bulk) count as instructions alone, and touch no sectors here.",
    "Instructions are those of PTX, not of machine code: counts of instructions and active lanes are near a GPU's, and "
    "sectors and bank conflicts are a GPU's own.",
    "Lines have the sum of all launches.",
)
