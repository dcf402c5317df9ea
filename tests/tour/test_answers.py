"""Whatever an answer to an exercise does, its mistake is reported, and the process that tries it goes on."""

import pytest

from library_tour import answers, lesson
from library_tour.answers import check_answers  # the real one, which starts a process; `answers` has one that forks

HEAD = 'extern "C" __global__ void daxpy(double a, const double* x, double* y, int n)\n'
# The suffix of the answer, its source, the fact that does not hold, and words from the report.
WRONG = {
    "compiles not": (".cu", HEAD + "{ y[0] = nothing; }", "the answer does not compile", '"nothing" is undefined'),
    "lacks the kernel": (".cu", "__device__ int other;", "the answer has no kernel daxpy", "Its kernels: none"),
    "names the kernel otherwise": (
        ".cu",
        HEAD.replace("daxpy", "axpy") + "{ y[0] = a; }",
        "the answer has no kernel daxpy",
        "Its kernels: axpy",
    ),
    "raises": (
        ".py",
        "print('[1 2]')\nraise ValueError('no')",
        "the answer raised an exception",
        "numpy.py:2: ValueError: no",
    ),
    "ends its process": (".py", "raise SystemExit('enough')", "the answer ended its process", "enough"),
    "does not do what is counted": (
        ".cu",
        HEAD + "{ if (threadIdx.x < n) y[threadIdx.x] = a; }",
        "the kernel does not do what is counted",
        "sectors/load",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_an_answer_is_said(case, tmp_path, monkeypatch):
    """The answer is named like a module, numpy, and is in the working directory, but must not be imported as one."""
    suffix, source, fact, said = WRONG[case]
    monkeypatch.chdir(tmp_path)
    file = (tmp_path / "numpy").with_suffix(suffix)
    file.write_text(source)
    [found] = (check_answers if suffix == ".py" else answers.check_answers)("daxpy", [file])
    details = {check.fact: check.detail for check in found if not check.holds}
    assert fact in details
    assert said in details[fact]


def test_after_an_answer_that_breaks_the_driver_no_other_is_tried(tmp_path):
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + "{ y[n + threadIdx.x] = a; }")
    broken, other = check_answers("daxpy", [file, lesson.solution("daxpy")])
    details = {check.fact: check.detail for check in broken}
    assert details["the kernel accessed memory outside its arrays"].startswith("kernel daxpy at answer.cu:2: ")
    assert other == []


def test_a_kernel_that_does_not_finish_is_stopped_and_its_line_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "KERNEL_SECONDS", 1)
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + "{\n    while (true)\n        y[threadIdx.x] += a;\n}")
    [found] = check_answers("daxpy", [file])
    details = {check.fact: check.detail for check in found}
    assert "daxpy at answer.cu:4\n" in details["the kernel did not finish within 10 s"]


@pytest.mark.parametrize(
    ("limit", "seconds", "fact"),
    [
        ("SECONDS", 2, "the answer did not finish within 2 s of processor time"),
        ("CLOCK_SECONDS", 1, "the answer did not finish within 1 s"),
    ],
)
def test_an_answer_that_never_ends_is_stopped(limit, seconds, fact, tmp_path, monkeypatch):
    monkeypatch.setattr(answers, limit, seconds)
    file = tmp_path / "answer.py"
    file.write_text("while True: pass")
    [[check], other] = check_answers("daxpy", [file, file])
    assert (check.fact, check.holds, other) == (fact, False, [])


@pytest.mark.needs("profile")
def test_an_exception_is_told_with_the_answers_own_line_and_with_the_case(tmp_path):
    start = lesson.start("vector_add")
    found = {check.fact: check.detail for check in answers.tried("vector_add", start) if not check.holds}
    line = 1 + next(at for at, text in enumerate(start.read_text().splitlines()) if "kernel[blocks, THREADS]" in text)
    place = f"vector_add.py:{line}, in add(kernel=<Kernel>, a=float32(77,), b=float32(77,))"
    said = found["the answer raised an exception"]
    assert said.startswith(f"{place}: ValueError: vector_add: argument 'grid.x' must be")
    # The line is in a helper that the answer's function calls; the case is that of the answer's function.
    file = tmp_path / "answer.py"
    file.write_text("def add(kernel, a, b):\n    return half(a)\n\ndef half(a):\n    return a // 'two'")
    [check] = answers.tried("vector_add", file)
    assert check.detail.startswith("answer.py:5, in add(kernel=<Kernel>, a=float32(1024,), b=float32(1024,)): ")


@pytest.mark.needs("profile")
def test_an_exception_outside_of_the_answer_has_no_line(tmp_path):
    file = tmp_path / "answer.py"
    file.write_text("def other(): pass")
    [check] = answers.tried("vector_add", file)
    assert check.detail == "AttributeError: module 'answer' has no attribute 'add'"


@pytest.mark.parametrize(
    ("body", "fix"),
    [
        ("y[0] += threadIdx.x + blockIdx.x;", "The threads are in different blocks"),
        ("if (blockIdx.x == 0) y[63 - threadIdx.x] = y[threadIdx.x];", "Usually, a `__syncthreads()` is missing"),
    ],
)
def test_a_race_is_reported_with_a_fix_and_without_a_file_of_the_check(body, fix, tmp_path):
    file = tmp_path / "answer.cu"
    file.write_text(HEAD + f"{{ {body} }}")
    [found] = answers.check_answers("daxpy", [file])
    [detail] = [check.detail for check in found if check.fact == answers.FAULTS["race: "]]
    assert "answer.cu:2" in detail
    assert "allocated by the check)" in detail
    assert "daxpy.py" not in detail
    assert detail.splitlines()[-1].startswith(fix)


def test_an_array_that_the_answer_allocates_is_reported_with_its_line(tmp_path):
    file = tmp_path / "answer.py"
    code = lesson.solution("vector_add").read_text(encoding="utf-8")
    file.write_text(code.replace("cuda.zeros(a.size,", "cuda.zeros(a.size - 1,"))
    [found] = answers.check_answers("vector_add", [file])
    assert "allocated at answer.py:16" in found[-1].detail
