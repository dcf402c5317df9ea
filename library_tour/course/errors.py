"""Make common mistakes, and show the exception that each one raises and the status that the driver returns.

On the simulator, which checks results but does not measure time:

    $ library-tour run errors
    errors: Common mistakes, their errors, and the launch at fault
                           exception            status                      check
    ───────────────────────────────────────────────────────────────────────────────
    null store             IllegalAddressError  CUDA_ERROR_ILLEGAL_ADDRESS  caught
    null store, debug()    IllegalAddressError  CUDA_ERROR_ILLEGAL_ADDRESS  caught
    invalid configuration  ValueError           CUDA_ERROR_INVALID_VALUE    refused
    failed allocation      OutOfMemoryError     CUDA_ERROR_OUT_OF_MEMORY    refused
    double free            ValueError           CUDA_ERROR_INVALID_VALUE    caught
    kernel assert          KernelAssertError    CUDA_ERROR_ASSERT           caught
    too many parameters    CompileError         NVRTC_ERROR_COMPILATION     refused
    uninitialised pointer  IllegalAddressError  CUDA_ERROR_ILLEGAL_ADDRESS  caught
    host pointer           TypeError            CUDA_ERROR_ILLEGAL_ADDRESS  caught
    uninitialised memory   SimulatorWarning     CUDA_SUCCESS                caught
    null store: IllegalAddressError: cuMemcpyDtoHAsync: an illegal memory access was encountered
    (CUDA_ERROR_ILLEGAL_ADDRESS)
    kernel store at kernels/errors.cu:27: a global write of 4 bytes at 0x0 is out of
    bounds: the null pointer; block (0, 0, 0), thread (0, 0, 0), instruction
    'st.global.f32 [%rd2], %f1'
        27 | *where = value;
    cuCtxSynchronize returns CUDA_ERROR_ILLEGAL_ADDRESS; cuda.check raises
    IllegalAddressError. The next call's error:
    cuCtxSynchronize: an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)
    Launches since the last successful synchronisation, newest first (set
    CUDART_PY_DEBUG=1 to find the one that failed):
      fill[grid (1, 1, 1), block (32, 1, 1)] on the legacy default stream
      store[grid (1, 1, 1), block (1, 1, 1)] on the legacy default stream
      fill[grid (1, 1, 1), block (32, 1, 1)] on the legacy default stream
    The context was lost by an earlier error (kernel store at kernels/errors.cu:27:
    a global write of 4 bytes at 0x0 is out of bounds: the null pointer; block (0,
    0, 0), thread (0, 0, 0)): every later call fails too; start a new process, or
    call cuda.reset().
    null store, debug(): IllegalAddressError: cuStreamSynchronize: an illegal memory access was encountered
    (CUDA_ERROR_ILLEGAL_ADDRESS). It was store[grid (1, 1, 1), block (1, 1, 1)] on
    the legacy default stream, launched at library_tour/course/errors.py:228
    kernel store at kernels/errors.cu:27: a global write of 4 bytes at 0x0 is out of
    bounds: the null pointer; block (0, 0, 0), thread (0, 0, 0), instruction
    'st.global.f32 [%rd2], %f1'
        27 | *where = value;
    cuCtxSynchronize returns CUDA_ERROR_ILLEGAL_ADDRESS; cuda.check raises
    IllegalAddressError.
    invalid configuration: ValueError: empty_kernel: argument 'block.x' must be an
    int from 1 to 1024, not the int 2048
    cuLaunchKernel returns CUDA_ERROR_INVALID_VALUE; cuda.check raises
    InvalidValueError.
    failed allocation: OutOfMemoryError: cuMemAllocAsync: 1,125,899,906,842,624
    bytes of device memory were requested; 17,179,867,648 of 17,179,869,184 are free
    (CUDA_ERROR_OUT_OF_MEMORY)
    cuMemAlloc returns CUDA_ERROR_OUT_OF_MEMORY; cuda.check raises OutOfMemoryError.
    double free: ValueError: this DeviceArray is closed; keep it, or the module
    that owns it, open until its last use
    The second cuMemFree returns CUDA_ERROR_INVALID_VALUE; cuda.check raises
    InvalidValueError. A second close() does nothing.
    kernel assert: KernelAssertError: cuCtxSynchronize: device-side assert triggered (CUDA_ERROR_ASSERT)
    kernel require_positive at kernels/errors.cu:34: assertion `x[i] > 0.0f` failed
    (kernels/errors.cu:34: void require_positive(const float *, int)); block (0, 0,
    0), thread (2, 0, 0), instruction 'call.uni __assertfail, ( param0, param1,
    param2, param3, param4 )'
        34 | assert(x[i] > 0.0f);
    cuCtxSynchronize returns CUDA_ERROR_ASSERT; cuda.check raises KernelAssertError.
    too many parameters: CompileError: kernels/errors.cu does not compile
    kernels/errors.cu(51): Error: Formal parameter space overflowed (32768 bytes
    required, max 32764 bytes allowed) in function
    _Z9sum_bytesILi32768EEv5BytesIXmiT_Li8EEEPj
      51 | __global__ void sum_bytes(Bytes<bytes - 8> given, unsigned* sum)
    nvrtcCompileProgram returns NVRTC_ERROR_COMPILATION; cuda.check raises
    NvrtcError.
    uninitialised pointer: IllegalAddressError: cuCtxSynchronize: an illegal memory access was encountered
    (CUDA_ERROR_ILLEGAL_ADDRESS)
    kernel store at kernels/errors.cu:27: a global write of 4 bytes at
    0xcdcdcdcdcdcdcdc0 is out of bounds: an invalid address, or host memory that is
    neither pinned, managed nor registered; block (0, 0, 0), thread (0, 0, 0),
    instruction 'st.global.f32 [%rd2], %f1'
        27 | *where = value;
    cuCtxSynchronize returns CUDA_ERROR_ILLEGAL_ADDRESS; cuda.check raises
    IllegalAddressError.
    host pointer: TypeError: argument 0 of store (float*) takes a device pointer,
    not a host array of dtype float32 and shape (8,); copy it with
    cudart_py.to_device
    As a bare address: IllegalAddressError: cuCtxSynchronize: an illegal memory access was encountered
    (CUDA_ERROR_ILLEGAL_ADDRESS)
    kernel store at kernels/errors.cu:27: a global write of 4 bytes at
    0x7f… is out of bounds: an invalid address, or host memory that is neither
    pinned, managed nor registered; block (0, 0, 0), thread (0, 0, 0), instruction
    'st.global.f32 [%rd2], %f1'
        27 | *where = value;
    cuCtxSynchronize returns CUDA_ERROR_ILLEGAL_ADDRESS; cuda.check raises
    IllegalAddressError.
    uninitialised memory: SimulatorWarning: kernel copy at kernels/errors.cu:41:
    uninitialised value reaches a store: it was read at kernels/errors.cu:41 from
    global memory at 0x7f… (0 bytes into the 32-byte allocation at
    0x7f…, allocated at library_tour/course/errors.py:281), where nothing
    has been written; block (0, 0, 0), thread (0, 0, 0), instruction 'st.global.f32
    [%rd7], %f1'
        41 | to[i] = from[i];
    cuCtxSynchronize returns CUDA_SUCCESS; cuda.check raises nothing.
    Bytes of parameters
                  check
    ───────────────────
    4,096 bytes   right
    32,760 bytes  right
    Every call in this package raises an exception if its status is not success, so
    no error is overlooked. A C program must check the status of every call, and
    must call cudaGetLastError() after every launch. cuda.check turns the status of
    a raw call into an exception.
    A launch returns before its kernel runs. If the kernel fails, a later call
    raises the error: at the latest, the next call that waits. The context is then
    lost. On a GPU you need a new process, and on the simulator a call to
    cuda.reset(). The simulator reports the kernel and the line. A GPU reports
    neither, so the first error there lists the launches since the last
    synchronisation. Here, the next call's error lists them. With cuda.debug() or
    CUDART_PY_DEBUG=1, the host waits after each launch, so the error identifies the
    kernel and the line of the host program that launched it.
    Mistakes that make a context unusable, or that only the simulator detects, are
    made in separate processes on the simulator. A GPU that can access the host's
    pageable memory, as in a Grace Hopper system, accepts a host pointer.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import numpy as np
from cuda.bindings import nvrtc

import cudart_py as cuda

from ..checks import compare, poisoned
from ..counters import counted
from ..device_code import find, load
from ..stop import Check, Result, Row
from ..wrong import all_shown_wrong

TITLE = "Common mistakes, their errors, and the launch at fault"
SIZE = None
COUNT = 8
TOO_LARGE = 2**50  # bytes, more than any device has
# Bytes of parameters: the limit before compute capability 7.0, almost the limit since, and more than that.
PARAMETERS, TOO_MANY = (4096, 32760), 32768
INSTANCES = tuple(f"sum_bytes<{nbytes}>" for nbytes in PARAMETERS)


def run(device: cuda.Device, size: int) -> Result:
    """Make every mistake through this package and through the driver's own call, in another process if it is fatal."""
    apart = {name: mistake.program for name, mistake in MISTAKES.items() if mistake.apart}
    # The report, or the output of a process that failed in another way.
    reports = {row.name: row.note or (row.check.detail if row.check else "") for row in all_shown_wrong(apart)}
    rows = [judged(name, each, reports[name] if each.apart else each.program()) for name, each in MISTAKES.items()]
    sound = compare("the device still works after refused calls", filled(COUNT), np.full(COUNT, 3, np.float32))
    notes = [
        "Every call in this package raises an exception if its status is not success, so no error is overlooked. A C "
        "program must check the status of every call, and must call cudaGetLastError() after every launch. cuda.check "
        "turns the status of a raw call into an exception.",
        "A launch returns before its kernel runs. If the kernel fails, a later call raises the error: at the latest, "
        "the next call that waits. The context is then lost. On a GPU you need a new process, and on the simulator a "
        "call to cuda.reset(). The simulator reports the kernel and the line. A GPU reports neither, so the first "
        "error there lists the launches since the last synchronisation. Here, the next call's error lists them. With "
        "cuda.debug() or CUDART_PY_DEBUG=1, the host waits after each launch, so the error identifies the kernel and "
        "the line of the host program that launched it.",
        "Mistakes that make a context unusable, or that only the simulator detects, are made in separate processes on "
        "the simulator. A GPU that can access the host's pageable memory, as in a Grace Hopper system, accepts a host "
        "pointer.",
    ]
    tables = {"Bytes of parameters": [parameters(nbytes) for nbytes in PARAMETERS]}
    return Result(rows, checks=[sound], notes=notes, tables=tables)


class Mistake(NamedTuple):
    """A function that makes a mistake and returns a report, with the exception and the status that it must name.

    `apart` marks mistakes that end the context, or that only the simulator detects.
    """

    program: Callable[[], str]
    exception: str
    status: str
    apart: bool = True


def judged(name: str, mistake: Mistake, report: str) -> Row:
    """Return a mistake's row; its check holds if the report names the expected exception and status."""
    holds = report.startswith(f"{mistake.exception}: ") and f"returns {mistake.status}" in report
    check = Check(f"{name} raises {mistake.exception}", holds, report, "caught" if mistake.apart else "refused")
    return Row(name, {"exception": mistake.exception, "status": mistake.status}, check, note=report)


def load_all() -> cuda.Module:
    """Compile all kernels of this stop."""
    return load("errors", names=INSTANCES)


def error_of(action: Callable[[], object]) -> Exception | None:
    """Return the exception that an action raises, or None."""
    try:
        action()
    except Exception as error:  # its type becomes part of a report
        return error
    return None


def told(error: Exception | None, call: str, raw: tuple[Any, ...]) -> str:
    """Return an exception's text, the status of the named raw call, and the exception that cuda.check raises for it."""
    raised = error_of(lambda: cuda.check(raw))
    made = f"cuda.check raises {type(raised).__name__}" if raised else "cuda.check raises nothing"
    lines = [f"{type(error).__name__}: {error}", f"{call} returns {raw[0].name}; {made}."]
    return "\n".join(lines).replace("\n\n", "\n")


def fault(launch: Callable[[], object]) -> str:
    """Launch, wait, and report the error; the context is lost, so the raw call fails too."""
    launch()
    error = error_of(cuda.current_device().synchronize)
    return told(error, "cuCtxSynchronize", cuda.raw.cuCtxSynchronize())


def launch_three(x: cuda.DeviceArray) -> None:
    """Launch three kernels; the second one stores to the null pointer."""
    module = load_all()
    module["fill"][1, 32](x, COUNT, 1.0)
    module["store"][1, 1](None, 2.0)
    module["fill"][1, 32](x, COUNT, 3.0)


def null_store() -> str:
    """Store to the null pointer between other launches; report the errors of the next copy and of the call after it."""
    x = cuda.empty(COUNT, np.float32)
    launch_three(x)
    first, second = error_of(x.to_host), error_of(cuda.current_device().synchronize)
    return f"{told(first, 'cuCtxSynchronize', cuda.raw.cuCtxSynchronize())} The next call's error:\n{second}"


def null_store_in_debug_mode() -> str:
    """Do the same in debug mode, which waits after each launch, so that the failing launch itself raises the error."""
    x = cuda.empty(COUNT, np.float32)
    with cuda.debug():
        error = error_of(lambda: launch_three(x))
    return told(error, "cuCtxSynchronize", cuda.raw.cuCtxSynchronize())


def uninitialised_pointer() -> str:
    """Store to a made-up address, like one that an uninitialised C pointer might contain."""
    return fault(load_all()["store"][1, 1].bind(cuda.Pointer(0xCDCDCDCDCDCDCDC0), 1.0))


def host_pointer() -> str:
    """Pass a host array to a kernel, which is refused, and then its bare address, which is accepted."""
    store, host = load_all()["store"][1, 1], np.zeros(COUNT, np.float32)
    refused = error_of(lambda: store(host, 1.0))
    as_address = fault(store.bind(cuda.Pointer(host.ctypes.data), 1.0))
    return f"{type(refused).__name__}: {refused}\nAs a bare address: {as_address}"


def kernel_assert() -> str:
    """Run a kernel whose assertion fails in one thread."""
    x = cuda.to_device(np.array([1, 2, -3], np.float32))
    with redirect_stdout(io.StringIO()):  # the driver prints the assertion too
        return fault(load_all()["require_positive"][1, 32].bind(x, x.size))


def double_free() -> str:
    """Close an array twice, which is allowed, and use it; then free memory twice with the raw call."""
    array = cuda.zeros(COUNT, np.float32)
    array.close()
    array.close()
    error = error_of(array.to_host)
    address = cuda.check(cuda.raw.cuMemAlloc(1000))
    cuda.check(cuda.raw.cuMemFree(address))
    return f"{told(error, 'The second cuMemFree', cuda.raw.cuMemFree(address))} A second close() does nothing."


def uninitialised_memory() -> str:
    """Copy memory that was never written, with the sanitizer's warning as an error; no CUDA call fails."""
    read, written = (cuda.empty(COUNT, np.float32) for _ in range(2))
    copy = load_all()["copy"][1, 32].bind(read, written, COUNT)
    with cuda.sanitizer("error"):
        copy()
        error = error_of(cuda.current_device().synchronize)
    return told(error, "cuCtxSynchronize", cuda.raw.cuCtxSynchronize())


def invalid_configuration() -> str:
    """Request a block of 2,048 threads."""
    empty = load_all()["empty_kernel"]
    error = error_of(lambda: empty[1, 2048])
    launched = cuda.raw.cuLaunchKernel(empty.handle, 1, 1, 1, 2048, 1, 1, 0, 0, 0, 0)
    return told(error, "cuLaunchKernel", launched)


def failed_allocation() -> str:
    """Request more memory than the device has."""
    error = error_of(lambda: cuda.empty(TOO_LARGE, np.uint8))
    return told(error, "cuMemAlloc", cuda.raw.cuMemAlloc(TOO_LARGE))


def too_many_parameters() -> str:
    """Compile a kernel with more bytes of parameters than allowed, which NVRTC refuses."""
    path, name = find("errors"), f"sum_bytes<{TOO_MANY}>"
    error = error_of(lambda: load("errors", names=[name]))
    program = cuda.check(nvrtc.nvrtcCreateProgram(path.read_bytes(), path.name.encode(), 0, [], []))
    cuda.check(nvrtc.nvrtcAddNameExpression(program, name.encode()))
    result = nvrtc.nvrtcCompileProgram(program, 0, [])
    cuda.check(nvrtc.nvrtcDestroyProgram(program))
    return told(error, "nvrtcCompileProgram", result).replace(
        f"{path.parent.parent}{os.sep}", ""
    )  # the reader's folders have different names


# Keyed by the names of their rows.
MISTAKES = {
    "null store": Mistake(null_store, "IllegalAddressError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "null store, debug()": Mistake(null_store_in_debug_mode, "IllegalAddressError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "invalid configuration": Mistake(invalid_configuration, "ValueError", "CUDA_ERROR_INVALID_VALUE", apart=False),
    "failed allocation": Mistake(failed_allocation, "OutOfMemoryError", "CUDA_ERROR_OUT_OF_MEMORY", apart=False),
    "double free": Mistake(double_free, "ValueError", "CUDA_ERROR_INVALID_VALUE"),
    "kernel assert": Mistake(kernel_assert, "KernelAssertError", "CUDA_ERROR_ASSERT"),
    "too many parameters": Mistake(too_many_parameters, "CompileError", "NVRTC_ERROR_COMPILATION", apart=False),
    "uninitialised pointer": Mistake(uninitialised_pointer, "IllegalAddressError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "host pointer": Mistake(host_pointer, "TypeError", "CUDA_ERROR_ILLEGAL_ADDRESS"),
    "uninitialised memory": Mistake(uninitialised_memory, "SimulatorWarning", "CUDA_SUCCESS"),
}


def filled(count: int) -> Any:
    """Return an array that a kernel has filled."""
    x = poisoned(count, np.float32)
    load_all()["fill"][1, 32](x, count, 3.0)
    return x.to_host()


def parameters(nbytes: int) -> Row:
    """Pass a structure by value, with `nbytes` bytes of parameters in total, and compare the sum of its bytes."""
    given = np.random.default_rng().integers(0, 256, nbytes - 8, np.uint8)
    structure = given.view([("values", np.uint8, given.size)])[0]
    total = poisoned(1, np.uint32)
    metrics = counted(load_all()[f"sum_bytes<{nbytes}>"][1, 1].bind(structure, total))
    check = compare(f"{nbytes} bytes arrive", total.to_host(), given.sum(dtype=np.uint32, keepdims=True))
    return Row(f"{nbytes:,} bytes", check=check, metrics=metrics)
