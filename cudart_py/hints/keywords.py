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
_TRANSPOSED = dict.fromkeys(("trans", "transa"), "write op='T'")
_TRIANGLE = {**_TRANSPOSED, "unit_diagonal": "write unit=True"}
_NUMPYS = {"loc": "write mean=", "lam": "write rate=", "seed": "libraries.Generator(seed=0) has a seed"}
_NUMPYS_NORMAL = dict.fromkeys(("scale", "sigma"), "write deviation=")
_SUBSET = "the result always has all eigenvalues; take slices of both arrays"
_CHOSEN = "leave it out: cuDSS chooses the order and the pivots"
_FILLED = {"size": "pass the array to fill, such as cuda.empty(size)"}
_PRODUCT = {
    **dict.fromkeys(("transa", "trans_a"), 'write libraries.gemm(a, b, op_a="T")'),
    **dict.fromkeys(("transb", "trans_b"), 'write libraries.gemm(a, b, op_b="T")'),
    "c": "write out=, and beta= to add to it",
    "epilog": "write libraries.gemm_epilogue(a, b, ...)",
    **dict.fromkeys(("options", "preferences", "qualifiers"), "write the options as keyword arguments"),
    "dtype": "convert the matrices: the dtype of the result is theirs",
}

_C_ORDER = "leave it out: arrays are in C order"
_CREATION = {
    **STREAM,
    **dict.fromkeys(("order", "strides"), _C_ORDER),
    "allocator": "write pool=",
    "device": "write `with cuda.Device(0):` around the call",
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
        **dict.fromkeys(("fastmath", "use_fast_math"), "write fast_math="),
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
    "empty": _CREATION,
    "zeros": _CREATION,
    "full": {**_CREATION, "fill_value": "write value="},
    "DeviceArray.fill": STREAM,
    "Event": {
        "block": "write blocking=",
        "disable_timing": "write timing=False",
        "enable_timing": "write timing=",
        "flags": "write blocking=, timing= or interprocess=",
    },
    "Event.record": {**STREAM, "flags": "write external=True for cudaEventRecordExternal"},
    "empty_pitched": {"stream": "its memory is not stream-ordered, so every stream may use it at once"},
    "to_device": {
        **STREAM,
        "blocking": _BLOCKING,
        "order": _C_ORDER,
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
        "compute_uv": "the result always has U and V^H; libraries.svd(a)[1] has the singular values",
        "hermitian": "write libraries.eigh(a) for a Hermitian matrix",
    },
    "eigh": {
        **STREAM,
        **_FACTORS,
        **dict.fromkeys(("UPLO", "lower"), _LOWER),
        **dict.fromkeys(("subset_by_index", "subset_by_value"), _SUBSET),
        "b": "for a generalized problem, pass L^-1 a L^-H, where L = libraries.cholesky(b)",
        "eigvals_only": "the result is always (eigenvalues, eigenvectors): write libraries.eigh(a)[0]",
    },
    "cholesky": {
        **STREAM,
        **_FACTORS,
        "lower": "the result is always the lower factor",
        "upper": "the result is always the lower factor L, and the upper one is L^H",
    },
    "qr": {
        **STREAM,
        **_FACTORS,
        "mode": "the result is always that of mode='reduced'",
        "pivoting": "columns are not exchanged; the singular values of libraries.svd(a) show the rank",
    },
    "lstsq": {**STREAM, **_FACTORS, "cond": "write rcond="},
    "inv": {**STREAM, **_FACTORS},
    "lu_factor": {**STREAM, **_FACTORS},
    "solve": {
        **STREAM,
        **_FACTORS,
        "assume_a": "write positive=True for assume_a='pos', and leave it out otherwise",
        "sym_pos": "write positive=True",
        "lower": "only positive=True reads a single triangle, the lower one",
        "transposed": "write libraries.lu_factor(a).solve(b, op='T')",
    },
    "LuFactors.solve": {**STREAM, **_FACTORS, **_TRANSPOSED},
    "solve_triangular": {**STREAM, **_FACTORS, **_TRIANGLE},
    **{name: {**STREAM, **_TRIANGLE} for name in ("spsv", "spsm")},
    **{name: {**STREAM, **_TRANSPOSED} for name in ("gemv", "spmv", "spmm")},
    "dot": {**STREAM, "conj": "write libraries.gemv(x.reshape(-1, 1), y, op='C') to conjugate x"},
    "SparseSolver": {
        **STREAM,
        "b": "write libraries.SparseSolver(a).solve(b)",
        **dict.fromkeys(("permc_spec", "diag_pivot_thresh", "use_umfpack"), _CHOSEN),
        "mtype": 'write kind="general", "symmetric", "hermitian" or "positive"',
        **dict.fromkeys(("options", "execution"), "write the options as keyword arguments"),
    },
    "gemm": {**STREAM, **_PRODUCT},
    "matmul": {
        **STREAM,
        **_PRODUCT,
        **dict.fromkeys(("alpha", "beta"), "write libraries.gemm(a, b, out, alpha=2.0, beta=1.0)"),
    },
    **{name: {**STREAM, **_NUMPYS} for name in ("uniform", "exponential", "poisson")},
    "normal": {**STREAM, **_NUMPYS, **_NUMPYS_NORMAL},
    "Generator": {
        "scramble": "write kind='scrambled_sobol64', or shift all points at random for independent estimates",
        "d": "write libraries.Generator('sobol64', dimensions=d)",
    },
    **{f"Generator.{name}": {**_NUMPYS, **_FILLED} for name in ("uniform", "exponential", "poisson")},
    "Generator.normal": {**_NUMPYS, **_NUMPYS_NORMAL, **_FILLED},
}

_PADDED_COPY = "write axis= before the axis; for another length n, copy x into cuda.zeros(n)"

# What to write instead of more positional arguments than a function takes.
POSITIONAL: dict[str, str] = {
    **dict.fromkeys(
        ("empty", "full", "to_device", "zeros"), "write stream= before the stream, and leave out the order"
    ),
    "DeviceArray.copy_from": "write stream= before the stream",
    "DeviceArray.to_host": "write stream= before the stream",
    "LuFactors.solve": "write op= before the operation",
    "cholesky": "the result is always the lower factor, so write libraries.cholesky(a)",
    "compile": "write cuda.compile(source)[name] for a kernel, and names=[name] for an instance of a template",
    "eigh": "only the lower triangle of one matrix is read, so write libraries.eigh(a)",
    "lstsq": "write libraries.lstsq(a, b, method='svd', rcond=1e-10)",
    "memcpy": "sizes and direction come from the arrays, so write cuda.memcpy(dst, src), with slices for parts of them",
    "memcpy2d": "pitches and direction come from the arrays, so write cuda.memcpy2d(dst, src, (rows, columns))",
    "memcpy3d": "pitches and direction come from the arrays, so write cuda.memcpy3d(dst, src, (planes, rows, columns))",
    "memset": "the size is that of the array, so write cuda.memset(dst, value), with a slice for a part of it",
    "qr": "the result is always that of mode='reduced', so write libraries.qr(a)",
    **dict.fromkeys(("fft", "ifft", "rfft"), _PADDED_COPY),
    "irfft": "write length= before the length, and axis= before the axis",
    "svd": "the result is always that of full_matrices=False, so write libraries.svd(a)",
}
