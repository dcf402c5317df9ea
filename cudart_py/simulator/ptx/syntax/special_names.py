"""The special registers of PTX and their types; others are rejected when a module is loaded."""

from __future__ import annotations

_AXES = [
    f"%{base}.{axis}"
    for base in ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    for axis in "xyzw"
]
# The masks of the lanes before and after each lane.
LANE_MASKS = ("eq", "le", "lt", "ge", "gt")
_WORDS = [
    "%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%cluster_ctarank", "%cluster_nctarank",
    *(f"%lanemask_{kind}" for kind in LANE_MASKS),
    "%dynamic_smem_size", "%total_smem_size", "%aggr_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0", "%reserved_smem_offset_1",
    *(f"%envreg{number}" for number in range(32)), *(f"%pm{number}" for number in range(8)),
]  # fmt: skip  # rows of a table
_LONG_WORDS = ["%gridid", "%current_graph_exec", *(f"%pm{number}_64" for number in range(8))]
_CLOCKS = {
    "%clock": "u4", "%clock_hi": "u4", "%clock64": "u8",
    "%globaltimer": "u8", "%globaltimer_lo": "u4", "%globaltimer_hi": "u4",
}  # fmt: skip  # rows of a table
_DTYPES = {
    **dict.fromkeys((*_AXES, *_WORDS), "u4"),
    **dict.fromkeys(_LONG_WORDS, "u8"),
    **_CLOCKS,
    "%is_explicit_cluster": "?",
}
NAMES = frozenset(_DTYPES)
# The names of the clocks, in the order of their numbers in machine code.
CLOCKS = tuple(_CLOCKS)


def dtype(name: str) -> str:
    """Return the NumPy type of a special register."""
    return _DTYPES[name]


def is_clock(name: str) -> bool:
    """Return whether a special register is a clock or timer, which may change between two reads."""
    return name in _CLOCKS
