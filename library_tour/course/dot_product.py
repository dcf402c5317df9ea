"""The dot product of two arrays: a tree in shared memory, shuffles, and barriers that not all threads reach.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run dot_product
    dot_product: Dot product: shared memory, shuffles, and misplaced barriers
    size 65,539: elements in each array
                                loads  atomics  wavefronts  instructions  check
    ────────────────────────────────────────────────────────────────────────────
    one atomic per thread       4,098    2,049           0        43,106  right
    tree in shared memory       4,098      257      11,565       179,587  right
    shuffles, atomic per warp   4,098    2,056           0       106,856  right
    shuffles, atomic per block  4,098      257       2,313       132,813  right
    fixed grid, vector loads    1,026       65         585        45,413  right
    four loads of each array    1,026       17         153        16,389  right
    barrier in a branch                                                   caught
    barrier in the tree's if                                              caught
    barrier in a loop                                                     caught
    barrier in a branch: kernel dot_in_branch at kernels/dot_product.cu:114:
    divergent barrier: threads of the block wait here, but this thread is at
    kernels/dot_product.cu:116, from which it does not reach it; block (0, 0, 0),
    thread (200, 0, 0), instruction 'bar.sync 0'
        114 | __syncthreads();
    barrier in the tree's if: kernel dot_in_tree at kernels/dot_product.cu:134:
    divergent barrier: threads of the block wait here, but this thread is at
    kernels/dot_product.cu:136, from which it does not reach it; block (0, 0, 0),
    thread (128, 0, 0), instruction 'bar.sync 0'
        134 | __syncthreads();
    barrier in a loop: kernel dot_in_loop at kernels/dot_product.cu:148: divergent
    barrier: threads of the block wait here, but this thread is at
    kernels/dot_product.cu:150, from which it does not reach it; block (0, 0, 0),
    thread (44, 0, 0), instruction 'bar.sync 0'
        148 | __syncthreads();
    A tree over 256 elements in shared memory has 8 steps with one barrier each, and
    each step uses half as many threads as the one before. Shuffles pass values from
    register to register within a warp and need no barrier. One barrier remains, for
    the sums of the warps.
    Atomic additions to one total are performed one after another. With one atomic
    per block, there is one for every 256 products. With several 16-byte loads in
    flight per thread, the arrays are read as fast as memory allows.
    All threads of a block must reach the same __syncthreads(), the same number of
    times. Only threads that have returned are exempt. A barrier may be inside a
    branch or a loop if all threads of the block take that branch, or run the same
    number of iterations. Otherwise the behaviour is undefined: the block waits
    forever, or continues with incomplete sums. So a thread without an element
    contributes a zero and reaches the barrier too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import on_host
from ..device_code import WAVES, blocks_for, load
from ..inputs import INPUT_BLOCK, over_all, repeated
from ..limits import read_limit
from ..stop import Result, Size
from ..variants import Variant, measure
from ..wrong import all_shown_wrong

TITLE = "Dot product: shared memory, shuffles, and misplaced barriers"
SIZE = Size("elements in each array", full=2**30 + 3, small=2**16 + 3)
BLOCK, LOADS = 256, 4
EVERY = "one atomic per thread"
ATOMICS = 2**24  # the most elements for that variant, since each atomic takes at least a nanosecond
# Each kernel, and how many elements of an array a thread of a fixed grid loads per iteration: 0 without a fixed grid.
KERNELS = {
    EVERY: ("dot_atomic", 0),
    "tree in shared memory": ("dot_tree", 0),
    "shuffles, atomic per warp": ("dot_warps", 0),
    "shuffles, atomic per block": ("dot_block", 0),
    "fixed grid, vector loads": ("dot_grid<1>", 4),
    "four loads of each array": (f"dot_grid<{LOADS}>", 4 * LOADS),
}
FEW = 200  # elements: fewer than a block has threads, and not a multiple of the warp size
LONGER = 300  # elements: more than a block has threads
EXPLAINED_BY = ("loads", "atomics", "wavefronts", "instructions")
NOTES = (
    "A tree over 256 elements in shared memory has 8 steps with one barrier each, and each step uses half as many "
    "threads as the one before. Shuffles pass values from register to register within a warp and need no barrier. One "
    "barrier remains, for the sums of the warps.",
    "Atomic additions to one total are performed one after another. With one atomic per block, there is one for every "
    "256 products. With several 16-byte loads in flight per thread, the arrays are read as fast as memory allows.",
    "All threads of a block must reach the same __syncthreads(), the same number of times. Only threads that have "
    "returned are exempt. A barrier may be inside a branch or a loop if all threads of the block take that branch, or "
    "run the same number of iterations. Otherwise the behaviour is undefined: the block waits forever, or continues "
    "with incomplete sums. So a thread without an element contributes a zero and reaches the barrier too.",
)

Floats = NDArray[np.float32]


def reference(x: Floats, y: Floats) -> np.float64:
    """Return the dot product in double precision."""
    return np.float64(x.astype(np.float64) @ y.astype(np.float64))


def run(device: cuda.Device, size: int) -> Result:
    """Check and time every variant on elements whose products add exactly in any order; show misplaced barriers."""
    random = np.random.default_rng()
    x, y = make_arrays(random, min(size, INPUT_BLOCK))
    pairs = np.stack([x, y], axis=1)

    def expected(count: int) -> Floats:
        return np.array([over_all(lambda pairs: reference(*pairs.T), pairs, count)], np.float32)

    limit = read_limit(device)
    rows = measure(make_variants(device, repeated(x, size), repeated(y, size), expected), limit, EXPLAINED_BY)
    wrong = all_shown_wrong(
        {"barrier in a branch": in_branch, "barrier in the tree's if": in_tree, "barrier in a loop": in_loop}
    )
    part = [f"The '{EVERY}' kernel is timed with {ATOMICS:,} elements."] if size > ATOMICS else []
    return Result([*rows, *wrong], limit, notes=[*NOTES, *part])


def make_arrays(random: np.random.Generator, size: int) -> tuple[Floats, Floats]:
    """Return arrays whose products have partial sums that a float represents exactly: each comes with its negative."""
    half = random.integers(-4, 5, (2, size // 2 + 1)).astype(np.float32) / 4
    x, y = np.concatenate([half[0], -half[0]]), np.concatenate([half[1], half[1]])
    x[0] = y[0] = 2  # so that the total is not zero
    return x[:size], y[:size]


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("dot_product", names=[kernel for kernel, _ in KERNELS.values() if "<" in kernel])


def make_variants(
    device: cuda.Device, x: cuda.DeviceArray, y: cuda.DeviceArray, expected: Callable[[int], Floats]
) -> list[Variant]:
    """Return the variants; setting the total to zero is part of the timed work.

    `expected` returns the dot product of the first n elements.
    """
    module, total = load_all(), cuda.empty(1, np.float32)

    def adding(name: str, each: int, size: int) -> Callable[[], object]:
        kernel = module[name]
        grid = blocks_for(size, BLOCK)
        if each:
            # WAVES waves of blocks, but no more than the elements require.
            most = WAVES * device.sm_count * kernel.occupancy(BLOCK).blocks
            grid = min(most, blocks_for(size, each * BLOCK))
        launch = kernel[grid, BLOCK].bind(x, y, total, size)

        def add() -> None:
            cuda.memset(total, 0)
            launch()

        return add

    variants = []
    for name, (kernel, each) in KERNELS.items():
        size = min(x.size, ATOMICS) if name == EVERY else x.size
        variants.append(
            Variant(
                name=name,
                launch=adding(kernel, each, size),
                output=total,
                expected=expected(size),
                amount=2 * 4 * size,
            )
        )
    return variants


def in_branch() -> str:
    """Run a kernel with its barrier in a branch that the threads beyond the end do not take."""
    return misplaced("dot_in_branch", FEW)


def in_tree() -> str:
    """Run a kernel with its barrier in the branch of the threads that add."""
    return misplaced("dot_in_tree", FEW)


def in_loop() -> str:
    """Run a kernel whose barrier is in a loop in which some threads run one more iteration than others."""
    return misplaced("dot_in_loop", LONGER)


def misplaced(kernel: str, size: int) -> str:
    """Run a kernel with a misplaced barrier; return a sentence if its result is also wrong, else ""."""
    x, y = make_arrays(np.random.default_rng(0), size)
    total = cuda.zeros(1, np.float32)
    load_all()[kernel][1, BLOCK](cuda.to_device(x), cuda.to_device(y), total, size)
    result, expected = float(on_host(total)[0]), float(reference(x, y))
    return "" if result == expected else f"the result is {result:g}, not {expected:g}."
