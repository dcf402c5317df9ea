"""Delivery of findings to the program, modes of the checks, and memory that earlier launches have initialised.

A report has the text of the source line, the line that compiled the kernel, and for a mistake inside a header the
user's line that led there.
"""

import concurrent.futures
import re
import sys
import traceback

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling.report.annotated_source import annotated_sources
from cudart_py.simulator.checks.findings import mode
from tests.planted.cases import compiled, floats, ints, marked
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = WRONG_ON_PURPOSE


def wrong_mask(out):
    compiled("barriers.cu")["lane_outside_mask"][1, 32](out)


def copied(count, source):
    return found(compiled("values.cu")["copy_uninitialised"][1, count], ints(count), source)


def test_what_earlier_launches_wrote_is_initialised_and_what_they_or_a_pool_left_is_not():
    # No other block of the pool has a similar size.
    first = ints(3_000_017)
    address = int(first.pointer)
    first.close()
    # Work that waits in another stream may use the freed memory, so the pool gives out the same addresses again.
    busy = cuda.Stream(non_blocking=True)
    busy.launch_host_function(int)
    scratch = cuda.empty(3_000_017, np.int32)
    assert int(scratch.pointer) == address
    busy.synchronize()
    assert found(compiled("values.cu")["write_half"][1, 32], scratch) == []
    (text,) = copied(64, scratch)
    assert "thread (1, 0, 0)" in text
    assert found(compiled("values.cu")["write"][1, 64], scratch) == []
    assert copied(64, scratch) == []


UNROLLED = """
extern "C" __global__ void sums(const float* in, float* out)
{
    __shared__ float parts[128];
    parts[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            parts[threadIdx.x] += parts[threadIdx.x + half];
    }
    out[threadIdx.x] = parts[threadIdx.x];
}
"""


def test_a_missing_barrier_is_one_report_a_launch_that_says_how_often_an_unrolled_loop_has_it():
    out = floats(128)
    texts = found(cuda.compile(UNROLLED)["sums"][1, 128], floats(128), out)
    (of_loop,) = [text for text in texts if " parts[threadIdx.x] += " in text]
    assert "also at 5 more instructions" in of_loop
    texts = found(compiled("races.cu")["no_barrier"][8, 256], floats(256 * 8), floats(256))
    assert len([text for text in texts if f":{min(marked('races.cu')['no_barrier'])}:" in text]) == 1


def test_the_same_mistake_of_several_launches_is_reported_once_and_says_how_many_made_it(device):
    x = ints(64)
    same_place, no_barrier = compiled("races.cu")["same_place"], compiled("races.cu")["no_barrier"]

    def launches():
        for _ in range(5):
            same_place[2, 64](x)
        no_barrier[8, 256](floats(256 * 8), floats(256))

    texts = found(launches)
    (first,) = [text for text in texts if "kernel same_place" in text]
    assert first.endswith("\n    the same in 4 more launches")
    assert not any("more launch" in text for text in texts if "kernel no_barrier" in text)
    with cuda.sanitizer("error"):
        for _ in range(50):
            same_place[2, 64](x)
        with pytest.raises(cuda.errors.SimulatorWarning) as raised:
            device.synchronize()
    assert str(raised.value).count("race: ") == 1
    assert str(raised.value).endswith("\n    the same in 49 more launches")


def test_mode_warn_names_both_threads_the_allocation_and_the_programs_line(device):
    x = ints(64)
    compiled("races.cu")["same_place"][2, 64](x)
    with pytest.warns(cuda.errors.SimulatorWarning) as caught:
        device.synchronize()
    text = str(caught[0].message)
    assert re.search(r"block \(1, 0, 0\), thread \(\d+, 0, 0\).*block \(0, 0, 0\), thread \(\d+, 0, 0\)", text)
    assert f"the 256-byte allocation at {int(x.pointer):#x}, allocated at " in text
    assert caught[0].filename == __file__


FAULTY = '''
import warnings, numpy as np, cudart_py as cuda
warnings.simplefilter("error")
kernel = cuda.compile("""
extern "C" __global__ void reversed(int* x)
{
    __shared__ int tile[64];
    tile[threadIdx.x] = threadIdx.x;
    x[blockIdx.x * blockDim.x + threadIdx.x] = tile[63 - threadIdx.x];
}
""")["reversed"]
with cuda.Device(0):
    x = cuda.zeros(100, np.int32)
    kernel[8, 64](x)
    for _ in range(2):
        try:
            x.to_host()
        except cuda.errors.IllegalAddressError as error:
            print([word in str(error).partition(" is out of bounds")[2] for word in ("race: ", "lost by")])
'''


@pytest.mark.parametrize("mode", ["error", "warn"])
def test_the_exception_of_a_fault_includes_the_findings_of_its_launch(python, mode):
    """No finding takes the place of the fault, neither in this mode nor if a filter makes errors of warnings."""
    done = python(FAULTY, CUDART_PY_DRIVER="simulator", CUDART_PY_SANITIZER=mode)
    assert done.stdout == "[True, False]\n[False, False]\n"


def test_mode_error_raises_at_the_line_that_waited_and_leaves_the_context_alone_and_off_looks_for_nothing(device):
    out = ints(32)

    def wait():
        with cuda.sanitizer("error"):
            wrong_mask(out)
            device.synchronize()

    with pytest.raises(cuda.errors.SimulatorWarning, match="member mask") as raised:
        wait()
    *_, last = frames = traceback.extract_tb(raised.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    assert last.line == "device.synchronize()"
    assert out.to_host()[5] == 0
    with cuda.sanitizer("off"):
        assert found(wrong_mask, out) == []


def test_the_environment_chooses_the_mode_and_an_unknown_one_is_refused(monkeypatch):
    for value, chosen in {"": "warn", "0": "off", "off": "off", "1": "warn", "warn": "warn", "error": "error"}.items():
        monkeypatch.setenv("CUDART_PY_SANITIZER", value)
        assert mode() == chosen
    with pytest.raises(ValueError, match="'loud'"), cuda.sanitizer("loud"):
        pass


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ("CUDART_PY_SIMULATOR_CHECKS", "CUDART_PY_SANITIZER", "error"),
        ("CUDART_PY_SIMULATOR_CHECKS_MIB", "CUDART_PY_SANITIZER_MIB", "64"),
    ],
)
def test_a_variable_of_an_earlier_version_is_refused_with_its_new_name(python, old, new, value):
    program = "import os, cudart_py as cuda; os.environ.pop('{}', None); cuda.devices()".format
    refused = python(program(new), check=False, CUDART_PY_DRIVER="simulator", **{old: value})
    assert f"set {new}='{value}'" in refused.stderr.splitlines()[-1]
    python(program(""), CUDART_PY_DRIVER="simulator", **{old: value, new: value})


def test_blocks_that_overlap_leave_no_mode_behind():
    outside = mode()
    first, second = cuda.sanitizer("off"), cuda.sanitizer("error")  # overlapping, as two threads may use them
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert mode() == "error"
    second.__exit__(None, None, None)
    assert mode() == outside


def test_a_call_sets_the_mode_until_the_next_one_and_a_block_until_its_end(python):
    program = """
import cudart_py as cuda
from cudart_py.simulator.checks.findings import mode
seen = []
with cuda.sanitizer("error"):
    pass
seen.append(mode())
cuda.sanitizer("off")
seen.append(mode())
with cuda.sanitizer("error"):
    with cuda.sanitizer("warn"):
        seen.append(mode())
    seen.append(mode())
seen.append(mode())
cuda.sanitizer("error")
seen.append(mode())
with cuda.sanitizer("warn"):
    cuda.sanitizer("off")
    seen.append(mode())
print(*seen, mode())
"""
    modes = python(program, CUDART_PY_SANITIZER="warn", CUDART_PY_DRIVER="simulator").stdout.split()
    assert modes == ["warn", "off", "warn", "error", "off", "error", "off", "error"]


def test_blocks_of_many_threads_leave_the_mode_as_it_was():
    outside, interval = mode(), sys.getswitchinterval()

    def enter_and_leave():
        for _ in range(300):
            with cuda.sanitizer("error"), cuda.sanitizer("off"):
                pass

    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for done in [pool.submit(enter_and_leave) for _ in range(8)]:
                done.result()
    finally:
        sys.setswitchinterval(interval)
    assert mode() == outside


UNWRITTEN = """extern "C" __global__ void k(int* out, const int* in) {
    int value = in[threadIdx.x];
    if (value) out[0] = value;
}
"""
LINE = "    3 | if (value) out[0] = value;"
IN_A_HEADER = """extern "C" __global__ void k(int* out, const int* in) {
    int value = threadIdx.x;
    __stwt(out, value);
}
"""
BREAKPOINT = """extern "C" __global__ void k() {
    __brkpt();
}
"""
# On one line, because NVRTC 13.0 attributes such a statement to its last line, and later versions to its first.
COPY = "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [%0, {%1, %1, %1}], {%2};"
IM2COL = f"""extern "C" __global__ void k(const void* map, int place, short offset) {{
    asm volatile("{COPY}" :: "l"(map), "r"(place), "h"(offset));
}}
"""


def reported(module) -> list[str]:
    module["k"][1, 2](cuda.zeros(1, np.int32), cuda.empty(2, np.int32))
    with pytest.warns(cuda.errors.SimulatorWarning) as caught:
        cuda.Device(0).synchronize()
    return str(caught[0].message).splitlines()


def test_a_report_shows_the_line_and_what_compiled_it_also_where_a_cache_had_it(device):
    reports = [reported(cuda.compile(UNWRITTEN, name="values.cu")) for _ in range(2)]
    reports.append(reported(cuda.compile(UNWRITTEN, name="values.cu")))
    for first, *rest in reports:
        assert first.startswith("kernel k at values.cu:3: uninitialised value")
        assert rest[0] == LINE
        assert rest[1].startswith(f"    values.cu was compiled at {__file__}:")
    assert reports[0][1:] == reports[1][1:] != reports[2][1:]


def test_a_report_shows_the_line_of_a_file_as_it_was_compiled(device, tmp_path):
    path = tmp_path / "values.cu"
    path.write_text(UNWRITTEN)
    module = cuda.compile(path)
    path.unlink()
    first, *rest = reported(module)
    assert first.startswith(f"kernel k at {path}:3: ")
    assert rest == [LINE]


@pytest.mark.parametrize("body", ["", 'extern "C" __global__ void own(int* x) { *x = 1; }'])
def test_a_fault_in_an_included_file_of_the_sources_name_has_that_files_line(device, tmp_path, monkeypatch, body):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "kernel.cu").write_text(UNWRITTEN)
    monkeypatch.chdir(tmp_path)
    text = "\n".join(reported(cuda.compile(f'#include "lib/kernel.cu"\n// second line\n// third line\n{body}')))
    assert f"kernel k at {tmp_path}/lib/kernel.cu:3: " in text
    assert "third line" not in text


def test_a_source_from_another_folders_cache_has_its_text_also_where_a_link_names_the_folder(
    device, tmp_path, monkeypatch
):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for folder, cache in ((tmp_path, True), (tmp_path / "real", True), (tmp_path / "link", False)):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PWD", str(folder))
        assert LINE in reported(cuda.compile(UNWRITTEN + "// folders", cache=cache))


IN_A_FOLDER = f"""
import os
import numpy as np
import cudart_py as cuda

os.chdir(os.environ["FOLDER"])
kernel = cuda.compile({UNWRITTEN!r})["k"]
kernel[1, 2](cuda.zeros(1, np.int32), cuda.empty(2, np.int32))
cuda.Device(0).synchronize()
"""


@pytest.mark.parametrize("locale", [{}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}])
def test_the_folder_may_have_characters_that_the_locale_lacks(python, tmp_path, locale):
    folder = tmp_path / "größe"
    folder.mkdir()
    ended = python(IN_A_FOLDER, own_imports=True, FOLDER=str(folder), **locale)
    assert LINE in ended.stderr.splitlines()


def test_a_function_of_a_header_is_reported_at_the_line_that_calls_it(device):
    first, *rest = reported(cuda.compile(IN_A_HEADER, options=["-G"]))
    assert "(in __stwt) at kernel.cu:3 (which calls " in first
    assert rest[0] == "    3 | __stwt(out, value);"


@pytest.mark.parametrize("options", [[], ["-G"]])
def test_what_is_not_simulated_is_reported_at_the_users_line(device, options):
    for source, arguments, words in (
        (BREAKPOINT, (), "    2 | __brkpt()"),
        (IM2COL, (None, 0, 0), "modes of tensor copies are not simulated"),
    ):
        kernel = cuda.compile(source, options=options)["k"]
        with pytest.raises(cuda.errors.NotSupportedError, match=r"at kernel\.cu:2") as caught:
            kernel[1, 1](*arguments)
        assert words in str(caught.value)
        assert f"kernel.cu was compiled at {__file__}" in str(caught.value)


def test_profiles_have_the_text_of_sources_that_are_no_files(device):
    with cuda.profile() as p:
        for value in (1, 2):
            source = f'extern "C" __global__ void k(int* x) {{ *x = {value}; }}'
            cuda.compile(source)["k"][1, 1](cuda.empty(1, np.int32))
    text = annotated_sources(p.launches)
    assert text.count("kernel.cu\n") == text.count("*x = 1") + text.count("*x = 2") == 2
    assert {line.file for line in p.launches[0].lines if line.line} == {"kernel.cu"}


CALLED = """
__device__ __noinline__ int swapped(int* bits, int old, int value) { return atomicCAS(bits, old, value); }
extern "C" __global__ void greatest(int* bits) {
    for (int seen = *bits, old = -1; seen != old;) {
        old = seen;
        seen = swapped(bits, old, max(old, (int)threadIdx.x));
    }
}
extern "C" __global__ void compared_with_another(int* bits, int* out) {
    out[threadIdx.x] = *bits;
    swapped(bits, threadIdx.x, 7);
}
"""


def test_a_first_guess_for_a_swap_in_a_called_function_is_no_race():
    """The compiler does not inline the function, nor any function with -G."""
    kernels = cuda.compile(CALLED)
    bits, out = cuda.zeros(1, np.int32), cuda.zeros(32, np.int32)
    assert found(kernels["greatest"][1, 64], bits) == []
    assert bits.to_host()[0] == 63
    assert "race" in found(kernels["compared_with_another"][2, 16], bits, out)[0]
