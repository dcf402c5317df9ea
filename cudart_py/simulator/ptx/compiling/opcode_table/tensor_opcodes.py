"""The rows of the opcode table that copy boxes of arrays by tensor maps, or change tensor maps.

`opcodes` explains the patterns.
"""

from __future__ import annotations

from ..emitters.copies import tensor_copy, tensor_map_change, tensor_map_copy
from ..emitters.memory import nothing
from ..forms import Row

TENSOR_ROWS = (
    Row("cp", nothing, "async bulk prefetch tensor AXES L2 global tile? L2::cache_hint? | D H?"),
    Row(
        "cp", tensor_copy,
        "async bulk tensor AXES shared::cta/shared::cluster global tile? mbarrier::complete_tx::bytes L2::cache_hint? "
        "| M D M H?",
        "async bulk tensor AXES shared::cluster global tile? mbarrier::complete_tx::bytes multicast::cluster "
        "L2::cache_hint? | M D M u16 H?",
        "async bulk tensor AXES global shared::cta tile? bulk_group L2::cache_hint? | D M H?",
        "reduce async bulk tensor AXES global shared::cta add/min/max/inc/dec/and/or/xor tile? bulk_group "
        "L2::cache_hint? | D M H?",
        access="bulk",
    ),
    Row(
        "tensormap", tensor_map_change,
        "replace tile global_address STAGED? b1024 b64 | M b64", "replace tile rank STAGED? b1024 b32 | M b32",
        "replace tile box_dim/global_dim/element_stride STAGED? b1024 b32 | M #4 b32",
        "replace tile global_stride STAGED? b1024 b64 | M #3 b64", "replace tile elemtype STAGED? b1024 b32 | M #15",
        "replace tile interleave_layout STAGED? b1024 b32 | M #2", "replace tile swizzle_mode STAGED? b1024 b32 | M #4",
        "replace tile fill_mode STAGED? b1024 b32 | M #1",
        access="st",
    ),
    Row(
        "tensormap", tensor_map_copy,
        "cp_fenceproxy global shared::cta tensormap::generic release SCOPE sync aligned | M M @128",
        access="st", converges="warp",
    ),
)  # fmt: skip  # rows of a table
