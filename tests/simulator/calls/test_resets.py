"""A reset leaves no unused bytes and objects in the simulator itself."""

import pytest

pytestmark = pytest.mark.needs("reset")

# The driver's state belongs to the process, so all checks run in one program.
PROGRAM = """
import gc
import numpy as np
import cudart_py as cuda
from cudart_py.memory import staging
from cudart_py.simulator import driver
from cudart_py.simulator.calls.streams.events import events
from cudart_py.simulator.calls.graphs.execution.executables import executables
from cudart_py.simulator.calls.modules.modules import modules
from cudart_py.simulator.state import memory
from cudart_py.simulator.state.devices import state
from cudart_py.simulator.state.memory import pools, table
from cudart_py.simulator.state.queue.graphs import graphs, nodes
from cudart_py.simulator.state.streams import streams

stream, event, pool, x = cuda.Stream(), cuda.Event(), cuda.MemoryPool(), cuda.zeros((64, 64), np.float32)
module = cuda.compile('extern "C" __global__ void nothing() {} __device__ int variable;')
texture = cuda.textures.Texture(x)
with stream.capture() as graph:
    with cuda.graphs.empty(9, stream=stream) as scratch:
        module["nothing"][1, 1, 0, stream]()
        cuda.memset(scratch, 0.0, stream=stream)
executable = graph.instantiate()
executable.launch(stream)
pitched, pinned = cuda.empty_pitched((4, 4)), cuda.pinned_empty(4)
cuda.reset()
gc.collect()
tables = streams, events, modules, graphs, nodes, executables, memory.known.starts, memory.live.starts, pools.pools
print(*map(len, tables), state.devices[0].used)

staging._processors = lambda: 4
cuda.to_device(np.zeros(2 << 20))  # large enough to be staged
pinned, managed = cuda.pinned_empty(1 << 20), cuda.managed_empty(1 << 20)
view = pinned[5:]
del pinned
cuda.reset()
gc.collect()
print(len(table._kept), end=" ")
del managed
gc.collect()
print(len(table._kept), end=" ")
view[:] = 1
print(view.sum() == (1 << 20) - 5, end=" ")
del view
gc.collect()
print(len(table._kept))

module = cuda.compile('extern "C" __global__ void wild() { *(int *)8 = 1; }')
pinned = cuda.pinned_empty(1 << 20)
module["wild"][1, 1]()
try:
    cuda.current_device().synchronize()
except cuda.errors.IllegalAddressError:
    pass
opened = len(memory.space.region._opened)
del pinned
cuda.reset()
print(len(table._kept), len(memory.space.region._opened) < opened)

context = int(cuda.Device(0).context)
for _ in range(3):
    driver.cuDevicePrimaryCtxRetain(0)
cuda.reset()
print(*(driver.cuDevicePrimaryCtxRelease(0)[0].name for _ in range(3)), end=" ")
print(int(cuda.Device(0).context) == context, cuda.zeros(3).to_host().sum(), end=" ")
print(*(driver.cuDevicePrimaryCtxRelease(0)[0].name for _ in range(2)))
"""


def test_a_reset_leaves_nothing_behind_that_nobody_uses(python):
    done = python(PROGRAM, CUDART_PY_DRIVER="simulator")
    objects, host_memory, after_a_fault, contexts = done.stdout.splitlines()
    # The one remaining pool is the device's own, whose release threshold was set again.
    assert objects == "0 0 0 0 0 0 0 0 1 0"
    # Host memory is freed together with the last array that uses it.
    assert host_memory == "2 1 True 0"
    assert after_a_fault == "0 True"
    # Contexts keep their handles and reference counts.
    success = "CUDA_SUCCESS"
    assert contexts.split() == [*[success] * 3, "True", "0.0", success, "CUDA_ERROR_INVALID_CONTEXT"]
