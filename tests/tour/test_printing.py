import ctypes

import pytest
from rich.console import Console

import cudart_py as cuda
from library_tour.printing import printed

SOURCE = r'extern "C" __global__ void count(int n) { for (int i = 0; i < n; i++) printf("line %d\n", i); }'


def test_what_the_c_library_prints_is_caught(device, capfd):
    assert printed(lambda: ctypes.CDLL(None).puts(b"from C")) == ["from C"]
    assert capfd.readouterr().out == ""


def test_the_standard_output_comes_back_after_an_error(device, capfd):
    with pytest.raises(ZeroDivisionError):
        printed(lambda: 1 / 0)
    print("after")
    assert capfd.readouterr().out == "after\n"


def test_the_lines_of_a_kernel_are_caught_while_a_progress_bar_goes_on_in_the_terminal(device, capfd):
    console = Console(force_terminal=True)
    count = cuda.compile(SOURCE)["count"][1, 1].bind(3)

    def work() -> None:
        console.print("progress")
        count()

    assert printed(work) == ["line 0", "line 1", "line 2"]
    assert capfd.readouterr().out == "progress\n"
