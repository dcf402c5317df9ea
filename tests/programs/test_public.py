"""The tool that runs programs of public suites."""

import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from tests.programs.public import PROGRAMS
from tests.programs.public.program import Program
from tests.programs.public.running import MODES, run, run_here

ROOT = Path(__file__).parents[2]
SAMPLES = os.environ.get("CUDA_SAMPLES", "")


def test_a_wrong_result_an_alarm_and_a_mistake_that_is_not_seen_are_failures(tmp_path):
    (tmp_path / "one.cu").write_text("void host() {}\n__global__ void kernel(int *p) { *p = 7; }\n")

    def host(build, *, right=7, warned=""):
        out = cuda.zeros(1, np.int32)
        build()["kernel"][1, 1](out)
        assert out.to_host()[0] == right
        if warned:
            warnings.warn(f"kernel {warned}: race", cuda.errors.SimulatorWarning, stacklevel=1)

    def verdict(own=(), **options):
        program = Program("one", "llm.c", ("one.cu",), lambda build: host(build, **options), own)
        return run_here(program, tmp_path, 1).verdict

    assert verdict() == verdict(own=("sums",), warned="sums") == "passed"
    assert verdict(right=8) == "wrong result"
    assert verdict(own=("sums",), warned="products") == "1 alarm"
    assert verdict(own=("sums",)) == ("its own mistake was not seen" if "profile" in cuda.capabilities() else "passed")


@pytest.mark.exhaustive
@pytest.mark.skipif(not SAMPLES, reason="CUDA_SAMPLES is not the folder of a checkout of cuda-samples")
@pytest.mark.parametrize("name", ["shfl_scan", "BlackScholes"])
def test_a_program_of_cuda_samples_is_right_in_every_mode(name):
    [found] = [one for one in PROGRAMS if one.name == name]
    assert run([found], {"cuda-samples": Path(SAMPLES)}, 1, 60, MODES) == 0


def test_the_page_has_every_program():
    page = (ROOT / "docs" / "public-programs.md").read_text(encoding="utf-8")
    rows = page.partition("| suite | program |")[2].splitlines()[2:]
    named = [tuple(row.removeprefix("| ").split(" | ")[:2]) for row in rows if row.startswith("|")]
    assert sorted(named) == sorted((one.suite, one.name) for one in PROGRAMS)
