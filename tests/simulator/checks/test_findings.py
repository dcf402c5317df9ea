"""Findings on their way to the program, modes of the checks, and what launches have written before."""

from __future__ import annotations

import re
import traceback

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks.findings import mode
from tests.planted.cases import compiled, floats, ints, marked
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE


def wrong_mask(out):
    compiled("barriers.cu")["lane_outside_mask"][1, 32](out)


def copied(count, source):
    return found(compiled("values.cu")["copy_uninitialised"][1, count], ints(count), source)


def test_what_earlier_launches_wrote_is_initialised_and_what_they_or_a_pool_left_is_not():
    # No other block of the pool has nearly this size.
    first = ints(3_000_017)
    address = int(first.pointer)
    first.close()
    scratch = cuda.empty(3_000_017, np.int32)
    assert int(scratch.pointer) == address
    assert found(compiled("values.cu")["write_half"][1, 32], scratch) == []
    (text,) = copied(64, scratch)
    assert "thread (1, 0, 0)" in text
    assert found(compiled("values.cu")["write"][1, 64], scratch) == []
    assert copied(64, scratch) == []


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


def test_a_missing_barrier_is_one_report_a_launch_that_says_how_often_an_unrolled_loop_has_it():
    out = floats(128)
    texts = found(cuda.compile(UNROLLED)["sums"][1, 128], floats(128), out)
    (of_loop,) = [text for text in texts if " parts[threadIdx.x] += " in text]
    assert "the same at 5 more instructions" in of_loop
    texts = found(compiled("races.cu")["no_barrier"][8, 256], floats(256 * 8), floats(256))
    assert len([text for text in texts if f":{min(marked('races.cu')['no_barrier'])}:" in text]) == 1


def test_mode_warn_names_both_threads_the_allocation_and_the_programs_line(device):
    x = ints(64)
    compiled("races.cu")["same_place"][2, 64](x)
    with pytest.warns(cuda.SimulatorWarning) as caught:
        device.synchronize()
    text = str(caught[0].message)
    assert re.search(r"block \(1, 0, 0\), thread \(\d+, 0, 0\).*block \(0, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert f"the 256-byte allocation at {int(x.pointer):#x}, allocated at " in text
    assert caught[0].filename == __file__


def test_mode_error_raises_at_the_line_that_waited_and_leaves_the_context_alone_and_off_looks_for_nothing(device):
    out = ints(32)

    def wait():
        with cuda.checks("error"):
            wrong_mask(out)
            device.synchronize()

    with pytest.raises(cuda.SimulatorWarning, match="member mask") as raised:
        wait()
    *_, last = frames = traceback.extract_tb(raised.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert last.line == "device.synchronize()"
    assert out.to_host()[5] == 0
    with cuda.checks("off"):
        assert found(wrong_mask, out) == []


def test_the_environment_chooses_the_mode_and_an_unknown_one_is_refused(monkeypatch):
    for value, chosen in {"": "warn", "0": "off", "off": "off", "1": "warn", "warn": "warn", "error": "error"}.items():
        monkeypatch.setenv("CUDART_PY_SIMULATOR_CHECKS", value)
        assert mode() == chosen
    with pytest.raises(ValueError, match="'loud'"), cuda.checks("loud"):
        pass


def test_blocks_that_overlap_leave_no_mode_behind():
    outside = mode()
    first, second = cuda.checks("off"), cuda.checks("error")  # as two threads may enter and leave them
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert mode() == "error"
    second.__exit__(None, None, None)
    assert mode() == outside
