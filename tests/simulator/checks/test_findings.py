"""The checks beside the planted mistakes: what they leave alone, how findings are delivered, registers, leaks."""

from __future__ import annotations

import re
import traceback
import warnings

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks.findings import mode
from tests.planted.cases import FOLDER, compiled

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]


@pytest.fixture(scope="module")
def module():
    with cuda.Device(0):
        modules = compiled("values.cu"), compiled("barriers.cu")
    return {name: module[name] for module in modules for name in module}


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


@pytest.mark.parametrize(("name", "n"), [("early_return", 40), ("equal_loop", 5)])
def test_a_barrier_that_all_who_are_left_reach_is_fine(device, module, name, n):
    assert found(device, module[name][1, 64], ints(64), n) == []


@pytest.mark.parametrize(("name", "grid", "arguments"), [
    ("waits_between_barriers", 2, lambda: (ints(1), ints(128))),
    ("calls_in_turn", 1, lambda: (ints(64), 32)),
])  # fmt: skip  # rows of a table
def test_barriers_of_one_function_are_as_many_as_its_uses(device, name, grid, arguments):
    assert found(device, compiled("groups.cu")[name][grid, 64], *arguments()) == []


def test_a_member_mask_of_those_who_come_is_fine(device, module):
    assert found(device, module["right_masks"][1, 64], ints(64)) == []
    assert found(device, compiled("groups.cu")["neighbours_after_return"][1, 64], ints(64), 40) == []


@pytest.mark.parametrize(("name", "threads"), [
    ("sum_of_a_small_block", 16),
    ("sums_of_segments", 48),
    ("sum_with_a_guard", 16),
    ("scan_upwards", 48),
    ("whole_masks", 16),
    ("whole_masks", 40),
])  # fmt: skip  # rows of a table
def test_part_of_a_warp_may_use_whole_masks_for_its_own_values(device, name, threads):
    in_ = cuda.to_device(np.arange(threads, dtype=np.int32))
    assert found(device, compiled("groups.cu")[name][1, threads], ints(threads), in_) == []


def test_mode_error_raises_and_leaves_the_context_alone(device, module):
    out = ints(32)
    with cuda.checks("error"):
        module["lane_outside_mask"][1, 32](out)
        with pytest.raises(cuda.SimulatorWarning, match="member mask"):
            device.synchronize()
    assert out.to_host()[5] == 0


UNROLLED = """
extern "C" __global__ void sums(const float* in, float* out)
{
    __shared__ float parts[128];
    parts[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    out[threadIdx.x] = parts[threadIdx.x];
}
"""


def test_a_missing_barrier_in_an_unrolled_loop_is_one_report_that_says_how_often_it_is_missing(device):
    out = cuda.empty(128, np.float32)
    texts = found(device, cuda.compile(UNROLLED)["sums"][1, 128], cuda.zeros(128, np.float32), out)
    (of_loop,) = [text for text in texts if " parts[threadIdx.x] += " in text]
    assert of_loop.endswith("the same at 5 more instructions of this line (unrolled loops have several)")


def test_the_traceback_of_mode_error_ends_at_the_line_that_waited(device, module):
    out = ints(32)

    def wait():
        with cuda.checks("error"):
            module["lane_outside_mask"][1, 32](out)
            device.synchronize()

    with pytest.raises(cuda.SimulatorWarning) as raised:
        wait()
    *_, last = frames = traceback.extract_tb(raised.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert last.line == "device.synchronize()"


def test_mode_off_looks_for_nothing(device, module):
    with cuda.checks("off"):
        assert found(device, module["lane_outside_mask"][1, 32], ints(32)) == []


@pytest.mark.parametrize(("value", "status"), [("0", 0), ("off", 0), ("1", 0), ("error", 1), ("loud", 1)])
def test_the_environment_chooses_the_mode(python, value, status):
    program = (
        "import numpy as np, cudart_py as cuda\nfrom pathlib import Path\n"
        f"k = cuda.compile(Path({str(FOLDER / 'barriers.cu')!r}))['lane_outside_mask']\n"
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
        "kernel = 'extern \"C\" __global__ void touch() { variable[0] = 1; }'\n"
        "module = cuda.compile('__device__ int variable[3]; ' + kernel)\n"
    )
    done = python(program, CUDART_PY_SIMULATOR_LEAKS="1")
    assert re.findall(r"leaked: the (\d+)-byte", done.stderr) == ["4000"]
    assert "allocated at <string>:2" in done.stderr
    assert "leaked" not in python(program).stderr


def test_blocks_that_overlap_leave_no_mode_behind(device):
    outside = mode()
    first, second = cuda.checks("off"), cuda.checks("error")  # as two threads may enter and leave them
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert mode() == "error"
    second.__exit__(None, None, None)
    assert mode() == outside
