"""Accesses of several lanes to one address, and of lanes whose addresses only an offset makes a multiple of their size.

Of a word that all lanes of an instruction read, the checks keep the last lane's record. An earlier read by another
thread is kept, too.
"""

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.checks.reports import of_both
from tests.simulator.ptx.machine import HEAD, Kernels

THREADS = 64
SOURCE = """
// All threads read element `shared`. Then one thread writes it.
extern "C" __global__ void scalar(int shared, int writer, int ordered, int* words, int* out)
{
    int sum = words[shared];
    if (ordered) __syncthreads();
    if (threadIdx.x == writer) words[shared] = 7;
    out[threadIdx.x] = sum;
}
extern "C" __global__ void vector(int shared, int writer, int ordered, int* words, int* out)
{
    int4 four = ((int4*)words)[shared / 4];
    if (ordered) __syncthreads();
    if (threadIdx.x == writer) words[shared] = 7;
    out[threadIdx.x] = four.x + four.y + four.z + four.w;
}
// Thread `shared` has read the element before all threads do.
extern "C" __global__ void twice(int shared, int writer, int ordered, int* words, int* out)
{
    int sum = words[threadIdx.x] + words[shared];
    if (ordered) __syncthreads();
    if (threadIdx.x == writer) words[shared] = 7;
    out[threadIdx.x] = sum;
}
// One thread writes the element. Then all threads read it.
extern "C" __global__ void written(int shared, int writer, int ordered, int* words, int* out)
{
    if (threadIdx.x == writer) words[shared] = 7;
    if (ordered) __syncthreads();
    out[threadIdx.x] = words[shared];
}
extern "C" __global__ void vector_written(int shared, int writer, int ordered, int* words, int* out)
{
    if (threadIdx.x == writer) words[shared] = 7;
    if (ordered) __syncthreads();
    int4 four = ((int4*)words)[shared / 4];
    out[threadIdx.x] = four.x + four.y + four.z + four.w;
}
"""


@pytest.fixture(scope="module")
def kernels() -> Kernels:
    return Kernels(SOURCE)


def findings(kernels: Kernels, name: str, shared: int, writer: int, *, ordered: bool) -> list[str]:
    words, out = np.zeros(THREADS, np.int32), np.zeros(THREADS, np.int32)
    return of_both(kernels, name, (1, 1, 1), (THREADS, 1, 1), shared, writer, int(ordered), words, out)


@pytest.mark.parametrize(
    ("name", "writer", "earlier", "later"),
    [
        ("scalar", 0, "thread (63, 0, 0) read", 0),
        ("scalar", 40, "thread (63, 0, 0) read", 40),
        ("vector", 0, "thread (63, 0, 0) read", 0),
        ("twice", 63, "thread (6, 0, 0) read", 63),
        ("written", 9, "thread (9, 0, 0) wrote", 0),
        ("vector_written", 9, "thread (9, 0, 0) wrote", 0),
    ],
)
def test_an_address_of_all_lanes_is_that_of_each_of_them(
    kernels: Kernels, name: str, writer: int, earlier: str, later: int
) -> None:
    (text,) = findings(kernels, name, 6, writer, ordered=False)
    assert "race: " in text
    assert earlier in text
    assert f"; block (0, 0, 0), thread ({later}, 0, 0), instruction" in text
    assert findings(kernels, name, 6, writer, ordered=True) == []


# The words are in no order, so that their records are not a slice of those of the array.
OFFSET = f"""{HEAD}.visible .entry k(.param .u64 words) {{
    .reg .b64 words, place; .reg .b32 thread, shuffled, value;
    ld.param.u64 words, [words]; mov.u32 thread, %tid.x;
    mul.lo.u32 shuffled, thread, 5; and.b32 shuffled, shuffled, 63;
    mad.wide.u32 place, shuffled, 4, words; sub.u64 place, place, 2;
    st.global.b32 [place+2], thread;
    add.u64 place, place, 2; ld.global.b32 value, [place];
    st.global.b32 [place], value; ret;
}}"""


def test_an_offset_moves_an_address_to_the_next_word() -> None:
    assert of_both(Kernels(load_module(OFFSET)), "k", (1, 1, 1), (THREADS, 1, 1), np.zeros(THREADS, np.int32)) == []
