"""Machine code of instructions of PTX: what ptxas makes of them, and the longest chains of dependent instructions."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.counters.machine_code import machine_code
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import find_forms

RECORDED = json.loads((Path(__file__).parent / "data" / "machine_code.json").read_text(encoding="utf-8"))
ENGINES = ["numpy", *["native"] * (importlib.util.find_spec("llvmlite") is not None)]
# The waits of one warp, by hand. Loads that do not depend on each other are in flight together.
CHAINS = {
    "float a = x[i]; x[i] = a * a;": {"long": 1},
    "x[i] = x[i] + x[i + 32] + x[i + 64];": {"long": 1},
    "int k = x[i]; k = x[k]; x[i] = x[k];": {"long": 3},
    "__shared__ float s[32]; s[i] = i; x[i] = s[31 - i];": {"long": 0, "short": 1},
    "x[i] = __shfl_xor_sync(~0u, __shfl_xor_sync(~0u, i, 1), 2);": {"long": 0, "short": 2},
    "x[i] = sqrtf(sqrtf(sqrtf(x[i])));": {"long": 1, "short": 3},
}


@pytest.mark.parametrize("opcode", RECORDED)
def test_divisions_and_functions_count_as_the_machine_code_that_ptxas_makes(opcode):
    (form,) = find_forms(opcode)
    assert list(machine_code(form)) == RECORDED[opcode]


@pytest.mark.needs("profile")
@pytest.mark.parametrize("body", CHAINS)
def test_a_warp_waits_for_the_longest_chain_of_dependent_instructions(device, body):
    source = f'extern "C" __global__ void k(float* x) {{ int i = threadIdx.x; {body} }}'
    kernel = cuda.compile(source, fast_math=True)["k"]
    x = cuda.zeros(128, np.float32)
    with cuda.sanitizer("off"), cuda.profile() as profile:
        kernel[3, 32](x)
    metrics = profile.launches[0].metrics
    waits = {reason: metrics[f"model__waits_{reason}_scoreboard.sum"] for reason in CHAINS[body]}
    assert waits == {reason: 3 * count for reason, count in CHAINS[body].items()}


# What three warps add to a metric.
COUNTS = {
    "atomicAdd(x, 1.0f);": ("lts__d_atomic_input_cycles_active.sum", 3 * 32),
    "atomicAdd((int*)x, 1);": ("lts__d_atomic_input_cycles_active.sum", 3),
    "atomicAdd(x + i, 1.0f);": ("lts__d_atomic_input_cycles_active.sum", 3 * 4),
    "x[i] = __fdiv_rn(x[i], x[i + 1]);": ("smsp__inst_executed_pipe_xu.sum", 3 * 2),
    "double* y = (double*)x; y[i] = y[i] / 3.0;": ("smsp__inst_executed_pipe_fp64.sum", 3 * 8),
}


@pytest.mark.needs("profile")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("body", COUNTS)
def test_both_engines_count_atomics_by_lane_and_divisions_as_machine_code(device, monkeypatch, engine, body):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    source = f'extern "C" __global__ void k(float* x) {{ int i = threadIdx.x; {body} }}'
    x = cuda.full(64, 1.0, np.float32)
    with cuda.sanitizer("off"), cuda.profile() as profile:
        cuda.compile(source)["k"][3, 32](x)
    metric, expected = COUNTS[body]
    assert profile.launches[0].metrics[metric] == expected
