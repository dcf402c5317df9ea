"""Callbacks: device functions that a transform calls for each element that it loads or stores."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base import arguments
from ...base.set_once import SetOnce
from ...compilation.requests import make_request
from ...context.device import Device
from ...driver.calls import library
from ...host.files import read_file
from ...launch.kernel import Kernel
from ...launch.loading import compile, compile_image
from ...memory.array import DeviceArray
from .. import views
from ..dtypes import name_of

FOLDER = Path(__file__).parent / "device_code"
NOTHING = "__device__ int cudart_py_nothing;"
# For each dtype of elements: the type in CUDA C++, and the end of its name in cufftXtCallbackType.
_ELEMENTS = {
    np.dtype(np.float32): ("float", "REAL"),
    np.dtype(np.float64): ("double", "REAL_DOUBLE"),
    np.dtype(np.complex64): ("float2", "COMPLEX"),
    np.dtype(np.complex128): ("double2", "COMPLEX_DOUBLE"),
}


class Callback(SetOnce):
    """A device function that a transform calls for each element that it loads or stores (cufftXtSetJITCallback).

    `source` is CUDA C++, or a Path to it. `name` is the name of the function in it, which must be outside of namespaces
    and not `extern "C"`. For `load=` of a transform of complex64 elements, the function is

        __device__ float2 load(void* x, unsigned long long i, void* data, void* shared)

    and returns element `i` of the input. For `store=`, it is

        __device__ void store(void* out, unsigned long long i, float2 element, void* data, void* shared)

    and stores the element. For other dtypes, replace `float2` with `double2`, `float` or `double`. `i` is the distance
    of the element from the first one, in elements, including the gaps between rows. The parameter `data` is the address
    of the array `data`, or null. `shared` is not used. The function may be called for the elements in any order, and
    more than once for an element, so it must load or store each of them independently.

    With `fuse=True`, the kernels of the transform call the function where they can, and with `fuse=False`, a kernel
    before or after the transform does. The default is the faster of the two. The results are the same. The kernels are
    those of cuFFT or, for rows of complex64 elements and with MathDx (the extra `dx`), a kernel that uses cuFFTDx. They
    cannot be linked with a source that defines kernels, nor with two sources that define functions of the same name,
    unless those are `static`. The two callbacks of a transform may share one source.

    `include`, `define` and `options` are those of `compile`. The source is compiled when a transform first uses the
    callback. If the function has a different signature, this raises a CompileError.
    """

    def __init__(
        self,
        source: str | Path,
        name: str,
        data: DeviceArray | None = None,
        *,
        include: Sequence[str | Path] = (),
        define: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        fuse: bool | None = None,
    ) -> None:
        call = "Callback"
        self.fuse = None if fuse is None else arguments.flag(call, "fuse", fuse)
        make_request(
            call, source, names=(), arch=None, std=None, fast_math=False, include=include, headers=None, define=define,
            options=options, name=None,
        )  # fmt: skip  # grouped by meaning
        if not arguments.text(call, "name", name).isidentifier():
            raise arguments.wrong_value(call, "name", "the name of a function", name)
        if data is not None:
            arguments.opened(call, "data", data, DeviceArray)
        self.source, self.name, self.data = source, name, data
        folders = [include] if isinstance(include, str | Path) else include
        self._include, self._define, self._options = list(folders), dict(define or {}), list(options)

    def __repr__(self) -> str:
        return f"<Callback {self.name}>"

    @property
    def _program(self) -> tuple[Any, ...]:
        return self.source, self._include, self._define, self._options


def address_of(callback: Callback) -> int:
    """Return the address of the array `data` of a callback, or 0."""
    return 0 if callback.data is None else callback.data.pointer


def link_time_code(callback: Callback, device: Device, dtype: np.dtype[Any], *, loads: bool) -> bytes:
    """Return the function as link-time code for a device. Raises CompileError if it has another signature."""
    text, options = _text(callback, '#include "signature.cuh"', dtype, loads=loads)
    return _link_time_code(text, device, **options)


def _link_time_code(text: str, device: Device, *, options: Sequence[str] = (), **others: Any) -> bytes:
    options = [*options, "-rdc=true", "-dlto"]
    return compile_image(text, arch=device.compute_capability, options=options, **others).ltoir


def calling_kernel(callback: Callback, dtype: np.dtype[Any], *, loads: bool) -> Kernel:
    """Return a kernel that calls the function for each element. The device is current.

    Raises CompileError if the function has another signature.
    """
    text, options = _text(callback, (FOLDER / "callbacks.cu").read_text(), dtype, loads=loads)
    return compile(text, **options)["cudart_py_load" if loads else "cudart_py_store"]


def _text(callback: Callback, rest: str, dtype: np.dtype[Any], *, loads: bool) -> tuple[str, dict[str, Any]]:
    """Return the source of a callback followed by other code, and the options to compile the two with."""
    source = callback.source
    text = read_file(source).decode() if isinstance(source, Path) else source
    macros = {"FFT_CALLBACK": callback.name, "FFT_ELEMENT": _ELEMENTS[dtype][0], **({"FFT_LOADS": 1} if loads else {})}
    return f"{text}\n{rest}\n", {
        "name": f"callback {callback.name}",
        "include": [*([source.parent] if isinstance(source, Path) else []), *callback._include, FOLDER],
        "define": {**callback._define, **macros},
        "options": [*callback._options],
    }


class Callbacks(NamedTuple):
    """The callbacks of a transform."""

    load: Callback | None = None
    store: Callback | None = None

    def check_operands(self, call: str, device: Device) -> None:
        """Raise TypeError for anything that is neither a callback nor None, and ValueError for unusable `data`."""
        for name, callback in zip(("load", "store"), self, strict=True):
            if callback is not None:
                arguments.instance(call, name, callback, Callback, "a Callback or None")
                if callback.data is not None:
                    views.check_place(call, device, **{f"{name}.data": callback.data})

    def check(self, call: str, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> None:
        """Raise TypeError or ValueError unless the callbacks can handle elements of the dtypes of `x` and `out`."""
        for name, callback, dtype in zip(("load", "store"), self, dtypes, strict=True):
            if callback is None:
                continue
            if dtype not in _ELEMENTS:
                rule = "be None for elements in half precision, for which cuFFT has no callbacks"
                raise arguments.unusable(call, name, rule, f"{callback} for {name_of(dtype)}")

    def slow_in_cufft(self, dtypes: tuple[np.dtype[Any], np.dtype[Any]], lengths: tuple[int, ...]) -> bool:
        """Return whether a kernel that calls the callbacks before or after a transform is faster than cuFFT.

        docs/fft-callbacks.md has the figures, measured on an H200 with cuFFT 12.0, for transforms along one axis. Only
        rows of complex64 elements are ever slow in cuFFT.
        """
        if len(lengths) > 1 or dtypes[0] != np.complex64:
            return False
        (length,) = lengths
        if self.load is None:
            return dtypes[1] == np.complex64 and length > 16384
        if self.store is None:
            return length >= 256 and length != 512
        return length == 256 or length >= 4096

    @property
    def fuse(self) -> bool | None:
        """Whether the transform's kernel must call the callbacks; None stands for the faster way."""
        wishes = {callback.fuse for callback in self if callback is not None}
        return False if not wishes or False in wishes else True in wishes or None

    def link_time_codes(self, device: Device, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> list[bytes]:
        """Return the callbacks as link-time code for a device, first that of `load`."""
        codes = [
            link_time_code(callback, device, dtype, loads=callback is self.load)
            for callback, dtype in zip(self, dtypes, strict=True)
            if callback is not None
        ]
        if self._share_program():
            # The first callback's code defines both functions, and a second definition cannot be linked.
            codes[1] = _link_time_code(NOTHING, device)
        return codes

    def set(self, functions: Any, plan: int, device: Device, dtypes: tuple[np.dtype[Any], np.dtype[Any]]) -> list[Any]:
        """Let cuFFT call the callbacks in a plan that has not been made; return what must outlive the making."""
        kinds, kept = library("cufft").XtCallbackType, []
        codes = iter(self.link_time_codes(device, dtypes))
        for prefix, callback, dtype in zip(("LD", "ST"), self, dtypes, strict=True):
            if callback is not None:
                code, name = next(codes), ctypes.create_string_buffer(callback.name.encode())
                kept += [code, name]
                kind = int(kinds[f"{prefix}_{_ELEMENTS[dtype][1]}"])
                info = [address_of(callback)]
                functions.xt_set_jit_callback(plan, ctypes.addressof(name), code, len(code), kind, info)
        return kept

    def _share_program(self) -> bool:
        return self.load is not None and self.store is not None and self.load._program == self.store._program


NO_CALLBACKS = Callbacks()


def callbacks_of(load: Callback | None, store: Callback | None) -> Callbacks:
    """Return the callbacks of a transform, which mostly has none."""
    return NO_CALLBACKS if load is None and store is None else Callbacks(load, store)
