"""Explanations of a profile's figures and of their limitations, for all formats of the report."""

from __future__ import annotations

FIGURES = {
    "sectors per load, store, atomic (sect.)": "32-byte pieces of global memory that an instruction of a warp "
    "touches. 32 lanes of 4 bytes need 4, and 32 lanes of 16 bytes need 16",
    "load efficiency, store efficiency (eff.%)": "the bytes that the lanes use, divided by the bytes of the sectors "
    "moved for them. Bytes that several lanes of a warp use count once",
    "bank conflicts (confl.)": "wavefronts of shared memory beyond the ideal number, for loads, stores and atomics. "
    "Lanes of an atomic that add to one word need a wavefront each",
    "active lanes": "active lanes per instruction of a warp, out of 32, on average over all instructions",
    "estimate, bound": "the time of a line's work on an H200, estimated from the counters alone, and the unit that "
    "takes longest. Estimates compare lines and variants, and are not measured times",
    "share": "a line's part of the sum of the estimates of all lines. It says where to look first",
}
LIMITS = (
    "No cache is modelled: sectors that the first-level cache (L1) would serve are counted too, so a value that is "
    "loaded twice counts twice.",
    "Bulk copies (cp.async.bulk) count only as instructions. Their sectors are not counted.",
    "Instructions are those of PTX, not of machine code: counts of instructions and active lanes are close to a GPU's. "
    "Sectors and bank conflicts equal a GPU's.",
    "The figures of a line are sums over all launches.",
)
