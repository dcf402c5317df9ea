"""Whatever an answer to an exercise does, what is wrong with it is said, and the process that asks goes on."""

import pytest

from library_tour import answers, lesson

HEAD = 'extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)\n'
# The answer's suffix, its source, the fact that does not hold, and words of what is said.
WRONG = {
    "compiles not": (".cu", HEAD + "{ y[0] = nothing; }", "the answer compiles", '"nothing" is undefined'),
    "races": (".cu", HEAD + "{ y[0] += threadIdx.x; }", "the simulator finds nothing wrong", "numpy.cu"),
    "lacks the kernel": (".cu", "__device__ int other;", "no call of CUDA fails", "no kernel is named 'daxpy'"),
    "raises": (
        ".py",
        "print('[1 2]')\nraise ValueError('no')",
        "the answer raises nothing",
        "numpy.py:2: ValueError: no",
    ),
    "ends its process": (".py", "raise SystemExit('enough')", "the answer ends", "enough"),
    "is neither CUDA nor Python": (".txt", "", "the answer raises nothing", "neither CUDA C++ (.cu) nor Python"),
}
# Tried in this process, since none launches anything.
HERE = {"compiles not", "lacks the kernel", "is neither CUDA nor Python"}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_an_answer_is_said(case, tmp_path, monkeypatch):
    """Also of one in the working directory that is named like a module, whose place it does not take."""
    suffix, source, fact, said = WRONG[case]
    monkeypatch.chdir(tmp_path)
    file = (tmp_path / "numpy").with_suffix(suffix)
    file.write_text(source)
    found = answers.tried("daxpy", file) if case in HERE else answers.check_answers("daxpy", [file])[0]
    details = {check.fact: check.detail for check in found if not check.holds}
    assert fact in details
    assert said in details[fact]


def test_after_an_answer_that_breaks_the_driver_no_other_is_tried(tmp_path):
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + "{ y[n + threadIdx.x] = a; }")
    broken, other = answers.check_answers("daxpy", [file, lesson.solution("daxpy")])
    assert "daxpy" in next(check.detail for check in broken if check.fact == "no call of CUDA fails")
    assert other == []


def test_an_answer_that_never_ends_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "SECONDS", 1.5)
    monkeypatch.setenv("CUDART_PY_SIMULATOR_STEPS", "1000000000000")
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + "{ while (true) y[threadIdx.x] += a; }")
    [[check]] = answers.check_answers("daxpy", [file])
    assert not check.holds
    assert "stopped after 1.5 seconds" in check.detail
