"""A user's script for type checkers, which is never run: it calls only public names, and its errors must be found.

mypy complains about an ignore comment that hides no error, so each wrong line below has to stay an error.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda
from cudart_py.benchmark import Measurement, measure


def right() -> tuple[float, Measurement]:
    """Use each part of the package once, in ways that a type checker accepts."""
    device = cuda.Device(0)
    with device:
        module = cuda.compile(Path("saxpy.cu"), names=["f<float>"], fast_math=True)
        saxpy = module["saxpy"]
        x = cuda.to_device(np.ones(1000, np.float32))
        y = cuda.zeros(1000, np.float32)
        stream = cuda.Stream(non_blocking=True)
        saxpy[4, 256](2.0, x, y, 1000)
        saxpy[(4, 1), 256, 0, stream](2.0, x, y, 1000)
        bound = saxpy[4, 256].bind(2.0, x, y, 1000)
        start = stream.record()
        with stream.capture() as graph:
            cuda.memcpy(y, x, stream=stream)
            with stream.while_loop(stream.condition(default=1)) as body:
                cuda.memset(x, 0.0, stream=body)
            with stream.if_else(stream.condition()) as (then, otherwise):
                cuda.memset(x, 1.0, stream=then)
                otherwise.add_graph(graph)
        graph.instantiate().launch(stream)
        with stream.access_policy(x, hit_ratio=0.5):
            bound()
        end = stream.record()
        stream.wait(end)
        end.synchronize()
        cuda.MemoryPool(device, max_size=1 << 20).make_current()
        pool = cuda.MemoryPool.current(device)
        host: NDArray[np.float32] = cuda.empty((3, 4), np.float32, pool=pool)[1:, 2].to_host()
        print(host.shape, device.properties.name, device.memory_info.free)
        return end - start, measure(lambda: saxpy[4, 256](2.0, x, y, 1000), bytes=12_000)


def wrong() -> None:
    """Misspell names and arguments, which a type checker must report."""
    cuda.Devise(0)  # type: ignore[attr-defined]  # a misspelled class
    cuda.Stream().sychronize()  # type: ignore[attr-defined]  # a misspelled method
    cuda.Stream(prioritee=1)  # type: ignore[call-arg]  # a misspelled argument
    cuda.zeros("3", np.float32, stream=3)  # type: ignore[arg-type]  # not a stream
