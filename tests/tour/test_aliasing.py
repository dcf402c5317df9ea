import shutil

import pytest

from tests.tour.outcomes import counted

# The loads and stores in the PTX of each kernel.
PTX = {
    "may alias": (32, 17),
    "__restrict__": (32, 1),
    "sum in a variable": (32, 1),
    "four results": (8, 4),
    "four, __restrict__": (2, 4),
}


def test_the_ptx_has_the_expected_loads_and_stores(rows):
    assert {name: (rows[name].values["PTX loads"], rows[name].values["PTX stores"]) for name in PTX} == PTX


@counted
def test_warps_execute_the_same_loads_and_stores(rows):
    assert rows["four results"].values["loads"] == 4 * rows["four, __restrict__"].values["loads"]
    assert rows["may alias"].values["stores"] == 17 * rows["__restrict__"].values["stores"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="there is no host compiler")
def test_the_host_compiler_reads_an_int_again_only_after_a_char_or_without_strict_aliasing(rows):
    assert rows["host -O2, float*"].values["int"] == 1
    assert rows["host -O2, char*"].values["int"] == 0
    assert rows["host -O2 -fno-strict-aliasing, float*"].values["int"] == 0
