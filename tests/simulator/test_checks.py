"""What nobody wrote, barriers that threads miss, masks that lie, and memory that is gone: found at the right line."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import cudart_py as cuda

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized]

SOURCE = r"""
extern "C" __global__ void copy_uninitialised(int* out, const int* in) {
    out[threadIdx.x] = in[threadIdx.x] + 1;                        // BUG copy_uninitialised
}
extern "C" __global__ void branch_on_shared(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int v = ((volatile int*)s)[threadIdx.x];
    if (v > 3) atomicAdd(out, 1);                                  // BUG branch_on_shared
}
extern "C" __global__ void local_to_store(int* out, int n, int k) {
    int a[16];
    for (int i = 0; i < n; i++) a[i] = i * k;
    out[threadIdx.x] = a[k];                                       // BUG local_to_store
}
extern "C" __global__ void address_from_global(int* out, const int* index) {
    int i = index[threadIdx.x];
    atomicAdd(&out[i & 7], 1);                                     // BUG address_from_global
}
extern "C" __global__ void heap_uninitialised(int* out) {
    int* p = (int*)malloc(64);
    out[threadIdx.x] = p[threadIdx.x];                             // BUG heap_uninitialised
    free(p);
}
struct Padded { char c; double d; };
extern "C" __global__ void chosen(int* out, const int* in, int n) {
    int v = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x < n ? v : -1;
}
extern "C" __global__ void write_then_read(int* out, int* scratch) {
    scratch[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = scratch[threadIdx.x];
}
extern "C" __global__ void write(int* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void write_half(int* out) { out[threadIdx.x * 2] = threadIdx.x; }

extern "C" __global__ void some_miss_a_barrier(int* out, int n) {
    __shared__ int s;
    s = 0;
    if (threadIdx.x < n) {
        __syncthreads();                                           // BUG some_miss_a_barrier
        atomicAdd(&s, 1);
    }
    out[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void two_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        __syncthreads();                                           // BUG two_barriers
        out[threadIdx.x] += 1;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();                                           // BUG two_barriers
        out[threadIdx.x] += 2;
    }
}
extern "C" __global__ void barriers_in_an_unequal_loop(int* out) {
    for (int i = threadIdx.x; i < 100; i += 64) {
        out[i] = i;
        __syncthreads();                                           // BUG barriers_in_an_unequal_loop
    }
    out[100 + threadIdx.x] = 1;
}
extern "C" __global__ void early_return(int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
extern "C" __global__ void equal_loop(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < n; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        if (threadIdx.x < 7) out[threadIdx.x] += s[63 - threadIdx.x];
        __syncthreads();
    }
}

extern "C" __global__ void lane_outside_mask(int* out) {
    out[threadIdx.x] = __shfl_sync(0x0000ffffu, threadIdx.x, 0);   // BUG lane_outside_mask
}
extern "C" __global__ void mask_names_others(int* out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1);  // BUG mask_names_others
    else
        out[threadIdx.x] = __shfl_up_sync(0xffffffffu, (int)threadIdx.x, 1);   // BUG mask_names_others
}
extern "C" __global__ void right_masks(int* out) {
    unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x & 1);
    if (threadIdx.x & 1) out[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 3);
}
extern "C" __global__ void shuffle_after_return(int* out, int n) {
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 1);
}

extern "C" __global__ void out_of_bounds(int* out, int n) {
    out[blockIdx.x * 32 + threadIdx.x + n] = 1;                    // BUG out_of_bounds
}
extern "C" __global__ void read_past(int* out, const int* in) {
    out[threadIdx.x] = in[threadIdx.x + 1];                        // BUG read_past
}
extern "C" __global__ void misaligned(char* out) {
    *(int*)(out + 4 * threadIdx.x + 1) = 1;                        // BUG misaligned
}
extern "C" __global__ void misaligned_pair(float* out) {
    *(float2*)(out + 1) = make_float2(1, 2);                       // BUG misaligned_pair
}
extern "C" __global__ void beyond_shared(int* out, int n) {
    __shared__ int s[32];
    s[threadIdx.x + n] = 1;                                        // BUG beyond_shared
    out[threadIdx.x] = s[threadIdx.x];
}
__device__ __noinline__ int deep(int n) { volatile int a[64]; a[n % 64] = n; return n ? deep(n - 1) * 3 + a[0] : 0; }
extern "C" __global__ void recursion(int* out, int n) { out[threadIdx.x] = deep(n); }
__device__ int odd(int n);
__device__ __noinline__ int even(int n) { volatile int a[50]; a[n % 50] = n; return n ? odd(n - 1) + a[n % 50] : 1; }
__device__ __noinline__ int odd(int n) { volatile int a[50]; a[n % 50] = n; return n ? even(n - 1) + a[n % 50] : 0; }
extern "C" __global__ void mutual_recursion(int* out, int n) { out[threadIdx.x] = odd(n); }

extern "C" __global__ void waits_for_more(int* out) {
    asm volatile("bar.sync 1, 96;" ::: "memory");                  // BUG waits_for_more
    out[threadIdx.x] = 1;
}
extern "C" __global__ void crossed_barriers(int* out) {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG crossed_barriers
    else asm volatile("bar.sync 2, 64;" ::: "memory");             // BUG crossed_barriers
    out[threadIdx.x] = 1;
}
extern "C" __global__ void never_ends(volatile int* flag) {
    while (*flag == 0) {}                                          // BUG never_ends
}
extern "C" __global__ void counts_for_ever(unsigned* out) {
    unsigned n = 1;
    while (n) n += 2;                                              // BUG counts_for_ever
    *out = n;
}
"""
LINES: dict[str, set[int]] = {}
for _number, _line in enumerate(SOURCE.splitlines(), 1):
    for _name in re.findall(r"// BUG (\w+)", _line):
        LINES.setdefault(_name, set()).add(_number)


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        return cuda.compile(SOURCE)


def ints(count):
    return cuda.zeros(count, np.int32)


def found(device, launch, *arguments):
    """Give the texts of the warnings of one launch."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        launch(*arguments)
        device.synchronize()
    assert all(issubclass(warning.category, cuda.SimulatorWarning) for warning in caught)
    return [str(warning.message) for warning in caught]


def lines(name, texts, what):
    """Give the lines at which a kernel's warnings of a kind were found."""
    return {int(match[1]) for text in texts if (match := re.match(rf"kernel {name} at \S+:(\d+): {what}", text))}


UNINITIALISED = {
    "copy_uninitialised": (1, 32, lambda: (ints(32), cuda.empty(32, np.int32))),
    "branch_on_shared": (1, 64, lambda: (ints(1),)),
    "local_to_store": (1, 32, lambda: (ints(32), 4, 9)),
    "address_from_global": (1, 32, lambda: (ints(8), cuda.empty(32, np.int32))),
    "heap_uninitialised": (1, 4, lambda: (ints(4),)),
}


@pytest.mark.parametrize("name", UNINITIALISED)
def test_what_nobody_wrote_is_found_where_it_matters(device, module, name):
    grid, block, arguments = UNINITIALISED[name]
    texts = found(device, module[name][grid, block], *arguments())
    assert lines(name, texts, "uninitialised value reaches") == LINES[name]


PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry stores(.param .u64 p) {
    .reg .b32 %r<3>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    st.global.u32 [%rd1], %r2;
    ret;
}
.visible .entry branches(.param .u64 p) {
    .reg .pred %p<2>; .reg .b64 %rd<2>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    setp.eq.s32 %p1, %r1, 7;
    @%p1 bra DONE;
    st.global.u32 [%rd1], 3;
DONE:
    ret;
}
"""


@pytest.mark.parametrize(("name", "sink"), [("stores", "a store"), ("branches", "a branch")])
def test_a_register_that_nobody_wrote_is_found(device, name, sink):
    out = ints(1)
    (text,) = found(device, cuda.load(PTX.encode())[name][1, 1], cuda.Pointer(int(out.pointer)))
    assert f"uninitialised value reaches {sink}: a register" in text


def test_counters_and_checks_go_together(device, module):
    with cuda.profile() as p:
        assert found(device, module["lane_outside_mask"][1, 32], ints(32))
    assert p.launches[0].metrics["l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"] == 1


def half_written():
    array = cuda.empty(32, np.int32)
    array[:16].copy_from(np.zeros(16, np.int32))
    return array


INITIALISED = {
    "chosen": (1, 32, lambda: (ints(32), half_written(), 16)),
    "write_then_read": (1, 32, lambda: (ints(32), cuda.empty(32, np.int32))),
    "copy_uninitialised": (1, 16, lambda: (ints(16), half_written())),
    "local_to_store": (1, 32, lambda: (ints(32), 16, 9)),
}


@pytest.mark.parametrize("name", INITIALISED)
def test_what_was_written_or_thrown_away_is_fine(device, module, name):
    grid, block, arguments = INITIALISED[name]
    assert found(device, module[name][grid, block], *arguments()) == []


def test_what_an_earlier_launch_wrote_is_initialised(device, module):
    scratch = cuda.empty(64, np.int32)
    assert found(device, module["write"][1, 64], scratch) == []
    assert found(device, module["copy_uninitialised"][1, 64], ints(64), scratch) == []


def test_what_an_earlier_launch_left_out_is_not(device, module):
    scratch = cuda.empty(64, np.int32)
    assert found(device, module["write_half"][1, 32], scratch) == []
    (text,) = found(device, module["copy_uninitialised"][1, 64], ints(64), scratch)
    assert "thread (1, 0, 0)" in text


def test_memory_that_a_pool_gives_again_is_uninitialised(device, module):
    # No other block of the pool has nearly this size.
    first = ints(3_000_017)
    address = int(first.pointer)
    first.close()
    again = cuda.empty(3_000_017, np.int32)
    assert int(again.pointer) == address
    assert found(device, module["copy_uninitialised"][1, 32], ints(32), again)


def test_managed_and_pinned_memory_count_as_written(device, module):
    managed = cuda.managed_empty(32, np.int32)
    assert found(device, module["copy_uninitialised"][1, 32], ints(32), managed) == []


DIVERGENT = {
    "some_miss_a_barrier": (1, 64, lambda: (ints(64), 32)),
    "two_barriers": (1, 64, lambda: (ints(64), 32)),
    "barriers_in_an_unequal_loop": (1, 64, lambda: (ints(200),)),
}


@pytest.mark.parametrize("name", DIVERGENT)
def test_a_barrier_that_threads_miss_is_found(device, module, name):
    grid, block, arguments = DIVERGENT[name]
    found_at = lines(name, found(device, module[name][grid, block], *arguments()), "divergent barrier")
    assert found_at
    assert found_at <= LINES[name]


@pytest.mark.parametrize(("name", "n"), [("early_return", 40), ("equal_loop", 5)])
def test_a_barrier_that_all_who_are_left_reach_is_fine(device, module, name, n):
    assert found(device, module[name][1, 64], ints(64), n) == []


MASKS = ["lane_outside_mask", "mask_names_others"]


@pytest.mark.parametrize("name", MASKS)
def test_a_member_mask_that_lies_is_found(device, module, name):
    texts = found(device, module[name][1, 32], ints(32))
    at = lines(name, texts, ".*member mask")
    assert at
    assert at <= LINES[name]


def test_a_member_mask_of_those_who_come_is_fine(device, module):
    assert found(device, module["right_masks"][1, 64], ints(64)) == []
    assert found(device, module["shuffle_after_return"][1, 64], ints(64), 40) == []


PROGRAM = """
import numpy as np
import cudart_py as cuda
module = cuda.compile({source!r})
x = cuda.zeros(64, np.int32)  # here
def gone():
    y = cuda.zeros(64, np.int32)
    address = cuda.Pointer(int(y.pointer))
    y.close()
    cuda.Device(0).synchronize()
    return address
try:
    module[{name!r}][{grid}, {block}]({arguments})
    cuda.Device(0).synchronize()
except cuda.CudaError as error:
    print(type(error).__name__, error.status.name)
    print(error)
"""

# The kernel, its shape and arguments, the status that hardware has, and what the report must say.
FAULTS = [
    ("out_of_bounds", 1, 32, "x, 64", "ILLEGAL_ADDRESS", r"0 bytes past the end of the 256-byte allocation"),
    ("out_of_bounds", 3, 32, "x, 0", "ILLEGAL_ADDRESS", r"block \(2, 0, 0\), thread \(0, 0, 0\)"),
    ("read_past", 1, 64, "x, x", "ILLEGAL_ADDRESS", r"read of 4 bytes .* thread \(63, 0, 0\)"),
    ("out_of_bounds", 1, 32, "gone(), 0", "ILLEGAL_ADDRESS", r"which was freed|no allocation is near"),
    ("read_past", 1, 32, "x, gone()", "ILLEGAL_ADDRESS", r"4 bytes into the 256-byte allocation .* which was freed"),
    ("misaligned", 1, 8, "cuda.zeros(64, np.int8)", "MISALIGNED_ADDRESS", r"aligned to 4 bytes"),
    ("misaligned_pair", 1, 1, "cuda.zeros(8, np.float32)", "MISALIGNED_ADDRESS", r"aligned to 8 bytes"),
    ("beyond_shared", 1, 32, "x, 1", "ILLEGAL_ADDRESS", r"shared memory has 128 bytes"),
    ("recursion", 1, 1, "x, 1000", "LAUNCH_FAILED", r"stack overflow"),
    ("mutual_recursion", 1, 1, "x, 1000", "LAUNCH_FAILED", r"stack overflow"),
    ("waits_for_more", 1, 64, "x", "LAUNCH_TIMEOUT", r"deadlock"),
    ("crossed_barriers", 1, 64, "x", "LAUNCH_TIMEOUT", r"deadlock"),
    ("never_ends", 1, 32, "x", "LAUNCH_TIMEOUT", r"limit of executed instructions"),
    ("counts_for_ever", 1, 1, "x.view(np.uint32)", "LAUNCH_TIMEOUT", r"limit of executed instructions"),
]


@pytest.mark.parametrize(
    ("name", "grid", "block", "arguments", "status", "says"), FAULTS, ids=[f"{f[0]}-{i}" for i, f in enumerate(FAULTS)]
)
def test_a_fault_has_the_hardwares_status_and_says_where(python, name, grid, block, arguments, status, says):
    program = PROGRAM.format(source=SOURCE, name=name, grid=grid, block=block, arguments=arguments)
    done = python(program, CUDART_PY_SIMULATOR_STEPS="20000")
    assert f"CUDA_ERROR_{status}" in done.stdout, done.stdout + done.stderr
    assert re.search(says, done.stdout), done.stdout
    if name in LINES:
        assert any(re.search(rf"kernel {name} at \S+:{line}: ", done.stdout) for line in LINES[name]), done.stdout


def test_a_fault_names_where_the_memory_was_allocated(python, tmp_path):
    program = PROGRAM.format(source=SOURCE, name="out_of_bounds", grid=1, block=32, arguments="x, 64")
    done = python(program)
    assert "allocated at <string>:5" in done.stdout


def test_mode_error_raises_and_leaves_the_context_alone(device, module):
    out = ints(32)
    with cuda.checks("error"):
        module["lane_outside_mask"][1, 32](out)
        with pytest.raises(cuda.SimulatorWarning, match="member mask"):
            device.synchronize()
    assert out.to_host()[5] == 0


def test_mode_off_looks_for_nothing(device, module):
    with cuda.checks("off"):
        assert found(device, module["lane_outside_mask"][1, 32], ints(32)) == []


@pytest.mark.parametrize(("value", "status"), [("0", 0), ("off", 0), ("1", 0), ("error", 1), ("loud", 1)])
def test_the_environment_chooses_the_mode(python, value, status):
    program = (
        "import numpy as np, cudart_py as cuda\n"
        f"k = cuda.compile({SOURCE!r})['lane_outside_mask']\n"
        "k[1, 32](cuda.zeros(32, np.int32)); cuda.Device(0).synchronize()"
    )
    done = python(program, check=False, CUDART_PY_SIMULATOR_CHECKS=value)
    assert done.returncode == status, done.stderr
    assert ("SimulatorWarning" in done.stderr) == (value in ("1", "error"))


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="'loud'"), cuda.checks("loud"):
        pass


def test_leaked_memory_is_listed_at_exit_when_asked(python):
    program = (
        "import numpy as np, cudart_py as cuda\n"
        "kept = cuda.empty(1000, np.int32)\n"
        "with cuda.empty(10, np.int32): pass\n"
        "gone = cuda.empty(77, np.int8); gone.close()\n"
    )
    done = python(program, CUDART_PY_SIMULATOR_LEAKS="1")
    assert re.findall(r"leaked: the (\d+)-byte", done.stderr) == ["4000"]
    assert "allocated at <string>:2" in done.stderr
    assert "leaked" not in python(program).stderr
