"""Transforms of rows in one kernel, with cuFFTDx, for callbacks that make cuFFT's own kernels slow.

cuFFTDx is the part of MathDx that transforms within a kernel. It is optional (the extra `dx`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ...base.pointer import Pointer
from ...compilation import cache
from ...context.device import Device
from ...launch.loading import compile_image, link
from ...memory.array import DeviceArray
from ...streams.stream import Stream
from . import layout
from .callbacks import FOLDER, Callbacks, address_of

# Otherwise, the result would have all the tables of cuFFTDx, of which a kernel uses one.
_ONLY_USED = "-optimize-unused-variables"
# For shorter rows, cuFFT is faster.
_SHORTEST = 64
# With fewer threads per row, each load covers less than 64 bytes of the row.
_FEWEST_THREADS = 8
# With more elements in each thread, a multiprocessor has too few threads to keep the memory busy. On an H200, rows of
# 1,024 elements take 283 us with 16 elements per thread, and 334 us with 32, which MathDx suggests.
_MOST_ELEMENTS = 16


class RowFunction(NamedTuple):
    """A device function of cuFFTDx: some threads of a block transform each of its rows."""

    name: str
    length: int
    threads: int  # for each row
    rows: int  # of each block
    elements: int  # that each thread keeps in registers
    stride: int  # between these, in elements of the row
    shared_bytes: int
    code: bytes  # link-time code


class RowPlan:
    """Transforms of rows of complex64 elements by one kernel, which also calls the callbacks."""

    fused = True
    rank = 1
    work_bytes = 0

    def __init__(
        self,
        device: Device,
        function: RowFunction,
        layouts: tuple[layout.Layout, layout.Layout],
        callbacks: Callbacks,
        factor: float,
    ) -> None:
        source, target = layouts
        self.device, self.callbacks = device, callbacks
        self.staging: dict[str, int] = {}
        self.in_place = source == target
        self.spans = 0, 0
        self.output: tuple[tuple[int, ...], np.dtype[Any]] = (), np.dtype(np.complex64)
        self._function = function
        # The types of the parameters are not known from linked code.
        self._distances = np.int64(source.distance), np.int64(target.distance)
        self._rows, self._factor = np.int64(source.batch), np.float32(factor)
        codes = callbacks.link_time_codes(device, (np.dtype(np.complex64), np.dtype(np.complex64)))
        kernel = compile_image(
            FOLDER / "rows.cu",
            arch=device.compute_capability,
            options=["-rdc=true", "-dlto"],
            define={
                "FFT_EXECUTE": function.name,
                "FFT_LENGTH": function.length,
                "FFT_THREADS": function.threads,
                "FFT_ROWS": function.rows,
                "FFT_ELEMENTS": function.elements,
                "FFT_STRIDE": function.stride,
                **({"FFT_LOAD": callbacks.load.name} if callbacks.load is not None else {}),
                **({"FFT_STORE": callbacks.store.name} if callbacks.store is not None else {}),
            },
        )
        self._kernel = link([kernel, *codes, function.code], options=[_ONLY_USED])["cudart_py_rows"]

    def unbind(self) -> None:
        """Do nothing: each launch is given its stream."""

    def queue(self, stream: Stream, source: int, target: int, direction: int, work: DeviceArray | None) -> None:
        """Queue the transform in a stream. Its direction is the function's, and it needs no work area."""
        function = self._function
        blocks = -(-int(self._rows) // function.rows)
        launch = self._kernel[blocks, (function.threads, function.rows), function.shared_bytes, stream]
        data = [Pointer(0) if each is None else Pointer(address_of(each), each.data) for each in self.callbacks]
        first, second = self._distances
        launch(Pointer(source), first, Pointer(target), second, self._rows, self._factor, *data)


@functools.cache
def row_function(length: int, direction: int, capability: tuple[int, int]) -> RowFunction | None:
    """Return the device function that transforms rows of complex64 elements of a length, or None if there is none.

    That is so without MathDx, for devices and lengths that it does not support, and where the kernel would be slower
    than cuFFT. The direction is cuFFT's. MathDx compiles a function in about two seconds; the compile cache keeps it.
    """
    if length < _SHORTEST:
        return None
    try:
        from nvmath.bindings import mathdx  # loads a library that is not always there

        version = mathdx.get_version()
    except Exception:  # the library or the driver was not found, or has another version than nvmath-python expects
        return None
    key = cache.make_key(["cuFFTDx", repr((version, length, direction, capability))])
    function = cache.load(key, lambda fields, codes: RowFunction(*fields, *codes))
    if function is None:
        try:
            function = _make_function(mathdx, length, direction, capability)
        except mathdx.LibMathDxError:
            return None
        if function is not None:
            *fields, code = function
            cache.store(key, fields, [code])
    return function


def _make_function(mathdx: Any, length: int, direction: int, capability: tuple[int, int]) -> RowFunction | None:
    target = 100 * capability[0] + 10 * capability[1]
    directions = mathdx.CufftdxDirection
    operators = {
        "API": mathdx.CufftdxApi.LMEM,
        "SM": target,
        "SIZE": length,
        "PRECISION": mathdx.CommondxPrecision.F32,
        "TYPE": mathdx.CufftdxType.C2C,
        "DIRECTION": directions.FORWARD if direction < 0 else directions.INVERSE,
        "EXECUTION": mathdx.CommondxExecution.BLOCK,
    }
    # MathDx takes no more operators once it has answered a question about a function.
    with _descriptor(mathdx, operators) as draft:
        most = min(_MOST_ELEMENTS, length // _FEWEST_THREADS)
        suitable = [each for each in _elements_per_thread(mathdx, draft) if each <= most]
    if not suitable:
        return None
    operators["ELEMENTS_PER_THREAD"] = max(suitable)
    with _descriptor(mathdx, operators) as draft:
        rows = _trait(mathdx, draft, "SUGGESTED_FFTS_PER_BLOCK")
    with _descriptor(mathdx, {**operators, "FFTS_PER_BLOCK": rows}) as function:
        symbol = mathdx.CufftdxTraitType.SYMBOL_NAME
        name = bytearray(mathdx.cufftdx_get_trait_str_size(function, symbol))
        mathdx.cufftdx_get_trait_str(function, symbol, len(name), name)
        threads = np.zeros(3, np.int64)
        sizes = mathdx.CufftdxTraitType.BLOCK_DIM
        mathdx.cufftdx_get_trait_int64s(function, sizes, threads.size, threads.ctypes.data)
        return RowFunction(
            name=name.rstrip(b"\0").decode(),
            length=length,
            threads=int(threads[0]),
            rows=rows,
            elements=_trait(mathdx, function, "STORAGE_SIZE"),
            stride=_trait(mathdx, function, "STRIDE"),
            shared_bytes=_trait(mathdx, function, "SHARED_MEMORY_SIZE"),
            code=_compile(mathdx, function, target),
        )


def _elements_per_thread(mathdx: Any, descriptor: int) -> list[int]:
    """Return the numbers of elements that each thread can keep."""
    knobs = [mathdx.CufftdxKnobType.ELEMENTS_PER_THREAD]
    offered = np.zeros(mathdx.cufftdx_get_knob_int64size(descriptor, 1, knobs), np.int64)
    mathdx.cufftdx_get_knob_int64s(descriptor, 1, knobs, offered.size, offered.ctypes.data)
    return [int(each) for each in offered]


@contextmanager
def _descriptor(mathdx: Any, operators: Mapping[str, int]) -> Iterator[int]:
    """Describe a function to MathDx within a block."""
    descriptor = mathdx.cufftdx_create_descriptor()
    try:
        for name, value in operators.items():
            mathdx.cufftdx_set_operator_int64(descriptor, mathdx.CufftdxOperatorType[name], int(value))
        yield descriptor
    finally:
        mathdx.cufftdx_destroy_descriptor(descriptor)


def _trait(mathdx: Any, descriptor: int, name: str) -> int:
    return int(mathdx.cufftdx_get_trait_int64(descriptor, mathdx.CufftdxTraitType[name]))


def _compile(mathdx: Any, descriptor: int, target: int) -> bytes:
    """Return the link-time code of a function that has been described."""
    code = mathdx.commondx_create_code()
    try:
        mathdx.commondx_set_code_option_int64s(code, mathdx.CommondxOption.TARGET_SM, 1, [target])
        # Without this option, it is PTX.
        mathdx.commondx_set_code_option_str(code, mathdx.CommondxOption.EXTRA_NVRTC_ARGS, "-gen-opt-lto")
        mathdx.cufftdx_finalize_code(code, descriptor)
        found = bytearray(mathdx.commondx_get_code_ltoir_size(code))
        mathdx.commondx_get_code_ltoir(code, len(found), found)
        return bytes(found)
    finally:
        mathdx.commondx_destroy_code(code)
