"""The tool that builds unmodified programs of public suites and runs them with `cudart-py run`."""

import itertools
import os
from pathlib import Path

import pytest

from tests.programs.executables.running import result_of, verdict_of
from tests.programs.executables.suites import cuda_samples

SAMPLES = os.environ.get("CUDA_SAMPLES", "")
MODES = itertools.product(("numpy", "native", "auto"), ("off", "warn", "error"))


@pytest.mark.parametrize(
    ("status", "output", "verdict"),
    [
        (0, "Test PASSED\n0 errors\nfailed: 0\n", "right"),
        (1, "Test PASSED\n", "exit status 1"),
        (-11, "", "exit status -11"),
        (0, "Result = FAIL\n", "says: Result = FAIL"),
        (0, "Error: mismatch at 3\n", "says: Error: mismatch at 3"),
        (0, "cudart-py: kernel k at k.cu:3: race\n", "right, with a finding"),
        (2, "cudart-py run: there is no program\n", "exit status 2"),
    ],
)
def test_a_program_is_right_if_neither_its_status_nor_its_output_says_otherwise(status, output, verdict):
    assert verdict_of(status, output) == verdict


@pytest.mark.exhaustive
@pytest.mark.skipif(not SAMPLES, reason="CUDA_SAMPLES is not the folder of a checkout of cuda-samples")
@pytest.mark.parametrize("name", ["vectorAdd", "simpleVoteIntrinsics"])
def test_a_program_of_cuda_samples_is_right_in_every_mode(name, tmp_path, monkeypatch):
    [program] = [one for one in cuda_samples(Path(SAMPLES), tmp_path) if one.name == name]
    for engine, checks in MODES:
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
        monkeypatch.setenv("CUDART_PY_SANITIZER", checks)
        assert result_of(program, 120).verdict == "right"
