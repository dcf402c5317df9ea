"""The line of the program that called the toolkit, perhaps through another library."""

import pytest

from cudart_py.host.callers import call_site


@pytest.mark.parametrize(
    ("file", "skipped"),
    [
        ("/v/site-packages/numba_cuda/numba/cuda/cudadrv/driver.py", True),
        ("/v/site-packages/cuda/core/_memory.py", True),
        ("/v/site-packages/other/numba_cuda.py", False),
        ("/home/me/numba_cuda/program.py", False),
    ],
)
def test_frames_of_libraries_that_call_the_driver_are_not_the_programs(file, skipped):
    names = {"call_site": call_site}
    exec(compile("def call():\n    return call_site()", file, "exec"), names)
    assert names["call"]().startswith(__file__ if skipped else file)
