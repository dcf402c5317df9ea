"""The windows of generic addresses, and the start of variables in a block's shared memory."""

from __future__ import annotations

# Windows of generic addresses lie above everything that a process can map.
SHARED_WINDOW = 1 << 50
LOCAL_WINDOW = 1 << 51
PARAM_WINDOW = 1 << 52
FUNCTION_WINDOW = 1 << 53
WORKSPACE_WINDOW = 1 << 54
WINDOW_BYTES = 1 << 49

# The hardware keeps the first KiB of a block's shared memory (compute capability 9.0), so that variables begin behind
# it. Its first bytes are for CUDA's own headers, where %reserved_smem_offset_1 says; the rest is unused.
RESERVED_SHARED = 1024
RUNTIME_SHARED = 288
# A block's shared memory ends at a multiple of this many bytes: some bytes beyond the variables can be accessed.
SHARED_UNIT = 128
