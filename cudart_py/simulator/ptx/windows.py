"""The windows of generic addresses, and the start of variables in a block's shared memory."""

from __future__ import annotations

# The windows of generic addresses are above every address that a process can map.
SHARED_WINDOW = 1 << 50
LOCAL_WINDOW = 1 << 51
PARAM_WINDOW = 1 << 52
FUNCTION_WINDOW = 1 << 53
WORKSPACE_WINDOW = 1 << 54
KERNEL_WINDOW = 1 << 55
WINDOW_BYTES = 1 << 49

# The hardware reserves the first KiB of a block's shared memory (compute capability 9.0), so variables begin after it.
# CUDA's own headers use the first RUNTIME_SHARED bytes, which start at %reserved_smem_offset_1. The rest is unused.
RESERVED_SHARED = 1024
RUNTIME_SHARED = 288
# The size of a block's shared memory is rounded up to this many bytes, so some bytes past the variables are accessible.
SHARED_UNIT = 128
