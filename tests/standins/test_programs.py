"""Programs in C++ and Python, started by `cudart-py run`."""

import os
import re
import shlex
import shutil
import signal
import site
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cuda.pathfinder import find_nvidia_binary_utility

from cudart_py import images, standins
from cudart_py.__main__ import main
from cudart_py.pages.document import is_document
from cudart_py.standins import library
from cudart_py.standins.command.nvcc import compile_program, find_nvcc

SQUARES = """extern "C" __global__ void squares(float *numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) numbers[i] = float(i) * i;
    if (i == 0) printf("in the kernel\\n");
}"""
BEYOND = SQUARES.replace("if (i < n) ", "")
RACE = SQUARES.replace("numbers[i] =", "numbers[i / 2] =")
SCALE = """__constant__ float factor;
__device__ __managed__ int launches;
extern "C" __global__ void scale(float *numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) numbers[i] *= factor;
    if (i == 0) launches++;
}"""


@pytest.fixture(scope="module")
def driver_program(build):
    return build("driver.cpp")


def test_a_program_of_the_driver_runs_as_on_a_gpu(run, driver_program, ptx):
    """The kernel's output comes where a GPU's would, even in a pipe, and the exit status is the program's."""
    ended = run(driver_program, ptx(SQUARES), 1000)
    assert ended.stdout.split("\n") == ["before the kernel", "in the kernel", "after the kernel", "998001", ""]
    assert (ended.returncode, ended.stderr) == (3, "")


def test_an_access_out_of_bounds_is_reported_with_its_source_line(run, driver_program, ptx):
    ended = run(driver_program, ptx(BEYOND), 1000)
    assert "cuCtxSynchronize(): CUDA_ERROR_ILLEGAL_ADDRESS" in ended.stdout
    assert ended.returncode == 1
    assert "kernel.cu:4: a global write of 4 bytes" in ended.stderr


def test_a_program_with_a_static_runtime_ends_with_the_remedy(run, driver_program):
    ended = run(driver_program)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--cudart shared" in ended.stderr


@pytest.mark.parametrize(("mode", "status"), [("warn", 3), ("error", 1), ("off", 3)])
def test_a_race_is_reported_with_its_source_line(run, driver_program, ptx, mode, status):
    ended = run("--sanitizer", mode, driver_program, ptx(RACE), 1000)
    assert ended.returncode == status
    assert ("kernel.cu:4: race" in ended.stderr) == (mode != "off")


def test_a_finding_of_several_launches_is_printed_once_and_counted_at_the_end(run, driver_program, ptx):
    # Storing what is there already would be no race.
    ended = run(driver_program, ptx(RACE.replace("float(i) * i", "numbers[i / 2] * numbers[i / 2] + i")), 1000, 3)
    assert ended.returncode == 3
    found = re.findall(
        r"^cudart-py: (reported \d times in all: )?kernel squares at .*kernel.cu:4: race", ended.stderr, re.M
    )
    assert found == ["", "reported 3 times in all: "]


def test_a_profile_of_a_program_is_printed_or_written_as_a_page(run, driver_program, ptx, tmp_path):
    image = ptx(SQUARES)
    assert re.search(r"^squares +32 +32 ", run("--profile", driver_program, image, 1000).stderr, re.MULTILINE)
    page = tmp_path / "page.html"
    assert run(f"--profile={page}", driver_program, image, 1000).returncode == 3
    assert "squares" in page.read_text()


def test_a_profile_names_the_kernels_whose_launches_failed_or_says_there_are_none(run, driver_program, ptx, tmp_path):
    image, page = ptx(BEYOND), tmp_path / "page.html"
    assert re.search(r"^not counted.*: squares$", run("--profile", driver_program, image, 1000).stderr, re.MULTILINE)
    run(f"--profile={page}", driver_program, image, 1000)
    assert "not counted, because the launch failed: squares" in page.read_text()
    (tmp_path / "idle.py").write_text("from cuda.bindings import driver\ndriver.cuInit(0)\n")
    assert run("--profile", tmp_path / "idle.py").stderr.startswith("cudart-py: the program has launched no kernel")


def test_the_profile_of_a_program_that_never_calls_cuda_says_so_once(run, tmp_path):
    script = tmp_path / "script.py"
    # Its children are copies of it, and other programs.
    script.write_text(
        "import os, subprocess, sys\nif os.fork(): os.wait(), subprocess.run([sys.executable, '-c', ''])\n"
    )
    for profile in ("--profile", f"--profile={tmp_path / 'page.html'}"):
        assert run(profile, script).stderr.count("called no function of CUDA") == 1
    assert run(script).stderr == ""


def test_a_wrong_setting_of_the_simulator_ends_the_program_with_one_line(run, driver_program, ptx, tmp_path):
    (tmp_path / "program.py").write_text("from cuda.bindings import driver\nprint('first')\ndriver.cuInit(0)\n")
    for program in ([tmp_path / "program.py"], [driver_program, ptx(SQUARES), 1000]):
        ended = run(*program, CUDART_PY_SIMULATOR_ENGINE="fast", PYTHONUNBUFFERED="1")
        assert ended.stderr == "cudart-py: CUDART_PY_SIMULATOR_ENGINE='fast' is not one of auto, numpy, native\n"
        assert ended.returncode == 2
    assert run(tmp_path / "program.py", PYTHONUNBUFFERED="1").stdout == "first\n"


def test_a_program_of_the_runtime_runs_with_its_registered_device_code(run, build, fatbin, tmp_path):
    path = tmp_path / "image.fatbin"
    path.write_bytes(fatbin((images.compile_image(SCALE, arch="compute_90").ptx, "90"), compress="speed"))
    ended = run(build("runtime.cpp"), FATBIN=str(path))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "launch: cudaSuccess",
        "last: 2997, launches: 1",
        "too many threads: cudaErrorInvalidConfiguration, then cudaSuccess",
        "threads per block: 1024",
        "capability: 9.0, warp: 32",
        "format: 32 bits, kind 2",
        "device memory: 1, host memory: 1",
        "from the array: 10 47 0",
        "logged: 1, cudaSuccess, cudaSuccess",
    ]


def test_copies_between_devices_and_arrays_in_batches_and_graphs(run, build, fatbin, tmp_path):
    path = tmp_path / "image.fatbin"
    path.write_bytes(fatbin((images.compile_image(SCALE, arch="compute_90").ptx, "90"), compress="speed"))
    ended = run(build("copies.cpp"), FATBIN=str(path), CUDART_PY_SIMULATOR_DEVICES="2")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "valid devices: cudaErrorInvalidDevice cudaSuccess 1",
        "between devices: cudaSuccess, equal: 1",
        "no such device: cudaErrorInvalidDevice",
        "between arrays: 1",
        "batch: cudaSuccess, 16 8 7",
        "node: cudaSuccess, to 1, bytes 4, kind 2",
        "changed: cudaSuccess cudaSuccess",
        "seen: 0 20",
        "seen: 40 20",
        "pools: 1 cudaSuccess 1",
        "destroyed: 0, then 1",
        "last: cudaErrorInvalidDevice",
    ]


LINK = """
import numpy as np
import cudart_py as cuda

sources = [
    "__device__ float twice(float x) { return 2 * x; }",
    "__device__ float twice(float x); __global__ void all(float* x) { x[threadIdx.x] = twice(x[threadIdx.x]); }",
]
options = ["-rdc=true", "-dlto"]
x = cuda.full(32, 3, np.float32)
module = cuda.link([cuda.images.compile_image(source, arch="sm_90", options=options) for source in sources])
module["all"][1, 32](x)
print(x.to_host().sum())
"""


@pytest.mark.exhaustive  # two links take almost ten seconds
def test_link_time_code_of_unspecified_kind_is_linked(run, tmp_path):
    (tmp_path / "program.py").write_text(LINK)
    ended = run(tmp_path / "program.py")
    assert (ended.stdout, ended.stderr) == ("192.0\n", "")


@pytest.mark.parametrize("before", [[], ["--sanitizer", "off"], ["--sanitizer=off"]])
def test_a_file_for_the_profile_follows_an_equals_sign(run, tmp_path, before):
    """The text after a blank is the program, which a page must not replace."""
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.argv[1:])\n")
    ended = run(*before, "--profile", script, "--profile", "x")
    assert ended.stdout == "['--profile', 'x']\n"
    assert script.read_text().startswith("import sys")


def test_a_profile_replaces_only_a_profile(run, tmp_path):
    script, page = tmp_path / "script.py", tmp_path / "page.html"
    script.write_text("print('ran')")
    refused = run(f"--profile={script}", script)
    assert (refused.returncode, refused.stdout, script.read_text()) == (2, "", "print('ran')")
    assert [run(f"--profile={page}", script).returncode for _ in range(2)] == [0, 0]
    assert is_document(page)
    assert run(f"--profile={os.devnull}", script).returncode == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sanitizer", "off", "--sanitize-report=-"], "--sanitize-report needs the simulator's checks"),
        (["--sanitize-format", "github"], "--sanitize-format is the format of --sanitize-report"),
    ],
)
def test_options_of_a_report_that_cannot_have_an_effect_are_refused(capfd, options, message):
    assert main(["run", *options, "echo", "ran"]) == 2
    out, error = capfd.readouterr()
    assert (out, error.startswith(f"cudart-py run: {message}")) == ("", True)


@pytest.mark.parametrize("option", ["--profile", "--sanitize-report"])
def test_a_file_that_cannot_be_written_keeps_the_program_from_running(capfd, tmp_path, option):
    for place in (tmp_path / "missing" / "file", tmp_path):
        assert main(["run", f"{option}={place}", "echo", "ran"]) == 2
        out, error = capfd.readouterr()
        assert out == ""
        assert error.startswith(f"cudart-py run: '{place}' cannot be written: ")
        assert "Errno" not in error


@pytest.mark.parametrize("arguments", [["run"], ["run", "--foo", "true"], ["run", "--prof", "true"]])
def test_a_wrong_option_shows_the_usage_of_run(capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert error.startswith("usage: cudart-py run")
    assert "ARGUMENTS" not in error.splitlines()[-1]


def test_a_program_without_standard_output_runs():
    command = f"{shlex.quote(sys.executable)} -m cudart_py run sh -c 'exit 3' >&-"
    ended = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (3, "")


def test_a_module_runs_with_its_arguments(run):
    ended = run("-m", "platform", "terse")
    assert ended.returncode == 0
    assert ended.stdout.startswith("Linux")


def test_a_signal_reaches_the_program():
    process = subprocess.Popen([sys.executable, "-m", "cudart_py", "run", "-m", "http.server", "0"])
    try:
        deadline = time.monotonic() + 60
        command = Path(f"/proc/{process.pid}/cmdline")
        while command.read_bytes().split(b"\0")[2:3] != [b"http.server"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    finally:
        process.kill()


def test_a_process_that_cannot_be_started_gets_a_sentence(run, driver_program, tmp_path):
    text = tmp_path / "text"
    text.write_text("not a program")
    text.chmod(0o755)
    empty = {"CUDART_PY_CACHE": str(tmp_path / "cache")}
    cases = [
        ("there is no program 'nonsense'", run("nonsense")),
        ("does not exist", run(tmp_path / "missing.py")),
        ("cannot be executed", run(text)),
        ("CUDART_PY_CC='nonsense': there is no such program", run(driver_program, CUDART_PY_CC="nonsense", **empty)),
        ("as a C compiler: exit status 1", run(driver_program, CUDART_PY_CC="false", **empty)),
    ]
    for said, ended in cases:
        assert said in ended.stderr
        assert ended.stderr.startswith("cudart-py run: ")
        assert ended.returncode in (2, 126)
        assert ended.stdout == ""


def test_libraries_in_the_cache_need_no_compiler(run):
    run("true")
    assert run("sh", "-c", "exit 3", CUDART_PY_CC="nonsense").returncode == 3


def test_paths_with_blanks_are_no_obstacle(run, driver_program, ptx, tmp_path):
    program = tmp_path / "a program"
    shutil.copy(driver_program, program)
    cache = os.environ["CUDART_PY_CACHE"]
    if " " not in cache:  # the tests' own cache has one, whose libraries need not be built again
        cache = str(tmp_path / "a cache")
    ended = run(program, ptx(SQUARES), 1000, CUDART_PY_CACHE=cache)
    assert (ended.returncode, ended.stderr) == (3, "")
    colon = run(program, ptx(SQUARES), 1000, CUDART_PY_CACHE=str(tmp_path / "a:cache"))
    assert colon.returncode == 2
    assert "a colon" in colon.stderr


def test_a_cuda_file_is_compiled_with_nvcc_if_there_is_one(run, tmp_path):
    source = tmp_path / "program.cu"
    source.write_text(
        "#include <cstdio>\n"
        + SQUARES
        + "int main() { float *x, last; cudaMalloc(&x, 4000); squares<<<32, 32>>>(x, 1000);"
        'cudaMemcpy(&last, x + 999, 4, cudaMemcpyDeviceToHost); std::printf("%g\\n", last); return 7; }'
    )
    ended = run(source)
    if ended.returncode == 2:
        assert "no nvcc was found" in ended.stderr
        pytest.skip("there is no nvcc")
    assert (ended.returncode, ended.stdout) == (7, "in the kernel\n998001\n")


LINKER = """#!{python}
import subprocess, sys
source, target = sys.argv[-1], sys.argv[-2]
folders = [word for word in sys.argv if word.startswith("-L")]
sys.exit(subprocess.call(["cc", "-xc", source, "-o", target, *folders, "-xnone", "-lcudadevrt", "-lcudart"]))
"""


def test_the_nvcc_of_a_wheel_finds_the_libraries_beside_it(tmp_path, monkeypatch):
    """It links libcudadevrt and searches lib64, which the wheels do not have."""
    compiler, archive = tmp_path / "cu13/bin/nvcc", tmp_path / "cu13/lib/libcudadevrt.a"
    for path, text in ((compiler, LINKER.format(python=sys.executable)), (archive, "!<arch>\n")):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{compiler.parent}:{os.environ['PATH']}")
    source = tmp_path / "program.cu"
    source.write_text("int main() { return 0; }")
    assert compile_program(source, tmp_path, library.libraries()).is_file()


def test_the_nvcc_of_a_conda_environment_is_found_although_path_lacks_it(tmp_path, monkeypatch):
    compiler = tmp_path / "bin" / "nvcc"
    compiler.parent.mkdir()
    compiler.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CONDA_PREFIX", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    # A wheel's nvcc would come first.
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not Path(entry, "nvidia/cu13/bin/nvcc").exists()])
    monkeypatch.setattr(site, "getsitepackages", list)
    monkeypatch.setattr(site, "ENABLE_USER_SITE", False)
    find_nvidia_binary_utility.cache_clear()
    try:
        assert find_nvcc() == str(compiler)
    finally:
        find_nvidia_binary_utility.cache_clear()


COUNT_DEVICES = """
#include <cuda_runtime_api.h>
extern "C" int devices() { int count = -1; return cudaGetDeviceCount(&count) ? -2 : count; }
"""


def test_an_extension_module_that_brings_its_own_runtime_gets_the_stand_in(run, headers, tmp_path):
    """PyTorch's libraries find the runtime of CUDA's wheels by a path of their own, which comes before the loader's."""
    own = Path(headers).parent / "lib" / "libcudart.so.13"
    if not own.is_file():
        pytest.skip("CUDA's runtime is not installed")
    library, source, script = (tmp_path / name for name in ("devices.so", "devices.cpp", "script.py"))
    source.write_text(COUNT_DEVICES)
    paths = ["-I", headers, str(own), "-Wl,--disable-new-dtags", f"-Wl,-rpath,{own.parent}"]
    subprocess.run(["g++", "-shared", "-fPIC", str(source), *paths, "-o", str(library)], check=True, timeout=60)
    script.write_text(f"import ctypes\nprint(ctypes.CDLL({str(library)!r}).devices())\n")
    assert run(script, CUDART_PY_SIMULATOR_DEVICES="3").stdout == "3\n"


def test_a_process_that_has_lost_the_library_path_starts(run):
    assert run("env", "-u", "LD_LIBRARY_PATH", "echo", "started").stdout == "started\n"


def test_the_assembler_hands_on_ptx_and_has_a_version_of_its_own(tmp_path):
    """Triton asks the assembler for its version, by which it chooses that of the PTX and keeps compiled kernels."""
    assembler, real, source, output = (tmp_path / name for name in ("ptxas", "real/ptxas", "a b.ptx", "c d.o"))
    real.parent.mkdir()
    assembler.write_text(Path(standins.__file__).with_name("assembler.sh").read_text())
    real.write_text("#!/bin/sh\necho Cuda compilation tools, release 13.1, V13.1.80\n")
    for program in (assembler, real):
        program.chmod(0o755)
    source.write_text(".version 9.1")
    version = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=True).stdout
    assert re.search(r"release 13\.1[^\0]*simulator", version)
    options = ["-lineinfo", "-v", "--gpu-name=sm_90a"]
    subprocess.run([assembler, *options, source, "-o", output], check=True)
    assert output.read_text() == ".version 9.1"


def test_what_is_no_program_gets_a_sentence_and_a_status(capfd, run, tmp_path):
    names = ("source.cu", "folder", "32-bit", "other", "kernel.cubin")
    source, folder, short, other, cubin = (tmp_path / name for name in names)
    for path in (source, folder):
        path.mkdir()
    # The beginning of a header: its magic number, 32 bits (1) or 64 (2), and little-endian.
    short.write_bytes(b"\x7fELF\x01\x01\x01" + bytes(100))
    other.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(100))
    cubin.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + (190).to_bytes(2, "little") + bytes(100))  # EM_CUDA
    for path in (short, other, cubin):
        path.chmod(0o755)
    cases = [
        (2, "source.cu' is a folder, not a file", source),
        (2, "folder' is a folder, not a program", folder),
        (126, "32-bit' cannot be executed: it is a 32-bit program", short),
        (126, "kernel.cubin' cannot be executed: it is a GPU module", cubin),
        (126, "other' cannot be executed: Exec format error", other),
    ]
    for status, said, path in cases:
        assert main(["run", str(path)]) == status
        out, error = capfd.readouterr()
        assert out == ""
        assert error.splitlines()[-1].startswith("cudart-py run: ")
        assert said in error
    script = tmp_path / "script.py"
    script.write_text("def f(:\n")
    ended = run(script)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "SyntaxError" in ended.stderr


def test_a_static_program_runs_with_a_note(run, tmp_path):
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text("int main() { return 4; }\n")
    if subprocess.run(["gcc", "-static", source, "-o", program], capture_output=True, check=False).returncode:
        pytest.skip("there is no static library of C")
    ended = run(program)
    assert ended.returncode == 4
    assert "linked statically" in ended.stderr


def test_a_cache_that_cannot_be_used_gets_a_sentence(capfd, monkeypatch):
    homeless = {"HOME": "/proc/none", "XDG_CACHE_HOME": "", "CUDART_PY_CACHE": ""}
    places = [("/proc/none/.cache/cudart_py", homeless)]
    # The second exists, but nothing can be created in it, not even by root.
    places += [(place, {"CUDART_PY_CACHE": place}) for place in ("/proc/none", "/proc/self/fdinfo", __file__)]
    for place, environment in places:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert main(["run", "true"]) == 2
        error = capfd.readouterr().err
        assert error.startswith(f"cudart-py run: the cache folder '{place}' cannot be used: ")
        assert error.endswith("; set CUDART_PY_CACHE to another\n")
    # Without HOME, and for a user whom the system does not know, there is no place.
    monkeypatch.setattr(library.cache, "folder", lambda: "")
    with pytest.raises(library.StandInError, match="home folder is unknown: set CUDART_PY_CACHE"):
        library.libraries()


def test_libraries_and_folders_that_the_user_has_set_are_kept(run):
    mine = {"LD_LIBRARY_PATH": "/first:/second", "LD_PRELOAD": "libm.so.6"}
    set_to = dict(line.split("=", 1) for line in run("env", **mine).stdout.splitlines() if line.startswith("LD_"))
    assert set_to["LD_LIBRARY_PATH"].endswith(":/first:/second")
    assert set_to["LD_PRELOAD"].endswith(":libm.so.6")
