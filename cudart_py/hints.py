"""Hints for people who type a name from CuPy, numba, PyCUDA, PyTorch or NumPy: what to write here instead.

`HINTS` has, for each thing that is asked for such a name, the name, the packages that have it, and what to write. The
pages in docs/coming-from have a row for each name of a package that has a page, with the same text.
"""

from __future__ import annotations

import re
import sys
from inspect import getattr_static
from typing import NoReturn, TypeVar

T = TypeVar("T")

# The submodules that `import cudart_py` brings, some of whose names are looked for at the top level.
_SUBMODULES = ("errors", "graphs", "images", "ipc", "profiling", "textures")
_KERNEL = "write the kernel, or, on a GPU, give the array to CuPy"

# Whose names they are: c of CuPy, n of numba.cuda, p of PyCUDA, t of PyTorch, y of NumPy.
HINTS: dict[str, dict[str, tuple[str, str]]] = {
    "module": {
        "array": ("cty", "cuda.to_device(host)"),
        "asarray": ("cty", "cuda.to_device(host)"),
        "tensor": ("t", "cuda.to_device(host)"),
        "asnumpy": ("c", "x.to_host()"),
        "to_host": ("", "x.to_host()"),
        "checks": ("", 'cuda.sanitizer("error")'),
        "graph_empty": ("", "cuda.graphs.empty(n, np.float32, stream=stream)"),
        "ipc_empty": ("", "cuda.ipc.empty(n, np.float32)"),
        "ipc_handle": ("", "cuda.ipc.handle(x)"),
        "mem_get_info": ("", "cuda.current_device().memory_info"),
        "ones": ("cty", "cuda.full(n, 1.0)"),
        "device_array": ("n", "cuda.empty(n, np.float32)"),
        "device_array_like": ("n", "cuda.empty_like(x)"),
        "mem_alloc": ("", "cuda.empty(nbytes, np.uint8)"),
        "pinned_array": ("n", "cuda.pinned_empty(n, np.float32)"),
        "mapped_array": ("n", "cuda.pinned_empty(n, np.float32, mapped=True)"),
        "managed_array": ("n", "cuda.managed_empty(n, np.float32)"),
        "pagelocked_empty": ("p", "cuda.pinned_empty(n, np.float32)"),
        "memcpy_htod": ("p", "x.copy_from(host)"),
        "memcpy_dtoh": ("p", "x.to_host(out=host)"),
        "memcpy_dtod": ("p", "cuda.memcpy(y, x)"),
        "synchronize": ("nt", "cuda.current_device().synchronize()"),
        "select_device": ("n", "cuda.Device(0).set_current()"),
        "get_current_device": ("n", "cuda.current_device()"),
        "stream": ("n", "cuda.Stream()"),
        "event": ("n", "cuda.Event()"),
        "default_stream": ("nt", "cuda.legacy_default"),
        "external_stream": ("n", "cuda.Stream.borrow(stream.handle)"),
        "event_elapsed_time": ("n", "end - start"),
        "get_elapsed_time": ("c", "end - start"),
        "as_cuda_array": ("n", "cuda.as_device_array(x)"),
        "RawModule": ("c", "cuda.compile(source)"),
        "RawKernel": ("c", 'cuda.compile(source)["saxpy"]'),
        "SourceModule": ("p", "cuda.compile(source)"),
        "jit": ("n", "cuda.compile(source)"),
        "is_available": ("nt", "len(cuda.devices())"),
    },
    "DeviceArray": {
        "get": ("cp", "x.to_host()"),
        "cpu": ("t", "x.to_host()"),
        "numpy": ("t", "x.to_host()"),
        "copy_to_host": ("n", "x.to_host()"),
        "tolist": ("cty", "x.to_host().tolist()"),
        "set": ("c", "x.copy_from(host)"),
        "copy_to_device": ("n", "x.copy_from(host)"),
        "data": ("c", "x.pointer"),
        "gpudata": ("p", "x.pointer"),
        "data_ptr": ("t", "x.pointer"),
        "clone": ("t", "x.copy()"),
        "contiguous": ("t", "x.copy()"),
        "numel": ("t", "x.size"),
        "flatten": ("cty", "x.reshape(-1)"),
        "ravel": ("cy", "x.reshape(-1)"),
        "transpose": ("cty", "x.T"),
        "free": ("", "x.close()"),
        **dict.fromkeys(("argmax", "argmin", "astype", "dot", "max", "mean", "min", "sum"), ("cty", _KERNEL)),
    },
    "Kernel": {
        "forall": ("n", "saxpy[-(-n // 256), 256](2.0, x, y, n)"),
        "num_regs": ("cp", "saxpy.attributes.registers"),
        "prepare": ("p", "step = saxpy[4, 256].bind(2.0, x, y, n)"),
    },
    "Stream": {
        "use": ("c", "saxpy[4, 256, 0, stream](2.0, x, y, n)"),
        "wait_event": ("ct", "stream.wait(event)"),
        "wait_for_event": ("p", "stream.wait(event)"),
        "wait_stream": ("t", "stream.wait(other)"),
        "query": ("t", "stream.done"),
        "is_done": ("p", "stream.done"),
        "add_callback": ("n", "stream.launch_host_function(lambda: None)"),
        "launch_host_func": ("c", "stream.launch_host_function(lambda: None)"),
        "auto_synchronize": ("n", "stream.synchronize()"),
    },
    "Event": {
        "elapsed_time": ("t", "end - start"),
        "time_since": ("p", "end - start"),
        "time_till": ("p", "end - start"),
        "query": ("pt", "event.done"),
    },
}


class _Hint:
    """An attribute that is not there: who asks for it gets an AttributeError with what to write.

    A `__getattr__` of the class would answer as well, and would slow every attribute that is there.
    """

    def __init__(self, kind: str, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, thing: object, kind: type) -> NoReturn:
        raise _missing(self._kind, self._name, f"{self._kind!r} object")


def _missing(kind: str, name: str, what: str) -> AttributeError:
    """Return the error that `what`, an object of a kind, has no such attribute, with the hint if there is one."""
    text = HINTS[kind][name][1] if name in HINTS[kind] else ""
    hint = text if text in ("", _KERNEL) else f"write {text}"
    return AttributeError(f"{what} has no attribute {name!r}{hint and f': {hint}'}")


def hinted(cls: type[T]) -> type[T]:
    """Let a class, which `HINTS` names, answer the names that people bring with what to write."""
    names = HINTS[cls.__name__]
    for name in names:
        setattr(cls, name, _Hint(cls.__name__, name))

    def listed(self: T) -> list[str]:
        return [name for name in object.__dir__(self) if not isinstance(getattr_static(self, name, None), _Hint)]

    cls.__dir__ = listed  # type: ignore[assignment]  # of the class that it is defined for
    return cls


def absent(name: str) -> NoReturn:
    """Raise AttributeError for a name that the package does not have, as its `__getattr__`.

    A name of one of its submodules, or of CUDA's runtime or driver, is answered as well.
    """
    what = f"module {__package__!r}"
    for submodule in _SUBMODULES:
        if name in sys.modules[f"{__package__}.{submodule}"].__all__:
            raise AttributeError(f"{what} has no attribute {name!r}: write cuda.{submodule}.{name}")
    if re.match("cuda[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: docs/names.md says what is written for it here")
    if re.match("cu[A-Z]", name):
        raise AttributeError(f"{what} has no attribute {name!r}: write cuda.raw.{name}, or see docs/names.md")
    raise _missing("module", name, what)


def public_names() -> list[str]:
    """Return the package's public names and the public submodules that are imported, as its `__dir__`."""
    package = sys.modules[__package__]
    return [*package.__all__, *(name for name in ("benchmark", "libraries") if name in vars(package))]
