"""Unmodified programs of cuda.core, run by `cudart-py run`."""

SQUARES = """extern "C" __global__ void squares(float *numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) numbers[i] = float(i) * i;
    if (i == 0) printf("in the kernel\\n");
}"""
SCRIPT = """
import sys
import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.bindings import driver

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
module = Program(open(sys.argv[1]).read(), code_type="c++", options=options).compile("cubin")
numbers = device.allocate(4000, stream=stream)
launch(stream, LaunchConfig(grid=32, block=32), module.get_kernel("squares"), numbers, np.int32(1000))
device.sync()
host = np.empty(1000, np.float32)
driver.cuMemcpyDtoH(host.ctypes.data, int(numbers.handle), host.nbytes)
print(host[-1], device.compute_capability)
sys.exit(5)
"""


def test_an_unmodified_program_of_cuda_core_runs(run, tmp_path):
    """cuda.core asks NVRTC for machine code of the device that it finds, and loads it as a library."""
    (tmp_path / "program.py").write_text(SCRIPT)
    (tmp_path / "squares.cu").write_text(SQUARES)
    ended = run("--profile", tmp_path / "program.py", tmp_path / "squares.cu")
    assert ended.returncode == 5, ended.stderr
    # Nothing but the table follows, although cuda.core frees the array after Python's own end.
    assert [line.split()[0] for line in ended.stderr.split("\n") if line] == ["sectors", "kernel", "squares"]
    assert ended.stdout.splitlines() == ["in the kernel", "998001.0 ComputeCapability(major=9, minor=0)"]


GRAPH = """
import ctypes
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ManagedMemoryResource, PinnedMemoryResource, Program, ProgramOptions, launch

device = Device()
device.set_current()
stream = device.create_stream()
options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}")
source = 'extern "C" __global__ void increase(int *n, int by) { n[threadIdx.x] += by; }'
increase = Program(source, code_type="c++", options=options).compile("cubin").get_kernel("increase")
managed = ManagedMemoryResource().allocate(128, stream=stream)
pinned = PinnedMemoryResource().allocate(128, stream=stream)
stream.sync()
# NumPy 2.0 returns an array that cannot be written from DLPack.
numbers = np.ctypeslib.as_array((ctypes.c_int * 32).from_address(int(managed.handle)))
numbers[:] = range(32)
seen = []
builder = device.create_graph_builder().begin_building()
for by in (1, 10):
    launch(builder, LaunchConfig(grid=1, block=32), increase, managed, np.int32(by))
builder.callback(lambda: seen.append(int(numbers[31])))
graph = builder.end_building().complete()
del builder
for _ in range(2):
    graph.launch(stream)
stream.sync()
driver.cuMemcpyAsync(int(pinned.handle), int(managed.handle), 128, stream.handle)
stream.sync()
print(seen, numbers[0], np.from_dlpack(pinned).view(np.int32)[31])
"""


def test_graphs_with_host_functions_and_pools_of_cuda_core_run(run, tmp_path):
    """A host function belongs to a user object, and managed and pinned memory come from pools of their locations."""
    (tmp_path / "graph.py").write_text(GRAPH)
    ended = run(tmp_path / "graph.py")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "[42, 53] 22 53\n"


def test_work_that_nobody_waited_for_is_reported_once(run, tmp_path):
    (tmp_path / "program.py").write_text(SCRIPT.replace("device.sync()", "sys.exit()"))
    (tmp_path / "squares.cu").write_text(SQUARES)
    ended = run(tmp_path / "program.py", tmp_path / "squares.cu")
    assert ended.stderr.count("ended without waiting") == 1
