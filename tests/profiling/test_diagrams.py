"""Diagrams of known access patterns, from the addresses that the simulator recorded, and errors without a record."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling import LaunchProfile, access_diagram, divergence_diagram

pytestmark = pytest.mark.needs("profile")

SOURCE = """
extern "C" __global__ void copy(const float* in, float* out, int stride, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride + offset];
}
template <int width> __global__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][width];
    tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void sides(float* x, int passes) {
    float v = x[threadIdx.x];
    if (threadIdx.x % 2)
        for (int pass = 0; pass < passes; pass++) v = v * 1.01f + 1;
    x[threadIdx.x] = v;
}
extern "C" __global__ void each(float* x, int n) {
    float sum = 0;
    for (int i = 0; i < n; i++) sum += x[32 * (i % 100) + threadIdx.x];
    x[threadIdx.x] = sum;
}
extern "C" __global__ void next(float* x, float* out) { out[threadIdx.x + 1] = x[threadIdx.x + 3]; }
extern "C" __global__ void fold(float* x) {
    float v = x[threadIdx.x];
    for (int distance = 16; distance; distance /= 2) v += __shfl_down_sync(~0u, v, distance);
    x[threadIdx.x] = v;
}
extern "C" __global__ void own(float* out, int n) {
    volatile int own[8];
    for (int i = 0; i < 8; i++) own[i] = i * n;
    out[threadIdx.x] = own[(threadIdx.x + n) % 8];
}
extern "C" __global__ void either(float* x, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    float* p = threadIdx.x < n ? x : s;
    x[threadIdx.x + 32] = p[threadIdx.x];
}
extern "C" __global__ void wide(float* y) {
    float4* x = reinterpret_cast<float4*>(y);
    __shared__ float4 s[32];
    s[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = s[31 - threadIdx.x];
}
extern "C" __global__ void add(float* x) {
    __shared__ int sums[32], sum;
    sums[threadIdx.x] = sum = 0;
    __syncthreads();
    atomicAdd(sums + threadIdx.x / 32, threadIdx.x);
    atomicAdd(&sum, threadIdx.x);
    __syncthreads();
    x[threadIdx.x] = sums[0] + sum;
}
"""


@pytest.fixture(scope="module")
def module():
    return cuda.compile(SOURCE, names=["transpose<32>", "transpose<33>"], name="patterns.cu")


@pytest.fixture
def record(device, module):
    def run(kernel, shape, *arguments, warp=0):
        x = cuda.zeros(4096, np.float32)
        with cuda.sanitizer("off"), cuda.profile(record_warp=warp) as profile:
            module[kernel][shape](x, *arguments)
        return profile.launches[0]

    return run


@pytest.fixture
def out(device):
    return cuda.zeros(4096, np.float32)


@pytest.mark.parametrize(
    ("stride", "offset", "sectors", "moved"), [(1, 0, 4, 128), (1, 1, 5, 160), (2, 0, 8, 256), (32, 0, 32, 1024)]
)
def test_a_stride_touches_its_sectors(record, out, stride, offset, sectors, moved):
    diagram = access_diagram(record("copy", (2, 64), out, stride, offset), operation="load")
    assert diagram.caption.startswith(f"{sectors} sectors, 128 of {moved:,} bytes used")
    boxes = re.findall(r"sector +\d+  \[([#.]+)\]", str(diagram))
    assert len(boxes) == (sectors if sectors < 32 else 6)  # the middle of a long list is left out
    assert boxes[0] == {(1, 0): "########", (1, 1): ".#######", (2, 0): "#.#.#.#.", (32, 0): "#......."}[stride, offset]


def test_addresses_are_those_of_the_arrays_elements(record, out):
    load, store = record("next", (1, 32), out).warp.accesses
    assert list(store.addresses) == [out.pointer + 4 * (lane + 1) for lane in range(32)]
    assert load.addresses[0] % 32 == 12


def test_the_drawing_has_a_cell_for_each_lane_and_a_line_to_its_sector(record, out):
    diagram = access_diagram(record("copy", (2, 64), out, 8, 0), operation="load")
    root = ElementTree.fromstring(diagram.svg())
    name = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in root.iter(f"{name}text")]
    assert [text for text in texts if text and text.isdigit()] == [str(lane) for lane in range(32)]
    assert len(list(root.iter(f"{name}path"))) == 32
    assert diagram.caption in texts
    assert "out[i] = in[i * stride + offset];" in texts
    assert diagram.caption in root.attrib["aria-label"]
    assert diagram._repr_svg_() == diagram.svg()


@pytest.mark.parametrize(("width", "wavefronts"), [(32, 32), (33, 1)])
def test_padding_removes_the_wavefronts_of_a_column(record, out, width, wavefronts):
    launch = record(f"transpose<{width}>", (1, (32, 32)), out)
    access = next(each for each in launch.warp.accesses if (each.space, each.operation) == ("shared", "load"))
    assert access.wavefronts.max() + 1 == wavefronts
    assert list(access.addresses - access.addresses[0]) == [4 * width * lane for lane in range(32)]
    diagram = access_diagram(launch, 10, space="shared")
    assert diagram.caption.startswith(f"{wavefronts} wavefront")
    first = re.search(r"wavefront +1  \[([#.]{32})\]", str(diagram))[1]
    assert first == ("#" * 32 if wavefronts == 1 else "#" + "." * 31)
    # The counters agree with the diagram.
    counted = launch.metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"]
    assert counted == 32 * wavefronts


def test_words_of_16_bytes_take_four_wavefronts_and_lanes_at_one_word_of_an_atomic_take_turns(record):
    launch = record("wide", (1, 32))
    assert access_diagram(launch, space="shared", operation="load").caption == "4 wavefronts for 128 words of 4 bytes."
    launch = record("add", (1, 32))
    # The assembler combines the lanes of the second atomic, because it can tell that they access one word.
    turns = [each.wavefronts.max() + 1 for each in launch.warp.accesses if each.operation == "atomic"]
    assert turns == [32, 1]
    assert sum(turns) == launch.metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"]


def test_words_of_local_memory_lie_side_by_side_over_the_lanes(record):
    launch = record("own", (1, 32), 3)
    store = access_diagram(launch, space="local", operation="store")
    assert "4 sectors, 128 of 128" in store.caption
    load = next(each for each in launch.warp.accesses if (each.space, each.operation) == ("local", "load"))
    assert len(set(load.addresses)) == 8


def test_lanes_that_are_in_different_spaces_make_an_access_each(record):
    launch = record("either", (1, 32), 5)
    loads = [each for each in launch.warp.accesses if each.operation == "load"]
    assert {each.space: np.count_nonzero(each.active) for each in loads} == {"global": 5, "shared": 27}
    shared = next(each for each in loads if each.space == "shared")
    assert list(np.diff(shared.addresses[5:])) == [4] * 26


def test_strips_say_which_lanes_are_active(record):
    launch = record("sides", (1, 64), 100)
    diagram = divergence_diagram(launch)
    strips = re.findall(r"\[([#.]{32})\] +([\d,]+)", str(diagram))
    assert strips[0][0] == strips[-1][0] == "#" * 32
    assert strips[1][0] == ".#" * 16
    assert int(strips[1][1].replace(",", "")) > 100
    average = launch.metrics["smsp__thread_inst_executed_per_inst_executed.ratio"]
    assert diagram.caption.startswith(f"On average {average:.3g} of 32 lanes")
    ElementTree.fromstring(diagram.svg())


def test_another_warp_is_recorded_with_its_own_lanes_and_addresses(record, out):
    first, third = (record("copy", (2, 40), out, 1, 0, warp=warp) for warp in (0, 3))
    lanes = [np.count_nonzero(launch.warp.accesses[0].active) for launch in (first, third)]
    assert lanes == [32, 8]
    assert third.warp.accesses[1].addresses[0] - first.warp.accesses[1].addresses[0] == 4 * 72


def test_shuffles_have_the_lane_that_each_lane_reads_from(record):
    shuffles = record("fold", (1, 32)).warp.shuffles
    assert [list(shuffle.sources[:2]) for shuffle in shuffles] == [[n, 1 + n] for n in (16, 8, 4, 2, 1)]
    assert shuffles[0].sources[31] == 31


def test_a_long_loop_is_recorded_in_part(record, out):
    assert record("sides", (1, 32), 100).warp.complete
    warp = record("each", (1, 32), 2000).warp
    assert not warp.complete
    assert 16 <= len(warp.accesses) < 500


def test_a_profile_records_nothing_unless_it_is_asked(device, module, out):
    with cuda.profile() as outer, cuda.profile(record_warp=1) as inner:
        module["copy"][1, 64](out, out, 1, 0)
    assert outer.launches[0].warp is None
    assert inner.launches[0].warp.warp == 1
    assert outer.launches[0].metrics == inner.launches[0].metrics


def test_what_cannot_be_drawn_is_refused(device, module, out, record):
    launch = record("copy", (2, 64), out, 1, 0)
    unrecorded = LaunchProfile("k", (1, 1, 1), (32, 1, 1), {}, ())
    for call, words in (
        (lambda: access_diagram(launch, 77), r"'line'.* 77; warp 0 made: load of global memory at line 4"),
        (lambda: access_diagram(launch, operation="load", occurrence=1), "'occurrence' must be less than 1"),
        (lambda: access_diagram(launch, operation="read"), "'operation' must be one of"),
        (lambda: divergence_diagram(launch, 9), "'line'.* 9; it executed lines 2, 3"),
        (lambda: access_diagram(record("copy", (2, 64), out, 1, 0, warp=4)), "have a warp 4, not only 4"),
        (lambda: divergence_diagram(unrecorded), r"cuda\.profile\(record_warp=0\)"),
        (lambda: cuda.profile(record_warp=-1), "'record_warp' must be an int from 0 to"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="'launch' must be a LaunchProfile"):
        access_diagram(module)
