"""Tables of what to write here instead of a keyword argument, or a positional one, of another package."""

from __future__ import annotations

# The spellings of `stream=`, for every function that has it.
STREAM = dict.fromkeys(("queue", "s", "strm"), "write stream=")

_STREAM_OF_LAUNCH = dict.fromkeys(("queue", "s", "strm"), "write kernel[grid, block, shared_bytes, stream](...)")
_SHARED = ("shared_mem", "sharedmem", "shmem_size", "smem")
_BLOCKING = "leave it out: the call waits, unless both stream= and a pinned host array are given"
_PADDED = {"n": "copy x into cuda.zeros(n), or take a slice of it"}
_TRANSFORM = {
    "s": "copy x into cuda.zeros(s), or take a slice of it",
    "overwrite_x": "write out=x",
    "plan": "write plan = libraries.fft.plan(x), and repeat plan()",
    "workers": "leave it out: the device does the work",
    "direction": "write libraries.fft for the forward transform, and libraries.ifft for the inverse",
    "options": "write the options as keyword arguments",
    "execution": "leave it out: the arrays are on the device",
    "prolog": "write load=libraries.Callback(...)",
    "epilog": "write store=libraries.Callback(...)",
}
_FACTORS = {
    **dict.fromkeys(("overwrite_a", "overwrite_b"), "leave it out: arguments are never overwritten"),
    "check_finite": "leave it out: the elements are not checked",
    "lapack_driver": "leave it out, or write method= where there is one",
    "options": "write the options as keyword arguments",
    "out": "the result is always a new array",
}
_LOWER = "only the lower triangle is read"
_NUMPYS = {"loc": "write mean=", "lam": "write rate=", "seed": "libraries.Generator(seed=0) has a seed"}
_FILLED = {"size": "pass the array to fill, such as cuda.empty(size)"}
_PRODUCT = {
    **dict.fromkeys(("transa", "trans_a"), 'write libraries.gemm(a, b, op_a="T")'),
    **dict.fromkeys(("transb", "trans_b"), 'write libraries.gemm(a, b, op_b="T")'),
    "c": "write out=, and beta= to add to it",
    "epilog": "write libraries.gemm_epilogue(a, b, ...)",
    **dict.fromkeys(("options", "preferences", "qualifiers"), "write the options as keyword arguments"),
    "dtype": "convert the matrices: the dtype of the result is theirs",
}

# What to write instead of a keyword argument of NumPy, SciPy, CuPy, nvmath or another package, keyed by the functions
# of `libraries`, and by functions, classes and methods of the package.
KEYWORDS: dict[str, dict[str, str]] = {
    "compile": {
        "code": "pass the source as the first argument",
        "path": "write cuda.compile(Path(path)) for a source, or cuda.load(Path(path)) for a cubin or PTX",
        "name_expressions": "write names=",
        **dict.fromkeys(("opts", "flags", "compile_options"), "write options="),
        "include_dirs": "write include=",
        "defines": "write define=",
        "backend": "NVRTC is the only compiler",
        "nvcc": "NVRTC is the only compiler",
        "no_extern_c": "leave it out: the source is compiled as it is",
        "cache_dir": "set the environment variable CUDART_PY_CACHE",
        "enable_cooperative_groups": "write kernel.launch(grid, block, *arguments, cooperative=True)",
        "translate_cucomplex": "include <cuda/std/complex>",
    },
    "Stream": {
        "null": "write cuda.legacy_default",
        "ptds": "write cuda.per_thread_default",
        "nonblocking": "write non_blocking=",
        "flags": "write non_blocking=True for cudaStreamNonBlocking",
    },
    "Event": {
        "block": "write blocking=",
        "disable_timing": "write timing=False",
        "enable_timing": "write timing=",
        "flags": "write blocking=, timing= or interprocess=",
    },
    "empty_pitched": {"stream": "its memory is not stream-ordered, so every stream may use it at once"},
    "to_device": {
        **STREAM,
        "blocking": _BLOCKING,
        "order": "leave it out: arrays are in C order",
        "copy": "leave it out: the array is always copied",
        "to": "write cuda.memcpy(to, host)",
    },
    "DeviceArray.to_host": {
        **STREAM,
        "blocking": _BLOCKING,
        "order": "leave it out: the result is in C order",
        "dtype": "write x.to_host().astype(dtype)",
        "ary": "write out=",
    },
    "DeviceArray.copy_from": {**STREAM, "blocking": _BLOCKING},
    "memcpy": {
        **STREAM,
        "blocking": _BLOCKING,
        "kind": "leave it out: the arrays determine the direction",
        **dict.fromkeys(("nbytes", "size", "count"), "write slices, as in cuda.memcpy(dst[:n], src[:n])"),
    },
    "memcpy2d": STREAM,
    "memcpy3d": STREAM,
    "memset": {**STREAM, **dict.fromkeys(("nbytes", "size", "count"), "write a slice, as in cuda.memset(dst[:n], 0)")},
    # Of launches with brackets, and of `launch`.
    "Kernel": {
        **dict.fromkeys(_SHARED, "write kernel[grid, block, shared_bytes](...)"),
        **_STREAM_OF_LAUNCH,
        "cooperative_launch": "write kernel.launch(grid, block, *arguments, cooperative=True)",
    },
    "Kernel.configure": {
        **STREAM,
        **dict.fromkeys((*_SHARED, "shared"), "write shared_bytes="),
        "cooperative_launch": "write cooperative=",
    },
    **{name: {**STREAM, **_PADDED, **_TRANSFORM} for name in ("fft", "ifft")},
    "rfft": {**STREAM, **_PADDED, **_TRANSFORM, "overwrite_x": "leave it out: the result is larger than x"},
    "irfft": {**STREAM, **_TRANSFORM, "n": "write length=n", "overwrite_x": "write overwrite=True"},
    "svd": {
        **STREAM,
        **_FACTORS,
        "full_matrices": "the result is always that of full_matrices=False",
        "compute_uv": "the result always has U and V^H",
        "hermitian": "write libraries.eigh(a) for a Hermitian matrix",
    },
    "eigh": {
        **STREAM,
        **_FACTORS,
        **dict.fromkeys(("UPLO", "lower"), _LOWER),
        "eigvals_only": "the result is always (eigenvalues, eigenvectors): write libraries.eigh(a)[0]",
    },
    "cholesky": {
        **STREAM,
        **_FACTORS,
        "lower": "the result is always the lower factor",
        "upper": "the result is always the lower factor L, and the upper one is L^H",
    },
    "qr": {**STREAM, **_FACTORS, "mode": "the result is always that of mode='reduced'"},
    "lstsq": {**STREAM, **_FACTORS, "cond": "write rcond="},
    "inv": {**STREAM, **_FACTORS},
    "lu_factor": {**STREAM, **_FACTORS},
    "solve": {
        **STREAM,
        **_FACTORS,
        "assume_a": "write positive=True for assume_a='pos'",
        "sym_pos": "write positive=True",
        "lower": _LOWER,
        "transposed": "write libraries.lu_factor(a).solve(b, op='T')",
    },
    "solve_triangular": {**STREAM, **_FACTORS, "trans": "write op='T'", "unit_diagonal": "write unit=True"},
    "SparseSolver": {
        **STREAM,
        "b": "write libraries.SparseSolver(a).solve(b)",
        "mtype": 'write kind="general", "symmetric", "hermitian" or "positive"',
        **dict.fromkeys(("options", "execution"), "write the options as keyword arguments"),
    },
    "gemm": {**STREAM, **_PRODUCT},
    "matmul": {
        **STREAM,
        **_PRODUCT,
        **dict.fromkeys(("alpha", "beta"), "write libraries.gemm(a, b, out, alpha=2.0, beta=1.0)"),
    },
    **{name: {**STREAM, **_NUMPYS} for name in ("uniform", "normal", "exponential", "poisson")},
    **{f"Generator.{name}": _FILLED for name in ("uniform", "normal", "exponential", "poisson")},
}

# What to write instead of more positional arguments than a function takes.
POSITIONAL: dict[str, str] = {
    "DeviceArray.copy_from": "write stream= before the stream",
    "DeviceArray.to_host": "write stream= before the stream",
    "compile": "write cuda.compile(source)[name] for a kernel, and names=[name] for an instance of a template",
    "memcpy": "sizes and direction come from the arrays, so write cuda.memcpy(dst, src), with slices for parts of them",
    "memcpy2d": "pitches and direction come from the arrays, so write cuda.memcpy2d(dst, src, (rows, columns))",
    "memcpy3d": "pitches and direction come from the arrays, so write cuda.memcpy3d(dst, src, (planes, rows, columns))",
    "memset": "the size is that of the array, so write cuda.memset(dst, value), with a slice for a part of it",
}
