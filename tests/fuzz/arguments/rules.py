"""What may become of a call with a bad argument: which values it takes, what it raises, and how that names it."""

from __future__ import annotations

from collections.abc import Mapping

import cudart_py as cuda

from .bad_values import BAD

__all__ = ["ACCEPTED", "ADDRESSES", "INTEGERS", "LIKE_ADDRESSES", "MAY_RAISE", "MISSING", "NUMBERS", "WORDS"]

INTEGERS = ("0", "1", "int8", "0-d int array", "2**40", "-1", "2**63")
NUMBERS = (*INTEGERS, "2**64", "10**400", "1.5", "-0.5", "float32", "nan", "inf", "1e300", "True", "np.True_")
ARRAYS = ("complex array", "0-d array", "0-d int array", "reversed", "read-only", "structured", "empty array")
DEVICE_ARRAYS = ("device array", "strided device array", "array of the last device")
SEQUENCES = ("[]", "()", "(1, 2)", "(-1, 2)", "(1,) * 70", "range")
TEXTS = ("''", "'x'", "NUL", "surrogate", "bytes", "bytearray")
# What is taken besides what the annotation says, by call and parameter or by the parameter.
ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "managed_empty.shape": ("0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)", "2**40"),
    "DeviceArray.reshape.shape": ("-1", "(-1, 2)", "0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)"),
    # NVRTC refuses them when it compiles.
    "LazyModule.std": ("0", "1"),
    "Program.arch": ("(1, 2)",),
    "shape": ("0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)"),
    "strides": ("(1, 2)",),
    "dimensions": ("0-d int array",),
    "axes": ("-1", "0", "1", "None"),
    # On a machine with one GPU the last device is the current one.
    "gemm.a": ("array of the last device",),
    "gemm_epilogue.a": ("array of the last device",),
    "gemv.a": ("array of the last device",),
    "scal.x": ("array of the last device", "empty device array"),
    "sparse_from_dense.a": ("array of the last device",),
    "spmm.out": ("array of the last device",),
    "svd.a": ("array of the last device",),
    "rfft.x": ("array of the last device", "strided device array"),  # cuFFT takes strides
    "dtype": ("'x'", "dtype", "('a', None)"),
    "DeviceArray.borrow.shape": ("0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)", "2**40"),
    "value": (*NUMBERS, "0-d array"),
    "full.value": (*NUMBERS, *ARRAYS, *TEXTS, "1+2j", "datetime64"),
    "memset.dst": (*DEVICE_ARRAYS, "empty device array"),
    "dst": ("strided device array", "empty device array", "array of the last device"),
    "DeviceArray.copy_from.source": ("reversed", "read-only", "strided device array", "array of the last device"),
    "CudaArray.copy_from.source": ("reversed", "read-only", "array of the last device"),
    "as_device_array.x": (*DEVICE_ARRAYS, "empty device array"),
    "memcpy2d.src": (*DEVICE_ARRAYS, "empty array"),
    "memcpy2d.src_start": ("(1, 2)",),
    "memcpy2d.dst_start": ("(1, 2)",),
    "pinned_empty.shape": ("0", "1", "int8", "0-d int array", "[]", "()", "(1, 2)", "2**40"),
    "src": ("strided device array", "array of the last device"),
    "pool": ("pool of the last device",),
    "host": (*NUMBERS, *ARRAYS, *TEXTS, *SEQUENCES, "1+2j", "datetime64"),
    "to_bfloat16.x": (
        "empty device array",
        *NUMBERS,
        *ARRAYS,
        "bytearray",
        "[]",
        "()",
        "(1, 2)",
        "(-1, 2)",
        "(1,) * 70",
        "range",
    ),
    "empty_like.other": (*ARRAYS, *DEVICE_ARRAYS, "empty device array", "closed array", "vast array"),
    "zeros_like.other": (*ARRAYS, *DEVICE_ARRAYS, "empty device array", "closed array", "vast array"),
    "owner": tuple(BAD),
    "key": ("0", "1", "-1", "int8", "0-d int array", "()", "...", "(-1, 2)", "(1, 2)"),
    "from_dlpack.x": (*DEVICE_ARRAYS, "empty device array"),
    "pointer_attributes.x": (*INTEGERS, *ARRAYS, *DEVICE_ARRAYS, "object array", "other endian", "vast array"),
    "register_host.array": ("complex array", "0-d array", "0-d int array", "structured", "other endian"),
    "RegisteredMemory.array": ("complex array", "0-d array", "0-d int array", "structured", "other endian"),
    "Stream.borrow.stream": ("0", "1", "stream", "stream of the last device"),
    "Stream.wait.other": ("stream", "stream of the last device", "event"),
    "Stream.record.event": ("event",),
    "event": ("event",),
    "start": ("event", "empty array"),
    "stream": ("stream", "stream of the last device"),
    "device": ("device", "last device"),
    "other": ("device", "last device"),
    "location": ("device", "last device"),
    "fn": ("lambda", "class"),
    "function": ("lambda", "class"),
    "shared_bytes": ("lambda", "0", "1", "int8", "0-d int array"),
    "NodeFill.dst": DEVICE_ARRAYS,
    "DeviceArray.preview.count": ("2**64", "10**400", "10**5000"),
    "max_samples": ("2**64", "10**400", "10**5000"),
    "min_samples": ("2**64", "10**400", "10**5000"),
    "array": ("device array", "empty device array", "array of the last device"),
    "thing": ("empty device array",),
    "Launch.__call__.x": ("empty device array", "strided device array", "array of the last device"),
    "Launch.__call__.y": ("empty device array", "strided device array", "array of the last device"),
    "Launch.__call__.n": ("True", "np.True_"),
    "Launch.bind.x": ("empty device array", "strided device array", "array of the last device"),
    "Launch.bind.y": ("empty device array", "strided device array", "array of the last device"),
    "Launch.bind.n": ("True", "np.True_"),
    "grid": ("1", "int8", "0-d int array", "(1, 2)"),
    "block": ("1", "int8", "0-d int array", "(1, 2)"),
    "cluster": ("1", "int8", "0-d int array", "(1, 2)", "None"),
    "name": ("'x'", "''"),
    "Module.__contains__.name": tuple(BAD),
    "domain": ("'x'", "''"),
    "color": ("'x'", "''"),
    "address": (),
    "a": ("float32", "1.5", "inf", "nan"),
    "compute_capability": ("(1, 2)",),  # of cards of 2008
    "include": ("()", "[]", "''"),  # the current folder
    "names": ("()", "[]"),
    "options": ("()", "[]"),
    "define": ("{}", "None"),
    "source": ("'x'", "''", "bytes"),
    "pointer": (*INTEGERS,),
    "indices": ("device array", "empty device array", "strided device array"),
    "seed": INTEGERS,
    "offset": INTEGERS,
}
# An error of these kinds says what it is about without the argument's name.
MAY_RAISE: Mapping[str, tuple[type[BaseException], ...]] = {
    "shape": (cuda.OutOfMemoryError,),
    "graph_empty.shape": (cuda.CaptureError,),
    "graph_empty.dtype": (cuda.CaptureError,),
    "graph_empty.stream": (cuda.CaptureError,),
    "Stream.condition.default": (cuda.CaptureError,),
    "Stream.switch.count": (cuda.CaptureError,),
    "ExecutableGraph.set_enabled.enabled": (ValueError,),  # the node is one of another graph
    "host": (cuda.OutOfMemoryError,),
    "empty_like.other": (cuda.OutOfMemoryError,),
    "zeros_like.other": (cuda.OutOfMemoryError,),
    "length": (cuda.OutOfMemoryError,),
    "name": (cuda.NotFoundError,),
    "source": (cuda.CompileError, OSError),
    "image": (cuda.ImageError, OSError),
    "images": (cuda.LinkError, OSError),
    "options": (cuda.CompileError, cuda.LinkError),
    "names": (cuda.CompileError,),
    "key": (IndexError,),
    "max_size": (cuda.OutOfMemoryError,),
    "from_dlpack.x": (ValueError,),  # of the closed array itself
    "to_bfloat16.x": (MemoryError,),
    "start": (ValueError,),  # NumPy's, whose arrays subtract from anything
    "array": (cuda.InvalidValueError,),
    "pointer_attributes.x": (cuda.InvalidValueError,),
}
# What a call raises with good arguments too, where a library, a device or a tool is missing.
MISSING = (cuda.NotSupportedError, cuda.LinkError, cuda.PeerAccessError)
# How an error calls an argument that has no name of its own.
WORDS: Mapping[str, str] = {
    "key": r"index|indices|axis|step|Ellipsis",
    "arguments": r"argument",
    "argument": r"argument \d+ of|arguments\[\d+\]|arguments, and",
    "self": r"closed|is known only|call compile",
    "start": r"unsupported operand",
    "other": r"never recorded",
    "axes": r"length",
    "shape": r"out has \d+ elements",
    "cluster": r"clusters",
    "dimensions": r"channels",
    "dtype": r"a value of",
    "dst_start": r"outside dst",
    "src_start": r"outside src",
}
# What could be an address that the callee follows.
ADDRESSES = {"Stream.borrow.stream", "MemoryPool.borrow.handle"}
LIKE_ADDRESSES = {"1", "2**40", "2**63", "int8", "0-d int array", "stream 'a'"}
