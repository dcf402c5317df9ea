"""Keep values in registers, shared memory, `__device__` and `__constant__` variables: scope, lifetime and cost.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run variables
    variables: Scope, lifetime and cost of variables, by kind of memory
    size 64: steps per thread
    counters: measured over 5 blocks with 61 steps per thread
                           loads  wavefronts  instructions  check
    ──────────────────────────────────────────────────────────────
    __device__ array       2,520           0        22,640  right
    dynamic shared memory     40       4,960        22,680  right
    static shared memory      40       4,960        22,680  right
    register                  40           0        17,600  right
    shared, uninitialised                                   caught
    shared, uninitialised: 256 of 256 elements are wrong.
    kernel reverse_unset at kernels/variables.cu:85: uninitialised value reaches a
    store: it was read at kernels/variables.cu:85 from shared memory at 0x7fc (1020
    bytes into reverse_unset::part), where nothing has been written; block (0, 0,
    0), thread (0, 0, 0), instruction 'st.global.u32 [%rd4], %r7'
        85 | out[place()] = part[BLOCK - 1 - threadIdx.x];
    Scope, lifetime and size of variables
                          seen by            lifetime  max size       check
    ───────────────────────────────────────────────────────────────────────
    local                 its thread         thread    255 registers  right
    __shared__            its block          block     48 KiB         right
    extern __shared__     its block          block     227 KiB        right
    __device__            all threads, host  module    device memory  right
    __device__, written                                               right
    __device__, reloaded                                              right
    __device__, closed                                                right
    __constant__          all threads, host  module    64 KiB         right
    __device__, closed: this DeviceArray is closed; keep it, or the module that
    owns it, open until its last use
    Blocks per multiprocessor, by shared memory per block
                                blocks  check
    ─────────────────────────────────────────
    dynamic, 1 KiB                   8  right
    dynamic, 16 KiB                  8  right
    dynamic, 48 KiB                  4  right
    dynamic, 100 KiB                 2  right
    dynamic, 227 KiB                 1  right
    dynamic, 227 KiB + 4 bytes          right
    static, 64 KiB                      right
    dynamic, 227 KiB + 4 bytes: steps_dynamic: argument 'shared_bytes' must
    be at most 232448, not 232452 (232448 bytes per block, less 0 static)
    static, 64 KiB: kernels/variables.cu does not compile

    kernels/variables.cu(56): error: Entry function 'void
    steps_static<16384>(unsigned int const*, unsigned int*, int)' uses too much
    shared data (0x10000 bytes, 0xc000 max)
      56 | __global__ void steps_static(const unsigned* seeds, unsigned* ends, int
    steps)

    Remedy: in void steps_static<16384>(unsigned int const*, unsigned int*, int),
    declare the array as extern __shared__ without a size, and pass its size in
    bytes at the launch: kernel[grid, block, shared_bytes](...).
    Arithmetic instructions take their operands from registers. A variable in memory
    is loaded into a register before each step and stored after it. Shared memory is
    inside the multiprocessor. Stores to global memory go to the L2 cache, which all
    multiprocessors share, so they take longest. If a value must outlast a launch,
    load it once, keep it in a register, and store it once.
    A local variable lives as long as its thread, and a shared variable as long as
    its block. Both are undefined before the first write: they contain whatever was
    there before. A __device__ variable has its initial value when the module is
    loaded, keeps the values that kernels and the host write, and disappears when
    the module is closed. Only the host can write a __constant__ variable.
    A multiprocessor divides its shared memory among its blocks: the more each block
    uses, the fewer blocks fit. If the blocks use little of it, the number of
    threads is the limit. More than 48 KiB of dynamic shared memory requires an
    opt-in, which cudart-py performs at launch. Static shared memory is limited to
    48 KiB. All blocks in the last table have 256 threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from ..checks import compare, on_host, poisoned, refusal
from ..device_code import blocks_for, find, load
from ..limits import issue_limit
from ..stop import Check, Result, Row, Size
from ..variants import Variant, measure
from ..wrong import shown_wrong

TITLE = "Scope, lifetime and cost of variables, by kind of memory"
SIZE = Size("steps per thread", full=2**14, small=2**6)
BLOCK, MOST_THREADS = 256, 2**20  # as in the device code
CHECKED_BLOCKS, CHECKED_STEPS = 5, 61
KIB = 2**10
STATIC, TOO_LARGE = f"steps_static<{BLOCK}>", f"steps_static<{16 * KIB}>"
INITIAL = 1000  # value of the counter in the device code
REGISTERS = 255  # per thread, 32 bits each; the limit since compute capability 3.2
STEP_INSTRUCTIONS = 6  # three shifts, three exclusive ors
EXPLAINED_BY = ("loads", "wavefronts", "instructions")

Words = NDArray[np.uint32]
Launch = Callable[[], object]


def reference(seeds: Words, steps: int) -> Words:
    """Return the states of Marsaglia's generator after `steps` steps."""
    state = seeds.copy()
    for _ in range(steps):
        state ^= state << np.uint32(13)
        state ^= state >> np.uint32(17)
        state ^= state << np.uint32(5)
    return state


def run(device: cuda.Device, size: int) -> Result:
    """Check and time the same steps in each kind of variable; then show scopes, lifetimes and sizes."""
    limit = issue_limit(device, STEP_INSTRUCTIONS, "Gsteps/s")
    module = load("variables", names=[STATIC])
    rows = measure(list(make_variants(device, module, size)), limit, EXPLAINED_BY)
    rows.append(shown_wrong("shared, uninitialised", uninitialised))
    tables = {
        "Scope, lifetime and size of variables": list(lifetimes(device, module)),
        "Blocks per multiprocessor, by shared memory per block": list(shared_sizes(device, module)),
    }
    notes = [
        "Arithmetic instructions take their operands from registers. A variable in memory is loaded into a register "
        "before each step and stored after it. Shared memory is inside the multiprocessor. Stores to global memory go "
        "to the L2 cache, which all multiprocessors share, so they take longest. If a value must outlast a launch, "
        "load it once, keep it in a register, and store it once.",
        "A local variable lives as long as its thread, and a shared variable as long as its block. Both are undefined "
        "before the first write: they contain whatever was there before. A __device__ variable has its initial value "
        "when the module is loaded, keeps the values that kernels and the host write, and disappears when the module "
        "is closed. Only the host can write a __constant__ variable.",
        "A multiprocessor divides its shared memory among its blocks: the more each block uses, the fewer blocks fit. "
        "If the blocks use little of it, the number of threads is the limit. More than 48 KiB of dynamic shared "
        "memory requires an opt-in, which cudart-py performs at launch. Static shared memory is limited to 48 KiB. "
        "All blocks in the last table have 256 threads.",
    ]
    return Result(
        rows,
        limit,
        notes=notes,
        tables=tables,
        counted=f"{CHECKED_BLOCKS} blocks with {min(size, CHECKED_STEPS)} steps per thread",
    )


def make_variants(device: cuda.Device, module: cuda.Module, steps: int) -> Iterator[Variant]:
    """Yield one variant per kind of variable, checked with a few blocks and timed with a full device."""
    full = min(device.sm_count * (device.properties.max_threads_per_sm // BLOCK), MOST_THREADS // BLOCK)
    blocks, checked_steps = min(full, CHECKED_BLOCKS), min(steps, CHECKED_STEPS)
    host = np.random.default_rng().integers(1, 2**32, full * BLOCK, np.uint32)
    seeds, ends = cuda.to_device(host), cuda.empty_like(host)
    kinds = {
        "__device__ array": ("steps_device", 0),
        "dynamic shared memory": ("steps_dynamic", 4 * BLOCK),
        "static shared memory": (STATIC, 0),
        "register": ("steps_register", 0),
    }
    for name, (kernel, shared_bytes) in kinds.items():
        yield Variant(
            name=name,
            launch=module[kernel][blocks, BLOCK, shared_bytes].bind(seeds, ends, checked_steps),
            output=ends[: blocks * BLOCK],
            expected=reference(host[: blocks * BLOCK], checked_steps),
            timed=module[kernel][full, BLOCK, shared_bytes].bind(seeds, ends, steps),
            amount=full * BLOCK * steps,
        )


def lifetimes(device: cuda.Device, module: cuda.Module) -> Iterator[Row]:
    """Yield the scope, lifetime and size of each kind of variable, with a check that shows it."""
    host = np.random.default_rng().integers(1, 2**32, (CHECKED_BLOCKS, BLOCK), np.uint32)
    on_device, out = cuda.to_device(host), poisoned(host.shape, np.uint32)
    has = device.properties

    module["steps_register"][CHECKED_BLOCKS, BLOCK](on_device, out, 1)
    own = compare("each thread has its own local variable", on_host(out), reference(host, 1))
    yield lasting("local", "its thread", "thread", f"{REGISTERS} registers", own)

    module["reverse"][CHECKED_BLOCKS, BLOCK](on_device, out)
    reversed_ = compare("the threads of a block share a variable", on_host(out), host[:, ::-1])
    yield lasting("__shared__", "its block", "block", f"{has.shared_memory_per_block // KIB} KiB", reversed_)
    sized = poisoned(host.shape, np.uint32)
    module["steps_dynamic"][CHECKED_BLOCKS, BLOCK, 4 * BLOCK](on_device, sized, 1)
    dynamic = compare("the launch chooses the size", on_host(sized), reference(host, 1))
    yield lasting("extern __shared__", "its block", "block", f"{has.shared_memory_per_block_optin // KIB} KiB", dynamic)

    counter = module.symbol("threads_so_far")
    expected = [INITIAL + launches * BLOCK for launches in range(3)]
    found = [int(counter.to_host())]
    for _ in expected[1:]:
        module["count_threads"][1, BLOCK]()
        found.append(int(counter.to_host()))
    keeps = Check("a __device__ variable keeps its value", found == expected, f"{found}, not {expected}")
    yield lasting("__device__", "all threads, host", "module", "device memory", keeps)
    counter.copy_from(np.uint64(7))
    module["count_threads"][1, BLOCK]()
    found = [int(counter.to_host())]
    yield Row("__device__, written", check=Check("a kernel continues with the host's value", found == [7 + BLOCK]))
    again = load("variables", names=[STATIC])
    symbol = again.symbol("threads_so_far")
    found = [int(symbol.to_host())]
    yield Row("__device__, reloaded", check=Check("a module loaded again has its own variables", found == [INITIAL]))
    again.close()
    closed = refusal("variables end with their module", ValueError, symbol.to_host)
    yield Row("__device__, closed", check=closed, note=closed.detail)
    yield lasting("__constant__", "all threads, host", "module", f"{has.constant_memory // KIB} KiB", constant(module))


def lasting(name: str, scope: str, lifetime: str, most: str, check: Check) -> Row:
    """Return the row of one kind of variable."""
    return Row(name, {"seen by": scope, "lifetime": lifetime, "max size": most}, check)


def constant(module: cuda.Module) -> Check:
    """Check that kernels see the initial values of a constant variable, and then the host's values."""
    x = np.random.default_rng().random(1000, np.float32)
    on_device, y = cuda.to_device(x), poisoned(x.shape, np.float32)
    line = module["line"][blocks_for(x.size, BLOCK), BLOCK].bind(on_device, y, x.size)
    line()
    first = compare("a constant variable has its initial values", on_host(y), x)
    module.symbol("coefficients").copy_from(np.array([2.0, -0.5], np.float32))
    line()
    # Doubling is exact, so both sides round once.
    second = compare("a constant variable has the host's values", on_host(y), 2 * x - np.float32(0.5))
    return second if first.holds else first


def shared_sizes(device: cuda.Device, module: cuda.Module) -> Iterator[Row]:
    """Yield the number of blocks that fit for several sizes of shared memory, and the sizes that are refused."""
    kernel, most = module["steps_dynamic"], device.properties.shared_memory_per_block_optin
    seeds = np.arange(1, BLOCK + 1, dtype=np.uint32)
    on_device, ends = cuda.to_device(seeds), cuda.empty_like(seeds)
    for nbytes in (4 * BLOCK, 16 * KIB, device.properties.shared_memory_per_block, 100 * KIB, most):
        if nbytes > most:
            continue
        ends.copy_from(np.zeros_like(seeds))
        kernel[1, BLOCK, nbytes](on_device, ends, 3)
        right = compare(f"{nbytes} bytes of shared memory", on_host(ends), reference(seeds, 3))
        yield Row(f"dynamic, {nbytes // KIB} KiB", {"blocks": kernel.occupancy(BLOCK, nbytes).blocks}, right)
    too_many = refusal("more than a block may have is refused", ValueError, lambda: kernel[1, BLOCK, most + 4])
    yield Row(f"dynamic, {most // KIB} KiB + 4 bytes", check=too_many, note=too_many.detail)
    compiled = refusal(
        "more static memory is refused", cuda.CompileError, partial(load, "variables", names=[TOO_LARGE])
    )
    folder = f"{find('variables').parent.parent}{os.sep}"  # the reader's folders have different names
    yield Row("static, 64 KiB", check=compiled, note=compiled.detail.replace(folder, ""))


def uninitialised() -> str:
    """Read shared memory that no thread of the block has written."""
    values = np.arange(1, BLOCK + 1, dtype=np.uint32)
    out = cuda.zeros(BLOCK, np.uint32)
    load("variables", names=[STATIC])["reverse_unset"][1, BLOCK](cuda.to_device(values), out)
    wrong = np.count_nonzero(on_host(out) != values[::-1])
    return f"{wrong} of {BLOCK} elements are wrong." if wrong else ""
