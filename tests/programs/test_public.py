"""The script that runs programs of public suites: how it cuts out the host's parts, judges, and compares."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from tests.programs.public import PROGRAMS, record
from tests.programs.public import __main__ as command
from tests.programs.public.modes import MODES, mode_table
from tests.programs.public.program import Program
from tests.programs.public.record import Outcome
from tests.programs.public.running import run_here, run_modes
from tests.programs.public.source import device_code

ROOT = Path(__file__).parents[2]
SAMPLES = os.environ.get("CUDA_SAMPLES", "")


def program(run, **options):
    return Program("one", "llm.c", ("one.cu",), "a test", run, **options)


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void kernel(int *p) { if (*p) { *p = '}'; } }",
        "template <class T, int N = 3>\n__device__ T twice(T x) { return 2 * x; }",
        "__device__ int counter = 0;",
        "__constant__ float weights[4];",
        "struct Pair { int a; int b; };",
        "typedef struct { float x, y; } Point;",
        "struct __align__(8) Sum { float maximum, sum; };",
        "enum class Kind { FIRST, SECOND };",
        "using function = float (*)(float);",
        "static const int sizes[] = {1, 2, 3};",
        "constexpr int square(int x) { return x * x; }",
        "#define TWICE(x) \\\n    ((x) * 2)",
        "#include <cooperative_groups/reduce.h>",
    ],
)
def test_what_the_device_needs_stays_as_it_is(text):
    assert device_code(text).strip() == text


@pytest.mark.parametrize(
    "text",
    [
        "int main(int argc, char **argv) { kernel<<<1, 1>>>(nullptr); return 0; }",
        "template <class T> void launch(struct Pair *p) { }",
        'extern "C" void reduce(int size);',
        "std::vector<int> values = {1, 2};",
        'const char *title = "__not__ the { device\'s";',
        "float step = 0.5f;",
        "using namespace std;",
        "#include <vector>",
        '#include "helper.h"',
        "#pragma once",
        "// __device__ int counter;",
    ],
)
def test_what_is_the_hosts_goes(text):
    assert device_code(text).strip() == ""


def test_a_namespace_stays_without_the_hosts_functions_in_it():
    text = 'namespace one {\nextern "C" {\nvoid host() { }\n__global__ void kernel() { }\n}\n}\n'
    stays = 'namespace one { extern "C" { __global__ void kernel() { } } }'
    assert " ".join(device_code(text).split()) == stays


def test_braces_in_comments_and_texts_do_not_count():
    kernel = '__global__ void kernel() { /* } */ printf("}"); // }\n}'
    assert device_code(f"void host() {{ /* {{ */ }}\n{kernel}").strip() == kernel


def test_a_named_declaration_is_left_out():
    assert device_code("struct Host { int a; };\nstruct Device { int a; };", omit=["Host"]).split()[1] == "Device"


def test_what_stays_keeps_its_file_and_lines():
    text = device_code(
        "#include <vector>\n\nvoid host() {\n}\n// a comment\n__global__ void kernel() { }", file="one.cu"
    )
    assert text == '#line 6 "one.cu"\n__global__ void kernel() { }\n'


def test_a_right_program_passes(tmp_path):
    (tmp_path / "one.cu").write_text("void host() {}\n__global__ void kernel(int *p) { *p = 7; }\n")

    def run(build):
        out = cuda.zeros(1, np.int32)
        build()["kernel"][1, 1](out)
        assert out.to_host()[0] == 7

    outcome = run_here(program(run), tmp_path, 1)
    assert (outcome.verdict, outcome.good) == ("passed", True)


def test_a_wrong_result_is_a_failure(tmp_path):
    def run(build):
        raise AssertionError("3 is not 4")

    outcome = run_here(program(run), tmp_path, 1)
    assert (outcome.verdict, outcome.good, outcome.error) == (
        "wrong result",
        False,
        "AssertionError: 3 is not 4",
    )


def test_only_warnings_of_a_programs_own_mistakes_are_right(tmp_path):
    def run(build):
        for name in ("sums", "products"):
            warnings.warn(f"kernel {name}: race", cuda.SimulatorWarning, stacklevel=1)

    outcome = run_here(program(run, own=("sums",)), tmp_path, 1)
    assert (outcome.own, outcome.alarms, outcome.good) == (1, ("kernel products: race",), False)


def test_what_was_good_before_and_is_not_now_is_worse(tmp_path):
    good = Outcome("one", "llm.c", "", (), 0, 1.0, 1)
    bad = Outcome("one", "llm.c", "AssertionError", (), 0, 1.0, 1)
    record.write_outcomes(tmp_path / "before.json", [good])
    before = record.read_outcomes(tmp_path / "before.json")
    assert before == {"one": good}
    assert record.worse([bad], before) == ["one"]
    assert record.worse([good], {"one": bad}) == []


def test_a_programs_own_mistake_that_is_no_longer_seen_is_worse():
    seen, unseen = (Outcome("one", "llm.c", "", (), own, 1.0, 1) for own in (2, 0))
    assert record.worse([unseen], {"one": seen}) == ["one"]
    assert record.worse([seen], {"one": unseen}) == []


def test_what_the_checks_raise_is_judged_like_a_warning(tmp_path):
    def run(build):
        raise cuda.SimulatorWarning("kernel sums: race")

    own = run_here(program(run, own=("sums",)), tmp_path, 1)
    assert (own.own, own.alarms, own.error, own.good) == (1, (), "", True)
    alarm = run_here(program(run), tmp_path, 1)
    assert (alarm.own, alarm.alarms, alarm.error, alarm.good) == (0, ("kernel sums: race",), "", False)


def test_the_modes_are_every_engine_with_every_setting_of_the_checks():
    assert len(MODES) == len({str(mode) for mode in MODES}) == 9
    good = Outcome("one", "llm.c", "", (), 0, 1.0, 1)
    table = mode_table({mode: [good] for mode in MODES}).splitlines()
    assert "native, error" in table[0]
    assert table[2].count("passed, 1.0 s") == 9
    assert table[-1] == "9 of 9 runs passed without a false alarm."


@pytest.mark.skipif(not SAMPLES, reason="CUDA_SAMPLES is not the folder of a checkout of cuda-samples")
@pytest.mark.parametrize("name", ["shfl_scan", "BlackScholes"])
def test_a_program_of_cuda_samples_is_right_in_every_mode(name):
    [found] = [one for one in PROGRAMS if one.name == name]
    assert run_modes([found], {"cuda-samples": Path(SAMPLES)}, 1, 60) == 0


def test_a_suite_without_a_folder_is_left_out_with_a_word(capsys):
    assert command.chosen(PROGRAMS, dict.fromkeys(command.SUITES), []) == []
    assert "HeCBench: left out, no folder was given" in capsys.readouterr().err


def test_an_unknown_program_is_named(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["public", "--only", "nothing"])
    with pytest.raises(SystemExit, match="2"):
        command.main()
    assert "no such program: nothing" in capsys.readouterr().err


def test_the_page_has_every_program():
    page = (ROOT / "docs" / "public-programs.md").read_text(encoding="utf-8")
    rows = page.partition("| suite | program |")[2].splitlines()[2:]
    named = [tuple(row.removeprefix("| ").split(" | ")[:2]) for row in rows if row.startswith("|")]
    assert sorted(named) == sorted((one.suite, one.name) for one in PROGRAMS)
