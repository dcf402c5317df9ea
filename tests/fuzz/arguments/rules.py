"""Allowed outcomes of calls with bad arguments: accepted values, errors, and the names that errors must contain."""

import re
from collections.abc import Mapping

import cudart_py as cuda

from .bad_values import BAD
from .targets import Target, keys_of

INTEGERS = ("0", "1", "int8", "0-d int array", "2**40", "-1", "2**63")
FLOATS = ("1.5", "-0.5", "float32", "tiny float64", "nan", "inf", "1e+300")
NUMBERS = (*INTEGERS, "2**64", "10**400", *FLOATS, "True", "np.True_")
HUGE = ("2**64", "10**400", "10**5000")
ARRAYS = ("complex array", "0-d array", "0-d int array", "reversed", "read-only", "structured", "empty array")
DEVICE_ARRAYS = ("device array", "strided device array", "array of the last device", "empty device array")
REGISTERED = ("complex array", "0-d array", "0-d int array", "structured", "other endian")
SEQUENCES = ("[]", "()", "(1, 2)", "(-1, 2)", "(1,) * 70", "range(0, 3)")
TEXTS = ("''", "'x'", "NUL", "surrogate", "b'ab'", "bytearray(b'ab')")
LIKE_ARRAYS = (*NUMBERS, *ARRAYS, *TEXTS, *SEQUENCES, "(1+2j)", "datetime64", "empty device array")
# Calls that take the arguments of a kernel.
LAUNCHES = ("BoundLaunch", "Kernel.launch", "Launch.__call__", "Launch.bind")
# The values that launches accept as the shape of a grid, a block or a cluster.
SHAPE = ("1", "int8", "0-d int array", "(1, 2)", "None")
# Values accepted because of a word in the annotation. On a machine with one GPU the last device is the current one.
BY_ANNOTATION: Mapping[str, tuple[str, ...]] = {
    "bool": ("True", "np.True_"),
    "int": INTEGERS,
    "float": NUMBERS,
    "Scalar": (*NUMBERS, "(1+2j)"),
    "Shape": ("0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)", "2**40"),
    "Axes": ("-1", "0", "1", "None"),
    "ArrayLike": LIKE_ARRAYS,
    "DTypeLike": ("'x'", "dtype", "('a', None)"),
    "Device": ("device", "last device"),
    "Location": ("device", "last device"),
    "Stream": ("stream", "stream of the last device"),
    "Event": ("event",),
    "MemoryPool": ("pool of the last device",),
    "DeviceArray|Filled": ("array of the last device",),
    "Callable|Works?": ("lambda", "class"),
}
# Further accepted values, by call and parameter or by parameter: first those that several have.
_SAME: Mapping[tuple[str, ...], str] = {
    ("()", "[]"): "after libraries names options debugger.commands",
    ("()", "[]", "{}"): "operations accessible_to arrays pairs",
    DEVICE_ARRAYS: "memset.dst NodeFill.dst as_device_array.x Callback.data from_dlpack.x indices",
    SHAPE: "grid block cluster",
    HUGE: "preview.count max_samples min_samples",
    ("'x'", "''"): "name domain color",
    ("(1, 2)",): "split.counts memcpy2d.shape empty_aux.shape strides dst_start src_start",
    REGISTERED: "register_host.array RegisteredMemory.array",
    tuple(BAD): "owner Module.__contains__.name",
    (*ARRAYS, *DEVICE_ARRAYS, "closed array", "vast array"): "empty_like.other zeros_like.other",
    ("None", "stream", "stream of the last device"): "Kernel.__getitem__.stream Kernel.launch.stream",
}
ACCEPTED: Mapping[str, tuple[str, ...]] = {
    **{name: values for values, names in _SAME.items() for name in names.split()},
    "reshape.shape": ("-1", "(-1, 2)"),
    "transpose.axes": ("()",),
    **{f"TensorMap.{name}": ("0",) for name in ("swizzle", "l2_promotion")},  # none
    **{f"{call}.array": ("0-d int array",) for call in ("WaitValue", "WriteValue")},  # refused when it is queued
    "from_image.image": ("b'ab'", "bytearray(b'ab')"),  # refused when it is loaded
    "__setitem__.value": (*NUMBERS, "range(0, 3)", "0-d array", "0-d int array", "empty device array"),
    "LazyModule.std": ("0", "1"),  # NVRTC refuses them later, when the module is compiled
    "compute_capability": ("(1, 2)",),  # of GPUs from 2008
    "dimensions": ("0-d int array",),
    **{f"{name}.x": ("empty device array",) for name in ("asum", "nrm2", "scal")},
    "append.values": ("empty device array",),
    "debugger.breakpoints": ("'x'", "()"),  # a function that may still be compiled
    **{f"Generator.{name}.out": ("empty device array",) for name in ("uniform", "normal", "log_normal", "exponential")},
    **{f"{name}.x": ("strided device array",) for name in ("fft", "ifft", "rfft")},  # cuFFT takes strides
    "value": (*NUMBERS, "0-d array"),
    "full.value": LIKE_ARRAYS,
    "dst": ("strided device array", "empty device array", "array of the last device"),
    "memcpy2d.src": (*DEVICE_ARRAYS, "empty array"),
    "src": ("strided device array", "array of the last device"),
    "copy_from.source": ("reversed", "read-only", "strided device array", "array of the last device"),
    "pointer_attributes.x": (*INTEGERS, *ARRAYS, *DEVICE_ARRAYS, "object array", "other endian", "vast array"),
    "array": ("device array", "empty device array", "array of the last device"),
    "thing": ("empty device array",),
    "key": ("0", "1", "-1", "int8", "0-d int array", "()", "Ellipsis", "(-1, 2)", "(1, 2)", "slice(None, None, -1)"),
    "Stream.borrow.stream": ("0", "1", "stream", "stream of the last device"),
    "start": ("event", "empty array"),
    "shared_bytes": ("lambda", "0", "1", "int8", "0-d int array"),
    **{f"{call}.{array}": ("None", *DEVICE_ARRAYS[1:]) for call in LAUNCHES for array in "xy"},
    **{f"{call}.a": NUMBERS for call in LAUNCHES},
    **{f"{call}.n": (*INTEGERS, "True", "np.True_") for call in LAUNCHES},
    "source": ("'x'", "''", "b'ab'"),
    "trace": ("'x'",),
    "include": ("()", "[]", "''"),  # the current folder
    "headers": ("{}",),
    "define": ("{}",),
}
# Errors of these kinds are clear without the name of the argument.
MAY_RAISE: Mapping[type[BaseException], tuple[str, ...]] = {
    cuda.OutOfMemoryError: (
        *("shape", "row_shape", "size", "host", "empty_like.other", "zeros_like.other", "length", "max_size"),
    ),
    cuda.errors.CaptureError: (
        *("graphs.empty.shape", "graphs.empty.dtype", "graphs.empty.stream", "default", "switch.count"),
    ),
    cuda.errors.NotFoundError: ("name",),
    cuda.CompileError: ("source", "options", "names"),
    cuda.errors.LinkError: ("images", "options"),
    cuda.errors.ImageError: ("image",),
    cuda.errors.InvalidValueError: ("array", "pointer_attributes.x"),
    OSError: ("source", "image", "images"),
    IndexError: ("key",),
    MemoryError: ("host", "to_bfloat16.x", "to_float8.x"),  # NumPy's
    # In order: the node of another graph, memory that no launch has allocated, a closed array, and NumPy, whose arrays
    # subtract from any object.
    ValueError: (
        *("ExecutableGraph.set_enabled.enabled", "NodeAllocation.free.stream", "from_dlpack.x", "start"),
        *(f"{call}.{name}" for call in ("irfft", "irfft.plan") for name in ("axes", "axis")),  # the length does not fit
        "to_float8.x",  # NumPy's, for an array that is too large
        "gemm_gradient.a",  # of another shape, which 'aux' does not fit
        "TensorMap.array",  # of another number of axes, which 'box' does not fit
    ),
}
# Errors that a call raises even with good arguments if a library, a device or a tool is missing.
MISSING = (cuda.errors.NotSupportedError, cuda.errors.LinkError, cuda.errors.PeerAccessError)
# Errors may name a launch by the kernel's name or signature instead of the method.
LAUNCH = r"touch_nothing|argument \d+ of touch_nothing|void touch_nothing"
# Patterns for arguments that errors name in another form than 'NAME' or NAME=VALUE.
WORDS: Mapping[str, str] = {
    "dtype": r"\bdtype\b",
    "key": r"'index(\[\d+\])?'",
    "self": r"closed|is known only",
    "shared_bytes": r"'shared_bytes'",
}


def accepts(target: Target, slot: str, label: str) -> bool:
    """Check whether a call may succeed with this value in this place."""
    if slot == "self" or target.name == "DeviceArray.close":  # a second close does nothing
        return True
    listed = next((ACCEPTED[key] for key in keys_of(target.name, slot) if key in ACCEPTED), ())
    annotation = next(str(parameter.annotation) for parameter in target.parameters if parameter.name == slot)
    if label == "None" and ("None" in annotation or "Any" in annotation.split("[")[0] or "object" in annotation):
        return True
    by_word = (labels for word, labels in BY_ANNOTATION.items() if re.search(rf"\b({word})\b", annotation))
    return label in listed or any(label in labels for labels in by_word)


def called(target: Target) -> str:
    """Return a pattern for the names by which an error may refer to a call.

    Indexing and assigning to an attribute are named by the class alone.
    """
    owner, _, method = target.name.rpartition(".")
    own = owner if method.endswith(" =") or method.startswith("__") else target.name
    return f"{re.escape(own)}|{LAUNCH}" if owner in ("Kernel", "Launch") or own == "BoundLaunch" else re.escape(own)


def names(target: Target, slot: str, error: Exception) -> bool:
    """Check whether an error names an argument; the value assigned to an attribute goes by the attribute's name."""
    if target.name.endswith(" =") and slot != "self":
        slot = target.name.removesuffix(" =").rpartition(".")[2]
    word = rf"['\"]{slot}(?!\w)|\b{slot}="
    if isinstance(error, cuda.CudaError):  # in the words of the driver or a library
        word = rf"(?i)\b{slot}\b"
    elif target.name in LAUNCHES:
        word += r"|argument \d+ of|arguments\[\d+\]|takes \d+ arguments"
    return re.search(WORDS.get(slot, word), str(error)) is not None


def judge(target: Target, chosen: Mapping[str, str], error: Exception) -> str:
    """Return the kind of finding that an error is, or "" if the error is allowed.

    A TypeError or ValueError must begin with the call and name an argument, as those of `cudart_py.base.arguments` do.
    """
    if isinstance(error, cuda.errors.KernelFaultError):
        return "lost"
    keys = {key for slot in chosen for key in keys_of(target.name, slot)}
    allowed = tuple(kind for kind, listed in MAY_RAISE.items() if keys & {*listed})
    if isinstance(error, allowed):
        return ""
    if not isinstance(error, TypeError | ValueError | cuda.CudaError) or type(error) is cuda.CudaError:
        return "inscrutable"
    begins = re.match(rf"({called(target)})(: |\b)", str(error)) is not None
    is_known = begins or isinstance(error, cuda.CudaError) or bool({"self", "start"} & {*chosen})
    return "" if is_known and any(names(target, slot, error) for slot in chosen) else "inscrutable"
