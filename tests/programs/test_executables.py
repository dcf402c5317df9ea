"""The tool that builds unmodified programs of public suites and runs them with `cudart-py run`."""

import itertools
import os
from pathlib import Path

import pytest

from tests.programs.executables.page import PAGE, renewed
from tests.programs.executables.running import result_of, verdict_of
from tests.programs.executables.suites import FOLDERS, cuda_samples, hecbench

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
        (0, "checksum failed\n", "says: checksum failed"),
        (0, "cudart-py: kernel k at k.cu:3: a global read is out of bounds\n", "a launch ends early: out of bounds"),
        (0, "cudart-py: kernel k at k.cu:3: race\n", "right, with a finding"),
        (0, "cudart-py: kernel k at k.cu:3: assertion i < n failed\n", "right, with a finding"),
        (0, "k.cu:3: void k(): block: [0,0,0], thread: [1,0,0] Assertion `i < n` failed.\n", "right"),
        (0, "the assertion failed as expected\n", "right"),
        (0, "cudart-py: the records of 4,294,967,296 bytes of memory would take too much memory\n", "right"),
        (2, "cudart-py run: there is no program\n", "exit status 2"),
        (0, "Ran 19 tests in 2.0s\n\nOK\n", "right, 19 tests"),
        (0, "script.py:3: SimulatorWarning: kernel k at k.py:3: race\n", "right, with a finding"),
    ],
)
def test_a_program_is_right_if_neither_its_status_nor_its_output_says_otherwise(status, output, verdict):
    assert verdict_of(status, output) == verdict


ROWS = """<!-- results: a suite -->

2 of 2 programs are right (100 %).

| program | result | seconds | note |
|---|---|---|---|
| first | right | 3 | as before |
| second | right | 4 | no longer |
| third | left out: needs graphics |  |  |

<!-- end of results -->
"""


def test_a_table_keeps_the_rows_of_other_programs_and_the_notes_of_equal_results():
    results = [{"suite": "a suite", "name": name, "seconds": 5.2} for name in ("first", "second", "fourth")]
    for result, verdict in zip(results, ("right", "exit status 1", "did not finish in 60 s"), strict=True):
        result["verdict"] = verdict
    page = renewed(f"before\n{ROWS}after\n", results)
    assert page.startswith("before\n<!-- results: a suite -->\n\n1 of 3 programs are right (33 %).\n\n| program |")
    assert page.split("|---|---|---|---|\n")[1] == (
        "| first | right | 5 | as before |\n| second | exit status 1 | 5 |  |\n"
        "| third | left out: needs graphics |  |  |\n| fourth | did not finish in 60 s | 5 |  |\n"
        "\n<!-- end of results -->\nafter\n"
    )
    with pytest.raises(ValueError, match="no section for another"):
        renewed(ROWS, [{"suite": "another"}])
    text = PAGE.read_text()
    assert renewed(text, []) == text


def test_a_program_that_needs_two_devices_gets_two(tmp_path):
    (tmp_path / "test_args.json").write_text('{"pair": {"args": ["3"], "min_gpus": 2}}')
    for folder in FOLDERS:
        (tmp_path / "Samples" / folder / "pair").mkdir(parents=True)
    (tmp_path / "Samples" / FOLDERS[0] / "pair" / "CMakeLists.txt").touch()
    [program] = cuda_samples(tmp_path, tmp_path / "built")
    assert program.environment["CUDART_PY_SIMULATOR_DEVICES"] == "2"
    assert program.run[-2:] == ["./pair", "3"]


def test_a_draw_meets_only_programs_whose_libraries_and_files_are_there(tmp_path):
    recipes = {
        "whole": "run:\n\t$(LAUNCHER) ./$(program) 3 ../shared/in.txt out.txt\n",
        "blas": "LDFLAGS = -lm -lcublas\nrun:\n\t./main\n",
        "fileless": "run:\n\t./main in.csv\n",
        "folderless": "run:\n\t./main data/\n",
        "offloading": "CC = nvc++\n",
        "boost": "",
        "neighbour": "main.o: main.cu ../shared/common.h\n",
        "opening": "",
    }
    sources = {"boost": "#include <boost/version.hpp>", "opening": 'fopen("../shared/in.dat", "r");'}
    (tmp_path / "src" / "shared").mkdir(parents=True)
    (tmp_path / "src" / "shared" / "in.txt").touch()
    (tmp_path / "src" / "shared" / "common.h").write_text("#include <cublas_v2.h>")
    for name, recipe in recipes.items():
        folder = tmp_path / "src" / f"{name}-cuda"
        folder.mkdir()
        (folder / "Makefile").write_text(recipe)
        (folder / "main.cu").write_text(sources.get(name, ""))
    (tmp_path / "src" / "folderless-cuda" / "data").mkdir()
    [program] = hecbench(tmp_path, tmp_path / "built", len(recipes), 1)
    assert program.name == "whole"
    assert (program.folder / "../shared/in.txt").is_file()


@pytest.mark.exhaustive
@pytest.mark.skipif(not SAMPLES, reason="CUDA_SAMPLES is not the folder of a checkout of cuda-samples")
@pytest.mark.parametrize("name", ["vectorAdd", "simpleVoteIntrinsics"])
def test_a_program_of_cuda_samples_is_right_in_every_mode(name, tmp_path, monkeypatch):
    [program] = [one for one in cuda_samples(Path(SAMPLES), tmp_path) if one.name == name]
    for engine, checks in MODES:
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
        monkeypatch.setenv("CUDART_PY_SANITIZER", checks)
        assert result_of(program, 120).verdict == "right"
