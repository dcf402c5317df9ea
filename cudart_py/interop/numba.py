"""Kernels of Numba: Python functions that numba-cuda compiles to PTX, without a GPU."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np

from .. import errors
from ..base import arguments
from ..compilation.linking.definitions import LINK_TIME_CODE
from ..compilation.linking.linking import link_images
from ..compilation.names.signatures import Parameter
from ..context.device import current_device
from ..driver import backend
from ..launch.kernel import Kernel
from ..launch.loading import compile_image
from .loading import load_kernel
from .parameters import make_signature, scalar

__all__ = ["kernel"]
__dir__ = __all__.copy  # without private names and imports

_CALL = "interop.numba.kernel"
_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_EXTERNAL = re.compile(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?([\w$]+)")
# An array is two null pointers, the number of elements, the size of an element and the address, followed by the shape
# and the strides. Each of these has eight bytes.
_ARRAY_FIELDS = 5
# Otherwise, the result would have all the tables of a library, such as cuFFTDx, of which a kernel uses one.
_ONLY_USED = "-optimize-unused-variables"
_patched = threading.Lock()


def kernel(
    function: Any,
    signature: Any,
    *,
    fastmath: bool | None = None,
    opt: bool | None = None,
    launch_bounds: int | tuple[int, ...] | None = None,
) -> Kernel:
    """Compile a kernel with numba-cuda for the types in `signature`, and load it on the current device.

    - `function`: a Python function, with or without `@cuda.jit`.
    - `signature`: the types of the arguments, as in `@cuda.jit`: a str such as "void(float32, float32[:])", a signature
      or a tuple of types. `float32[:]` accepts any strides, and `float32[::1]` is faster, but needs a contiguous array.
    - `fastmath`, `opt`, `launch_bounds`: Numba's options, by default those of `@cuda.jit`. Its other options have no
      effect; in particular, `debug=True` does not raise the exceptions of a kernel.

    The kernel takes a `DeviceArray` for each array, and Python or NumPy numbers, with the checks of any launch. Its
    dynamic shared memory and stream are in the order of this package: `kernel[grid, block, shared_bytes, stream]`.
    Reports and profiles show lines of the Python source, except for those of device functions that were declared
    without `lineinfo=True`.

    The kernel is linked with the code of the device functions that it calls (`cuda.declare_device(..., link=...)`),
    including the functions of `nvmath.device`. If that is link-time code, the kernel is compiled to link-time code too,
    so that the functions can be inlined.

    Needs no GPU. Raises ModuleNotFoundError if numba-cuda is not installed. Raises NotSupportedError for types of
    arguments other than arrays and numbers, for a kernel with `@cuda.jit(link=...)`, and while Numba's own simulator is
    enabled. Errors in the function raise Numba's own exceptions.
    """
    target = _import_numba()
    options = {
        **getattr(function, "targetoptions", {}),
        **({} if fastmath is None else {"fastmath": arguments.flag(_CALL, "fastmath", fastmath)}),
        **({} if opt is None else {"opt": arguments.flag(_CALL, "opt", opt)}),
        **({} if launch_bounds is None else {"launch_bounds": _launch_bounds(launch_bounds)}),
    }
    python = getattr(function, "py_func", function)
    arguments.instance(_CALL, "function", python, FunctionType, "a Python function, or one with @cuda.jit")
    if options.get("link"):
        raise errors.NotSupportedError(f"{_CALL}: {python.__name__} is linked with other code (link=...)")
    types = _types_of(signature)
    parameters = [_parameter(python.__name__, position, type) for position, type in enumerate(types)]
    capability = current_device().compute_capability
    with _compute_capability(capability):
        codes = _compile(target, python, types, options, capability, "ptx")
        # The linker inlines only link-time code, and generates PTX from nothing else.
        late = any(code.startswith(LINK_TIME_CODE) for code in codes)
        if late:
            codes = _compile(target, python, types, options, capability, "ltoir")
    if late:
        ptx, cubin = _link_late(codes, python.__name__, capability)
    else:
        ptx, cubin = _link(codes, python.__name__, capability, target)
    declared = make_signature(_CALL, "numba-cuda", ptx, python.__name__, parameters)
    return load_kernel(_CALL, ptx, cubin, declared, python.__code__)


def _compile(
    target: Any, python: Any, types: Sequence[Any], options: dict[str, Any], capability: tuple[int, int], output: str
) -> list[bytes]:
    """Return the code of a kernel, followed by that of the functions with which it must be linked.

    `output` is "ptx" or "ltoir". Code that was given to Numba compiled remains in its own form.
    """
    codes, _ = target.compile_all(
        python,
        tuple(types),
        device=False,
        abi="numba",
        lineinfo=output == "ptx",  # nvJitLink rejects it together with that of other link-time code
        debug=False,  # otherwise, an environment variable decides
        cc=capability,
        fastmath=options.get("fastmath", False),
        opt=options.get("opt", True),
        launch_bounds=options.get("launch_bounds"),
        output=output,
    )
    # Code is text, bytes, an ObjectCode of cuda.core, or an object of Numba with `data`.
    plain = [getattr(code, "code", getattr(code, "data", code)) for code in codes]
    return [code.encode() if isinstance(code, str) else bytes(code) for code in plain]


def _link(codes: Sequence[bytes], name: str, capability: tuple[int, int], target: Any) -> tuple[str, bytes]:
    """Return the PTX and, where something was linked, the machine code of a kernel in PTX with its functions."""
    ptx = _with_plain_name(codes[0].decode(), name)
    sources = _device_code(ptx, target)
    # A driver rejects PTX that is newer than itself, but nvJitLink is as new as the toolkit that generated the PTX.
    if not sources and not codes[1:] and backend.chosen().image_kind != "cubin":
        return ptx, b""
    others = [compile_image(source, arch=capability, options=["-rdc=true"]) for source in sources]
    linked = link_images([ptx.encode(), *codes[1:], *others], arch=capability, options=["-lineinfo"])
    return linked.ptx.decode() or ptx, linked.cubin


def _link_late(codes: Sequence[bytes], name: str, capability: tuple[int, int]) -> tuple[str, bytes]:
    """Return the PTX and the machine code of a kernel and its functions in link-time code.

    The kernel keeps its mangled name.
    """
    linked = link_images(codes, arch=capability, options=[_ONLY_USED])
    if not linked.ptx:
        raise errors.NotSupportedError(f"{_CALL}: {name} is linked with link-time code and with code of another kind")
    return linked.ptx.decode(), linked.cubin


def _launch_bounds(bounds: Any) -> tuple[int, ...]:
    """Check `launch_bounds`: the threads per block, the blocks per multiprocessor, and the blocks per cluster."""
    values = bounds if isinstance(bounds, tuple) else (bounds,)
    if not 1 <= len(values) <= 3:
        raise arguments.wrong_value(_CALL, "launch_bounds", "an int or one to three ints", bounds)
    return tuple(arguments.integer(_CALL, "launch_bounds", value, 1) for value in values)


def _import_numba() -> Any:
    """Import Numba's CUDA target, which takes a second, when it is needed; it need not be installed."""
    try:
        import numba_cuda  # noqa: F401  # numba alone has an older CUDA target
        from numba import config, cuda  # as the docstring says
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{_CALL} needs numba-cuda, which cannot be imported ({error}): pip install 'numba-cuda[cu13]'"
        ) from error
    if config.ENABLE_CUDASIM:
        raise errors.NotSupportedError(
            f"{_CALL}: Numba compiles no kernels while its own simulator is enabled: unset NUMBA_ENABLE_CUDASIM"
        )
    return cuda


@contextmanager
def _compute_capability(capability: tuple[int, int]) -> Iterator[None]:
    """Make Numba, and nvmath.device, compile the functions that a kernel calls for a compute capability.

    Numba takes that of the kernel as an argument, but for other functions both ask the driver, which needs a GPU.
    """
    from numba.cuda import dispatcher  # imported late, as above

    with _patched, ExitStack() as stack:
        device = SimpleNamespace(compute_capability=capability)
        stack.enter_context(_replaced(dispatcher, "get_current_device", lambda: device))
        # A kernel that calls functions of nvmath.device was defined after its import.
        common = sys.modules.get("nvmath.device.common_cuda")
        if common is not None:
            asked = common.ComputeCapability(*capability)
            stack.enter_context(_replaced(common, "get_current_device_cc", lambda: asked))
        yield


@contextmanager
def _replaced(module: Any, name: str, function: Callable[[], Any]) -> Iterator[None]:
    original = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, original)


def _types_of(signature: Any) -> Sequence[Any]:
    """Return the Numba types of a kernel's arguments."""
    from numba.cuda.core import sigutils  # imported late, as above

    try:
        types, result = sigutils.normalize_signature(signature)
    except Exception as error:
        # Numba evaluates a str, which may raise anything.
        raise arguments.unusable(
            _CALL, "signature", 'be a Numba signature, such as "void(float32[:], int32)"', repr(signature)
        ) from error
    if result is not None and str(result) != "none":
        raise arguments.unusable(_CALL, "signature", "return void", str(result))
    return tuple(types)


def _parameter(name: str, position: int, type: Any) -> Parameter:
    """Return the parameter for a Numba type, without its offset."""
    from numba.cuda import types  # imported late, as above

    if isinstance(type, types.Array):
        return _array(type)
    if isinstance(type, types.Complex):
        size = np.dtype(str(type)).itemsize
        return Parameter(str(type), "structure", size, size // 2, 0)
    if isinstance(type, types.Boolean | types.Integer | types.Float):
        return scalar(str(type), _dtype_of(type) or "")
    raise errors.NotSupportedError(
        f"{_CALL}: argument {position} of {name} has type {type}; kernels take arrays, numbers and complex numbers"
    )


def _array(type: Any) -> Parameter:
    element = str(type.dtype)
    dimensions: int = type.ndim
    axes = [":"] * dimensions
    if dimensions and type.layout != "A":
        axes[-1 if type.layout == "C" else 0] = "::1"
    return Parameter(
        f"{element}[{', '.join(axes)}]",
        "array",
        8 * (_ARRAY_FIELDS + 2 * dimensions),
        8,
        0,
        dtype=_dtype_of(type.dtype),
        element=element,
        constant=not type.mutable,
        dimensions=dimensions,
        layout=type.layout,
    )


def _dtype_of(type: Any) -> str | None:
    """Return the name of the dtype of a scalar type; None for a structure, whose fields are not checked."""
    from numba.cuda.np import numpy_support  # imported late, as above

    dtype: np.dtype[Any] = numpy_support.as_dtype(type)
    return dtype.name if dtype.names is None else None


def _device_code(ptx: str, target: Any) -> list[Path]:
    """Return the sources of the functions that a kernel declares, but Numba's compiler leaves to its linker."""
    reshape = Path(target.__file__).with_name("reshape_funcs.cu")
    barrier = Path(__file__).parent / "device_code" / "grid_barrier.cu"
    defined = {"nocopy_empty_reshape": reshape, "numba_attempt_nocopy_reshape": reshape, "cudaCGSynchronize": barrier}
    return sorted({defined[name] for name in _EXTERNAL.findall(ptx) if name in defined})


def _with_plain_name(ptx: str, name: str) -> str:
    """Replace the kernel's mangled name, which contains Numba's options, by the name of the function."""
    entry = _ENTRY.search(ptx)
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return ptx if entry is None else ptx.replace(entry[1], plain)
