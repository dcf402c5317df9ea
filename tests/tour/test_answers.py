"""Whatever an answer to an exercise does, what is wrong with it is said, and the process that asks goes on."""

from __future__ import annotations

import pytest

from library_tour import answers, lesson

HEAD = 'extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)\n'
WRONG = {
    "the answer compiles": (HEAD + "{ y[0] = nothing; }", 'identifier "nothing" is undefined'),
    "no call of CUDA fails": (HEAD + "{ y[n + threadIdx.x] = a; }", "daxpy"),
    "the simulator finds nothing wrong": (HEAD + "{ y[0] += threadIdx.x; }", "answer.cu"),
}


@pytest.mark.parametrize("fact", WRONG)
def test_what_is_wrong_with_an_answer_is_said(fact, tmp_path):
    source, said = WRONG[fact]
    file = tmp_path / "answer.cu"
    file.write_text(source)
    [found] = answers.check_answers("daxpy", [file])
    details = {check.fact: check.detail for check in found if not check.holds}
    assert fact in details, details
    assert said in details[fact]


def test_an_answer_that_never_ends_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "SECONDS", 3)
    monkeypatch.setenv("CUDART_PY_SIMULATOR_STEPS", "1000000000000")
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + "{ while (true) y[threadIdx.x] += a; }")
    [[check]] = answers.check_answers("daxpy", [file])
    assert not check.holds
    assert check.detail == "It was stopped after 3 seconds."


def test_after_an_answer_that_breaks_the_driver_no_other_is_tried(tmp_path):
    file = tmp_path / "answer.cu"
    file.write_text(WRONG["no call of CUDA fails"][0])
    broken, other = answers.check_answers("daxpy", [file, lesson.solution("daxpy")])
    assert not all(check.holds for check in broken)
    assert other == []


def test_an_answer_without_the_kernel_is_told_its_name(tmp_path):
    file = tmp_path / "answer.cu"
    file.write_text('extern "C" __global__ void other() {}')
    [[check]] = answers.check_answers("daxpy", [file])
    assert "no kernel is named 'daxpy'" in check.detail


def test_an_answer_in_python_that_raises_is_told_where(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("\nraise RuntimeError('the wheels came off')")
    [[check]] = answers.check_answers("daxpy", [file])
    assert check.detail == "answer.py:2: RuntimeError: the wheels came off"


def test_an_answer_in_python_that_ends_its_process_is_wrong(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("raise SystemExit('enough')")
    [[check]] = answers.check_answers("daxpy", [file])
    assert not check.holds
    assert "enough" in check.detail


def test_a_file_that_is_neither_cuda_nor_python_is_wrong(tmp_path):
    file = tmp_path / "answer.txt"
    file.touch()
    [[check]] = answers.check_answers("daxpy", [file])
    assert not check.holds
    assert "answer.txt is neither CUDA C++ (.cu) nor Python (.py)" in check.detail


def test_an_answer_named_like_a_module_does_not_take_its_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "numpy.py"
    file.write_text("raise RuntimeError('the wheels came off')")
    [[check]] = answers.check_answers("daxpy", [file])
    assert check.detail == "numpy.py:1: RuntimeError: the wheels came off"


def test_what_an_answer_prints_is_no_result(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("print('[1 2 3]')\nraise RuntimeError('the wheels came off')")
    [[check]] = answers.check_answers("daxpy", [file])
    assert check.detail == "answer.py:2: RuntimeError: the wheels came off"
