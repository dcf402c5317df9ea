"""Kernels of Triton: functions with `@triton.jit`, which Triton compiles to PTX and machine code, without a GPU."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

from .. import errors, graphs
from ..base import arguments
from ..base.wording import counted
from ..compilation.names.signatures import Parameter
from ..context.device import current_device
from ..launch.kernel import Kernel
from ..launch.launch import BoundLaunch, Launch
from ..memory.creation import empty
from ..streams.stream import Stream
from .loading import load_kernel
from .parameters import make_signature, pointer, scalar

__all__ = ["TritonKernel", "kernel"]
__dir__ = __all__.copy  # without private names and imports

_CALL = "interop.triton.kernel"
_MAX_WARPS = 32
_MAX_CLUSTER = 16
# A type as Triton's own compiler for the command line spells it: a pointer to const has a k, and a value that is a
# multiple of 16 has a suffix.
_TYPE = re.compile(r"(?P<pointer>\*(?P<constant>k(?=[a-z]))?)?(?P<element>\w+)(?::(?P<divisor>16))?")
# The first line of a kernel is that of its own function.
_LINE = re.compile(r"\.entry\b[^{]*\{.*?\.loc\s+(?P<file>\d+)\s", re.DOTALL)
_DTYPES = {
    "i1": "bool",
    "u1": "bool",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
}
# Types with eight bits that NumPy does not have.
_UNCHECKED = ("fp8e4nv", "fp8e4b8", "fp8e4b15", "fp8e5", "fp8e5b16")


class TritonKernel(Kernel):
    """A kernel of Triton. `kernel[grid](...)` launches it; Triton has determined the shape of its blocks.

    The brackets contain only the grid, one to three ints: `kernel[16, 4](...)` launches 16 by 4 programs. `configure`
    also takes a stream and options, and `launch` takes None as the block. The arguments are those of the Triton
    function without the constants, in order.

    `block` is the number of threads per block, `shared_bytes` the size of the dynamic shared memory per block in bytes,
    and `cluster` the number of blocks in the cluster that runs one program (`num_ctas`). `scratch_bytes` is the size of
    the global memory per block in bytes that each launch allocates, for example for tensor descriptors.
    """

    __slots__ = ("block", "cluster", "scratch_bytes", "shared_bytes")

    def __init__(self, kernel: Kernel, block: int, shared_bytes: int, cluster: int, scratch_bytes: int) -> None:
        super().__init__(kernel.module, kernel.name, kernel.handle, kernel.signature, None)
        self.block = block
        self.shared_bytes = shared_bytes
        self.cluster = cluster
        self.scratch_bytes = scratch_bytes

    def __getitem__(self, key: Any) -> Launch:
        grid = key if isinstance(key, tuple) else (key,)
        if not 1 <= len(grid) <= 3 or any(isinstance(size, tuple | Stream) or size is None for size in grid):
            raise TypeError(
                f"launch {self.name} as {self.name}[grid](...), since Triton determines the block; for a stream, write "
                f"{self.name}.configure(grid, stream=stream)(...)"
            )
        return self.configure(grid)

    def configure(
        self, grid: Any, block: Any = None, shared_bytes: int = 0, stream: Stream | None = None, **options: Any
    ) -> Launch:
        """Return a launch of this kernel with this grid; calling the result with arguments launches the kernel.

        The arguments and errors are those of `Kernel.configure`. The block and the shared memory need not be given.
        Raises ValueError for values other than Triton's.
        """
        for name, value, own in (("block", block, self.block), ("shared_bytes", shared_bytes, self.shared_bytes)):
            if value not in (None, 0, own, (own,)):
                raise arguments.unusable(self.name, name, f"be {own}, which Triton has chosen, or be left out", value)
        if self.cluster > 1:
            x, *others = grid if isinstance(grid, tuple) else (grid,)
            grid = (x * self.cluster, *others)
            options["cluster"] = self.cluster
        launch = super().configure(grid, self.block, self.shared_bytes, stream, **options)
        return _ScratchLaunch(launch, self.scratch_bytes) if self.scratch_bytes else launch


class _ScratchLaunch(Launch):
    """A launch of a kernel whose last parameter is the address of its scratch memory."""

    __slots__ = ("_nbytes",)

    def __init__(self, launch: Launch, scratch_bytes: int) -> None:
        super().__init__(launch._prepared, launch.stream)
        self._nbytes = math.prod(launch.shape.grid) * scratch_bytes

    def __call__(self, *arguments: Any, **named: Any) -> None:
        """Launch the kernel with scratch memory that exists only until it has finished, in stream order."""
        self._check_count(arguments)
        make = graphs.empty if self.stream.is_capturing else empty
        with make(self._nbytes, np.uint8, stream=self.stream) as scratch:
            super().__call__(*arguments, scratch, **named)

    def bind(self, *arguments: Any, **named: Any) -> BoundLaunch:
        """Bind the arguments, and scratch memory that all launches use, one after another."""
        self._check_count(arguments)
        return super().bind(*arguments, empty(self._nbytes, np.uint8, stream=self.stream), **named)

    def _check_count(self, given: tuple[Any, ...]) -> None:
        count = len(self.kernel.signature.parameters) - 1
        if len(given) != count:
            raise TypeError(
                f"{self.kernel.signature} takes {counted(count, 'argument')} plus scratch memory, not {len(given)}"
            )


def kernel(
    function: Any,
    signature: str | Sequence[str] | Mapping[str, str],
    constants: Mapping[str, Any] | None = None,
    *,
    num_warps: int = 4,
    num_stages: int = 3,
    num_ctas: int = 1,
    enable_fp_fusion: bool = True,
) -> TritonKernel:
    """Compile a kernel with Triton for the types in `signature`, and load it on the current device.

    - `function`: a function with `@triton.jit`. `@triton.autotune` and `@triton.heuristics` are ignored.
    - `signature`: the types of the arguments, in order, without the constants: "*fp32, *fp32, i32"; or a dict with the
      names of the parameters. `*fp32:16` and `i32:16` promise that the address or the integer is a multiple of 16,
      which Triton needs to load several elements at a time. Each launch checks this.
    - `constants`: the values of the `tl.constexpr` parameters, and of any others that are to be constant, by name.
    - `num_warps`, `num_stages`, `num_ctas`, `enable_fp_fusion`: Triton's options.

    The kernel takes a `DeviceArray` for each pointer, and Python or NumPy numbers, with the checks of any launch:
    `kernel[grid](x, y, n)`. Reports and profiles show lines of the Python source.

    Needs no GPU. Raises ModuleNotFoundError if Triton is not installed. Raises TypeError or ValueError for a signature
    that does not match the function. Raises NotSupportedError for parameters that are tensor descriptors; a kernel can
    make them itself, with `tl.make_tensor_descriptor`. Errors in the function raise Triton's own exceptions.
    """
    triton = _import_triton()
    jitted = function
    while not isinstance(jitted, triton.JITFunction) and hasattr(jitted, "fn"):
        jitted = jitted.fn
    if not isinstance(jitted, triton.JITFunction):
        raise arguments.wrong_type(_CALL, "function", "a function with @triton.jit", function)
    values = _constants(jitted, constants)
    types = _types(jitted, signature, values)
    parameters = [_parameter(name, type) for name, type in types.items()]
    positions = {name: position for position, name in enumerate(jitted.arg_names)}
    source = triton.compiler.ASTSource(
        jitted,
        {name: types[name].partition(":")[0] if name in types else "constexpr" for name in jitted.arg_names},
        constexprs={(positions[name],): value for name, value in values.items()},
        attrs={
            (positions[name],): [["tt.divisibility", parameter.divisor]]
            for name, parameter in zip(types, parameters, strict=True)
            if parameter.divisor > 1
        },
    )
    major, minor = current_device().compute_capability
    compiled = triton.compile(
        source,
        target=triton.backends.compiler.GPUTarget("cuda", 10 * major + minor, 32),
        options={
            "num_warps": arguments.integer(_CALL, "num_warps", num_warps, 1, _MAX_WARPS),
            "num_stages": arguments.integer(_CALL, "num_stages", num_stages, 1),
            "num_ctas": arguments.integer(_CALL, "num_ctas", num_ctas, 1, _MAX_CLUSTER),
            "enable_fp_fusion": arguments.flag(_CALL, "enable_fp_fusion", enable_fp_fusion),
        },
    )
    metadata = compiled.metadata
    if metadata.profile_scratch_size:
        raise errors.NotSupportedError(f"{_CALL}: {metadata.name} was compiled for Triton's profiler; switch it off")
    if metadata.global_scratch_size:
        parameters.append(pointer("scratch memory", "uint8", divisor=metadata.global_scratch_align))
    ptx = _with_file_of(jitted.fn.__code__, compiled.asm["ptx"])
    declared = make_signature(_CALL, "Triton", ptx, jitted.__name__, parameters)
    loaded = load_kernel(_CALL, ptx, compiled.asm["cubin"], declared, jitted.fn.__code__)
    block = metadata.warp_size * metadata.num_warps
    return TritonKernel(loaded, block, metadata.shared, metadata.num_ctas, metadata.global_scratch_size)


def _import_triton() -> Any:
    """Import Triton when it is needed; it need not be installed, and takes long to import."""
    try:
        import triton  # as the docstring says
        import triton.backends.compiler  # as above
        import triton.compiler  # as above
    except ImportError as error:
        raise ModuleNotFoundError(
            f"{_CALL} needs Triton, which cannot be imported ({error}): pip install triton"
        ) from error
    return triton


def _constants(function: Any, constants: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a function's constants by name, including the defaults of those that are not given."""
    given = dict(arguments.instance(_CALL, "constants", {} if constants is None else constants, Mapping))
    for name in given:
        if name not in function.arg_names:
            rule = f"have names of parameters of {function.__name__} ({', '.join(function.arg_names)})"
            raise arguments.unusable(_CALL, "constants", rule, repr(name))
    for parameter in function.params:
        if parameter.is_constexpr and parameter.name not in given:
            if not parameter.has_default:
                rule = f"have a value for {parameter.name!r}, a tl.constexpr parameter of {function.__name__}"
                raise arguments.unusable(_CALL, "constants", rule, repr(given))
            given[parameter.name] = parameter.default
    return given


def _types(function: Any, signature: Any, constants: Mapping[str, Any]) -> dict[str, str]:
    """Return the type of each parameter that is not constant, by name, in the order of the parameters."""
    names = [name for name in function.arg_names if name not in constants]
    arguments.instance(_CALL, "signature", signature, (str, Sequence, Mapping), "a str, a sequence or a dict")
    if isinstance(signature, Mapping):
        if set(signature) != set(names):
            rule = f"have a type for each of {', '.join(names)}, and for no constant"
            raise arguments.unusable(_CALL, "signature", rule, repr(dict(signature)))
        types = [signature[name] for name in names]
    else:
        types = [type for type in signature.split(",") if type] if isinstance(signature, str) else list(signature)
        if len(types) != len(names):
            rule = f"have {len(names)} types, for {', '.join(names)}"
            raise arguments.unusable(_CALL, "signature", rule, f"{len(types)} in {signature!r}")
    return {name: arguments.text(_CALL, "signature", type).strip() for name, type in zip(names, types, strict=True)}


def _parameter(name: str, type: str) -> Parameter:
    """Return the parameter for a Triton type, without its offset."""
    match = _TYPE.fullmatch(type)
    if match is None or (match["element"] not in _DTYPES and match["element"] not in _UNCHECKED):
        raise errors.NotSupportedError(
            f"{_CALL}: parameter {name!r} has type {type!r}; kernels take pointers, such as '*fp32', and numbers, such "
            "as 'i32'"
        )
    divisor = int(match["divisor"] or 1)
    dtype = _DTYPES.get(match["element"])
    if match["pointer"]:
        return pointer(type, dtype, constant=bool(match["constant"]), divisor=divisor)
    if dtype is None or (divisor > 1 and "int" not in dtype):
        raise arguments.unusable(_CALL, "signature", f"have a number of another type for {name!r}", repr(type))
    return scalar(type, dtype, divisor=divisor)


def _with_file_of(code: CodeType, ptx: str) -> str:
    """Name a function's file in the line information of its kernel.

    Triton's cache does not distinguish files. The kernel may come from a copy of the function in another file.
    """
    first = _LINE.search(ptx)
    if first is None:
        return ptx
    path = os.path.abspath(code.co_filename).replace("\\", r"\\").replace('"', r"\"")
    file = re.compile(rf'(?m)^(\s*\.file\s+{first["file"]}\s+)"[^"\n]*"')
    return file.sub(lambda found: f'{found[1]}"{path}"', ptx)
