"""The rows of the opcode table for matrices and tensor maps.

They multiply matrices, move them between memory and the lanes of warps, copy boxes of arrays by tensor maps, or change
tensor maps.

`opcodes` explains the patterns.
"""

from __future__ import annotations

from ..emitters.copies import copy_group, tensor_copy, tensor_map_change, tensor_map_copy
from ..emitters.matrices import (
    access_rows,
    access_units,
    move_matrix,
    multiply_group_matrices,
    multiply_matrices,
)
from ..emitters.memory import nothing
from ..forms import Row

MATRIX_ROWS = (
    Row(
        "wmma", access_units,
        "load a/b/c sync aligned MAJOR SHAPE STAGED? f16/bf16/f32/s8/u8/s32 | =F M u32?",
        "load a/b/c sync aligned MAJOR m16n16k8 STAGED? tf32/f32 | =F M u32?",
        "load a/b/c sync aligned MAJOR m8n8k4 STAGED? f64 | =F M u32?",
        access="ld", converges="warp", flow="fresh",
    ),
    Row(
        "wmma", access_units,
        "store d sync aligned MAJOR SHAPE STAGED? f16/f32/s32 | M F u32?",
        "store d sync aligned MAJOR m16n16k8 STAGED? f32 | M F u32?",
        "store d sync aligned MAJOR m8n8k4 STAGED? f64 | M F u32?",
        access="st", converges="warp", flow="fresh",
    ),
    Row(
        "wmma", multiply_matrices,
        "mma sync aligned MAJOR MAJOR SHAPE f16/f32 f16/f32 | =F F F F",
        "mma sync aligned MAJOR MAJOR SHAPE f32 bf16 bf16 f32 | =F F F F",
        "mma sync aligned MAJOR MAJOR m16n16k8 f32 tf32 tf32 f32 | =F F F F",
        "mma sync aligned MAJOR MAJOR m8n8k4 RND? f64 f64 f64 f64 | =F F F F",
        "mma sync aligned MAJOR MAJOR SHAPE satfinite? s32 s8 s8 s32 | =F F F F",
        "mma sync aligned MAJOR MAJOR SHAPE satfinite? s32 u8 u8 s32 | =F F F F",
        converges="warp", flow="matrix",
    ),
    Row(
        "mma", multiply_matrices,
        "sync aligned m16n8k8/m16n8k16 row col f16 f16 f16 f16 | =F F F F",
        "sync aligned m16n8k8/m16n8k16 row col f32 f16 f16 f32 | =F F F F",
        "sync aligned m16n8k8/m16n8k16 row col f32 bf16 bf16 f32 | =F F F F",
        "sync aligned m16n8k4/m16n8k8 row col f32 tf32 tf32 f32 | =F F F F",
        "sync aligned m16n8k16/m16n8k32 row col f16 FP8 FP8 f16 | =F F F F",
        "sync aligned m16n8k16/m16n8k32 row col f32 FP8 FP8 f32 | =F F F F",
        "sync aligned m8n8k4/m16n8k4/m16n8k8/m16n8k16 row col RND? f64 f64 f64 f64 | =F F F F",
        "sync aligned m8n8k16/m16n8k16/m16n8k32 row col satfinite? s32 s8/u8 s8/u8 s32 | =F F F F",
        converges="warp", flow="matrix",
    ),
    Row(
        "ldmatrix", access_rows, "sync aligned m8n8 x1/x2/x4 trans? shared/shared::cta? b16 | =F M",
        access="ld", converges="warp", flow="fresh",
    ),
    Row(
        "stmatrix", access_rows, "sync aligned m8n8 x1/x2/x4 trans? shared/shared::cta? b16 | M F",
        access="st", converges="warp", flow="fresh",
    ),
    *(
        Row(
            "wgmma", multiply_group_matrices,
            f"mma_async sync aligned GROUP16 f32/f16 f16 f16 | +F {left} b64 pred @1/-1 @1/-1 {turned} #1",
            f"mma_async sync aligned GROUP16 f32 bf16 bf16 | +F {left} b64 pred @1/-1 @1/-1 {turned} #1",
            f"mma_async sync aligned GROUP8 f32 tf32 tf32 | +F {left} b64 pred @1/-1 @1/-1",
            f"mma_async sync aligned GROUP32 f32/f16 FP8 FP8 | +F {left} b64 pred @1/-1 @1/-1",
            f"mma_async sync aligned GROUP32I satfinite? s32 s8/u8 s8/u8 | +F {left} b64 pred",
            access="bulk", converges="warp", flow="fresh",
        )
        # The left matrix is in shared memory, given by a descriptor, or in registers.
        for left, turned in (("b64", "#1"), ("F", ""))
    ),
    Row("wgmma", nothing, "fence sync aligned |"),
    Row("wgmma", copy_group, "commit_group sync aligned |", "wait_group sync aligned | #1000000", access="bulk"),
    Row("setmaxnreg", nothing, "inc/dec sync aligned u32 | #256"),
    Row("movmatrix", move_matrix, "sync aligned m8n8 trans b16 | =b32 b32", converges="warp", flow="matrix"),
)  # fmt: skip  # rows of a table


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
