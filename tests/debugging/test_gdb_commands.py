"""The commands that a user of cuda-gdb types: breakpoints that are changed, their commands, and values shown before."""

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import line_of

pytestmark = pytest.mark.needs("debugger")

# The tests refer to line numbers of this text.
SOURCE = """__device__ __noinline__ int inner(int a) {
    int b = a * 3;
    return b + 1;
}
__device__ __noinline__ int outer(int a) {
    int c = inner(a) + 2;
    return c * 2;
}
extern "C" __global__ void loops(int* x, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) {
        sum += i;
        x[threadIdx.x] = sum;
    }
    int last = outer(sum);
    x[threadIdx.x] += last;
}
extern "C" __global__ void halves(int* x) {
    if (threadIdx.x % 2)
        x[threadIdx.x] = 1;
    else
        x[threadIdx.x] = 2;
}
"""


@pytest.fixture
def shown(debugged):
    """Return a function that executes commands while `loops` runs with n = 10, and returns the transcript."""
    return lambda commands: debugged(commands, "loops", cuda.zeros(64, np.int32), 10, source=SOURCE)


def test_a_disabled_breakpoint_does_not_stop_and_an_enabled_one_does(shown):
    said = shown("break 12 if i == 2\nbreak 15\ndisable 1\nrun\nenable\ninfo b\nreverse-continue\nprint i\n")
    assert line_of(said.after("run")) == 15
    assert "disabled" not in said.after("info b")
    assert said.after("print i") == "2\n"


def test_ignored_hits_pass_and_a_condition_can_be_changed(shown):
    said = shown(
        "break 13\nignore 1 4\nrun\nprint i\ncondition 1 i == 7\ncontinue\nprint i\ncondition 1\ncontinue\nprint i\n"
    )
    assert [said.after("print i", number) for number in range(3)] == ["4\n", "7\n", "8\n"]


def test_commands_are_executed_at_each_stop(shown):
    said = shown("break 13\ncommands\nsilent\nprint sum\ncontinue\nend\nbreak 15\nrun\nprint sum\n")
    stop = said.after("run")
    assert stop.splitlines()[:10] == [str(sum(range(i + 1))) for i in range(10)]
    assert "Breakpoint 1, " not in stop
    assert line_of(stop) == 15


def test_a_watchpoint_may_have_a_condition(shown):
    said = shown("break 12\nrun\ndelete\nwatch sum if sum > 20\ncontinue\nprint sum\n")
    assert "changes from 15 to 21" in said.after("continue")
    assert said.after("print sum") == "21\n"


def test_values_that_print_has_shown_have_names(shown):
    said = shown("break 15\nrun\nprint sum\nprint sum * 2\nprint $1 + $\nprint $$\nprint $2 - $1\nprint $9\nprint $x\n")
    # Each print adds a value: 45, 90, 45 + 90, and then the one before that.
    assert [said.after(f"print {text}") for text in ("$1 + $", "$$", "$2 - $1")] == ["135\n", "90\n", "45\n"]
    for text in ("$9", "$x"):
        assert re.search(r"\$\w", said.after(f"print {text}"))


def test_finish_leaves_the_function_of_the_chosen_frame(shown):
    said = shown("break inner\nrun\nbt\nfinish\nreverse-continue\nup\nfinish\nbt\n")
    assert re.search(r"#0 +inner.*\n.*#1 +outer.*\n.*#2 +loops", said.after("bt"))
    assert said.after("finish").split("\n")[1].startswith("outer, ")
    assert "\nloops, " in said.after("finish", 1)
    assert re.search(r"#0 +loops", said.after("bt", 1))


def test_the_backtrace_shows_the_variables_of_each_function(shown):
    said = shown("break 3\nrun\nbacktrace full\nframe\n").after("backtrace full")
    inner, _, rest = said.partition("#1")
    outer, _, loops = rest.partition("#2")
    assert re.search(r"a +int += +45\n +b +int += +135", inner)
    assert re.search(r"a +int += +45", outer)
    assert re.search(r"sum +int += +45", loops)


def test_the_instructions_from_the_present_one_on_are_shown(shown):
    rows = shown("break 13\nrun\nx/i $pc\nx/5i $pc\n")
    assert rows.after("x/i $pc").startswith("=> ")
    listed = rows.after("x/5i $pc").splitlines()
    assert len(listed) == 5
    assert listed[0] == rows.after("x/i $pc").strip()
    assert "st.u32" in "".join(listed), "line 13 stores an int"


def test_values_cannot_be_set(shown):
    assert "cannot be changed" in shown("break 13\nrun\nset var sum = 3\n").after("set var sum = 3")


def test_alternating_threads_have_one_row_per_place(debugged):
    said = debugged("break 20\nrun\ninfo cuda threads\n", "halves", cuda.zeros(64, np.int32), source=SOURCE)
    rows = [re.split(r" {2,}", line.strip(" *")) for line in said.after("info cuda threads").splitlines()[1:]]
    assert [(row[1], row[3], row[4], row[5]) for row in rows] == [
        ("(0, 0, 0)", "(62, 0, 0)", "32", "ready"), ("(1, 0, 0)", "(63, 0, 0)", "32", "runs")
    ]  # fmt: skip  # rows of a table
    assert re.search(r":\d+ \(one thread in 2\)", rows[0][6])
