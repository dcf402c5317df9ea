"""Advice on how to change a source, its options and its name expressions after NVRTC has rejected them.

Most sources that NVRTC rejects were written for nvcc and contain host code. NVRTC compiles only device code. It has no
C and C++ standard library headers, and accepts neither host functions nor `<<<...>>>` launches. Its messages do not say
so. This module chooses the advice for the error message from NVRTC's log and the source.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ..base import arguments
from . import headers
from .diagnostics import missing_header, unknown_names
from .names.demangling import demangle

# The library that defines the functions with which kernels launch kernels.
DEVICE_RUNTIME = (
    'CUDA\'s libcudadevrt.a: cuda.link([image, pathlib.Path(find_static_lib("cudadevrt"))]), with find_static_lib of '
    "cuda.pathfinder"
)
# C headers whose contents are built into the compiler.
_BUILT_IN = {
    "assert": "assert() is built in",
    "math": "the mathematical functions are built in, and constants such as CUDART_PI_F are in <math_constants.h>",
    "stdarg": "va_list is built in",
    "stdbool": "bool is built in",
    "stddef": "size_t, ptrdiff_t and NULL are built in",
    "stdio": "printf() is built in, and nothing else in this header works in kernels",
    "stdlib": "malloc() and free() are built in; random numbers come from <curand_kernel.h>",
    "string": "memcpy() and memset() are built in",
    "time": "clock() and clock64() are built in",
}
# C headers for which libcu++ has a header of its own.
_C_IN_CUDA_STD = {
    "complex": "complex",
    "float": "limits",
    "limits": "climits",
    "stdint": "cstdint",
    "inttypes": "cstdint",
}
_CPP_IN_CUDA_STD = (
    "algorithm array atomic barrier bit bitset charconv chrono complex concepts expected functional initializer_list "
    "iterator latch limits memory numbers numeric optional random ranges ratio semaphore source_location span "
    "string_view tuple type_traits utility variant version"
)
_C_OF_THE_HOST = "ctype errno fenv iso646 locale setjmp signal stdatomic threads uchar wchar wctype unistd pthread omp"
_CPP_OF_THE_HOST = (
    "any condition_variable deque exception filesystem forward_list fstream future iomanip ios iosfwd iostream istream "
    "list map mutex new ostream queue regex set shared_mutex sstream stack stdexcept streambuf string system_error "
    "thread typeinfo unordered_map unordered_set valarray vector"
)
_LIBRARIES_OF_THE_HOST = re.compile(
    r"cu(blas|fft|sparse|solver|dnn|tensor)\w*\.h|cuda_profiler_api\.h|helper_\w+\.h|nvToolsExt\.h|nvtx3/.*|sys/\w+\.h"
)
_OF_CUPY = {
    "cupy/complex.cuh": "<cupy/complex.cuh> comes with CuPy: include <cuda/std/complex> in its place, and write "
    "cuda::std::complex in place of complex",
}

# Messages about names that a missing header would have declared, and the remedies.
_NAMES = (
    (
        r'identifier "(u?int(?:(?:_fast|_least)?(?:8|16|32|64)|ptr|max)_t)" is undefined',
        "include <cuda/std/cstdint>, which declares {0}",
    ),
    (
        r'identifier "((?:U?(?:CHAR|INT|LONG|LLONG|SHRT)|SCHAR)_(?:MAX|MIN)|CHAR_BIT)" is undefined',
        "include <cuda/std/climits>, which defines {0}",
    ),
    (
        r'identifier "((?:FLT|DBL)_\w+)" is undefined',
        "write cuda::std::numeric_limits<float> or <double> of <cuda/std/limits> in place of {0}",
    ),
    (
        r'identifier "(M_\w+|NAN|INFINITY)" is undefined',
        "include <math_constants.h>, which defines CUDART_PI_F, CUDART_NAN_F, CUDART_INF_F and others, in place of {0}",
    ),
    (
        r'identifier "(cudaGraphSetConditional)" is undefined',
        'declare extern "C" __device__ __cudart_builtin__ void CUDARTAPI {0}(cudaGraphConditionalHandle, unsigned); no '
        "header that NVRTC knows does",
    ),
    (
        r'(device-side kernel launch|identifier "cudaStream(?:TailLaunch|FireAndForget)" is undefined)',
        f'compile kernels that launch kernels with compile_image(..., options=["-rdc=true"]), and load the image with '
        f"{DEVICE_RUNTIME}",
    ),
    (
        r'a host variable\("(\w+)"\) redeclared with __shared__',
        "all extern __shared__ arrays with the same name must have the same type: in each kernel, declare "
        "extern __shared__ char {0}[], and write float* numbers = reinterpret_cast<float*>({0}), or give each array "
        "its own name",
    ),
    (
        r'cannot determine which instance of function template "(\w+)" is intended\n'
        r"\s*#pragma nv_mangled_name [\w:]*\1\n",
        'write the arguments of the template {0} in names=[...], as in names=["{0}<float>"]',
    ),
    (
        r'namespace "std" has no member (?:\w+ )?"(\w+)"',
        "std::{0} is not available, since the standard library for device code is cuda::std, in headers such as "
        "<cuda/std/utility>; max(), min() and the mathematical functions are built in without std::",
    ),
)
# Errors of the assembler, in which symbols are mangled.
_ASSEMBLER = (
    (
        r"Unresolved extern function '([^']+)'",
        "define {0}, which is only declared; if another source defines it, compile each with compile_image(..., "
        'options=["-rdc=true"]) and load the images by cuda.link([...])',
    ),
    (
        r"Entry function '([^']+)' uses too much shared data",
        "in {0}, declare the array as extern __shared__ without a size, and pass its size in bytes at the launch: "
        "kernel[grid, block, shared_bytes](...)",
    ),
    (
        r"File uses too much global (constant) data",
        "a module has 64 KiB of __{0}__ variables: pass large tables to the kernel as const pointers, or declare them "
        "__device__",
    ),
)
_NO_HOST_FUNCTIONS = "host functions are not allowed in JIT mode"
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_MAIN = re.compile(r"\bmain\s*\(")
_CHEVRONS = re.compile(r"\b([A-Za-z_]\w*)\s*(?:<[^<>;{}]*>)?\s*<<<")
_INCLUDED = re.compile(r"#\s*include\s*<([^>\n]+)>")
_INCLUDED_CUB = re.compile(r"#\s*include\s*<cub/(?:cub|device/device_(\w+))\.cuh>")
_REFUSED_CUB = re.compile(r"Including <cub/(?:cub\.cuh|device/device_(\w+)\.cuh)> is not supported")
_COLLECTIVE = re.compile(r"\bcub::((Block|Warp)[A-Z]\w*)")
_NO_THRUST = (
    "Thrust's containers and algorithms are called by the host and cannot be compiled by NVRTC: leave its headers out; "
    "classes such as cub::BlockReduce of <cub/block/block_reduce.cuh> do their work in a kernel"
)
_PATH = re.compile(r"\S[^\n;{}]*\.(?:cuh?|h|hpp|cpp)")
_UNKNOWN_OPTION = re.compile(r"unrecognized option (.+) found")
# Patterns for options of nvcc and of host compilers, without their values, and the remedies.
_OPTIONS = (
    (r"--?f?(?:use)?[-_]?fast[-_]?math", "write fast_math=True in place of {0}"),
    (r"-O\w*", "leave {0} out: NVRTC optimises fully"),
    (
        r"-o|--output-file|-c|--compile|-ptx|--ptx|-cubin|--cubin|-fatbin|--fatbin|-keep|--keep",
        "leave {0} out, with the file that it names: NVRTC writes no files, and module.cubin and module.ptx contain "
        "the result",
    ),
    (r"-g|--debug", "leave {0} out: it is for host code. The option -G compiles kernels for a debugger"),
    (r"--lineinfo", "leave {0} out: line information is always generated"),
    (
        r"-gencode|--generate-code|-code|--gpu-code",
        'leave {0} out, with its value: code is generated for the current device, or for the one in arch="sm_90"',
    ),
    (
        r"-res-usage|--resource-usage|-v|--verbose",
        "leave {0} out: kernel.attributes has the registers and the spills that the assembler reported",
    ),
    (
        r"-?-expt-relaxed-constexpr",
        "mark the constexpr functions that kernels call __device__ in place of {0}, or write -default-device, which "
        "compiles every unmarked function for the device",
    ),
    (
        r"-default-stream|--default-stream",
        "leave {0} out: a launch names its stream, as in kernel[grid, block, 0, cuda.per_thread_default](...)",
    ),
    (
        r"-Xcompiler|--compiler-options|-ccbin|--compiler-bindir|-Xlinker|--linker-options|-W\w.*|-f(?:PIC|pic|openmp)|"
        r"-pthread|-m(?:64|arch|tune)|-?-(?:expt-)?extended-lambda|-[lL].*|-shared|--shared|-static|-cudart|--cudart",
        "leave {0} out, with its value if it has one: it is for the host compiler or the linker, neither of which "
        "NVRTC calls. The warnings of NVRTC are in module.log",
    ),
)
# The name of a kernel is the first name before a parenthesis that is not an attribute such as __launch_bounds__.
_KERNEL = re.compile(r"__global__\b[^;{}]*?\b(?!__)([A-Za-z_]\w*)\s*\(")
_THRUST = re.compile(r"^[^\n]*/thrust/[^\n]*\(\d+\): (?:catastrophic )?error", re.MULTILINE)


def remedies(log: str, source: str, name: str, found: headers.Headers) -> list[str]:
    """Return the changes that should make a source compile, one sentence per remedy.

    `log` is the compiler's log, `name` the name of the source in the log, and `found` has the folders of CUDA's
    headers.
    """
    if _PATH.fullmatch(source.strip()):
        return [f"a str is the source itself and not the name of a file: write pathlib.Path({source.strip()!r})"]
    code = _NOT_CODE.sub(" ", source)
    if _THRUST.search(log) and not _INCLUDED_CUB.search(code):
        return [_NO_THRUST]
    missing = missing_header(log)
    # First, because some headers are no longer needed without the host code.
    result = _for_host_code(log, code, header_is_missing=missing is not None)
    if missing is not None:
        result.append(_for_header(*missing, name, code, found))
    result += _for_cub(log, code, found.folders)
    for pattern, sentence in _NAMES:
        if match := re.search(pattern, log):
            result.append(sentence.format(match[1]))
    for pattern, sentence in _ASSEMBLER:
        if match := re.search(pattern, log):
            result.append(sentence.format(demangle(match[1]) or match[1]))
    result += _for_options(log)
    result += [_for_name(name, code) for name in unknown_names(log)]
    return result


def _for_options(log: str) -> list[str]:
    """Return the remedy for an option that NVRTC does not know and that may be an option of nvcc or a host compiler."""
    unknown = _UNKNOWN_OPTION.search(log)
    if unknown is None:
        return []
    option = unknown[1].strip()
    if len(several := re.split(r"\s+(?=-)", option)) > 1:
        return [f"each option is an item of options=[...] of its own: write {', '.join(map(repr, several))}"]
    spelling = re.split(r"[=\s]", option, maxsplit=1)[0]
    return [sentence.format(option) for pattern, sentence in _OPTIONS if re.fullmatch(pattern, spelling)]


def _for_name(name: str, code: str) -> str:
    """Return the remedy for a name in `names=` that the source does not declare; it lists the source's kernels."""
    kernels = sorted(set(_KERNEL.findall(code)))
    if name in kernels:
        return f"write the namespace or the class of {name} before it in names=[...], as in space::{name}"
    near = arguments.nearest(name, kernels)
    hint = f"; did you mean {near}?" if near else ""
    listing = f" Kernels of the source: {', '.join(kernels)}" if kernels else ""
    return f"names=[...] contains {name}, which the source does not declare{hint or ('.' if listing else '')}{listing}"


def _for_header(includer: str, header: str, name: str, code: str, found: headers.Headers) -> str:
    """Return the remedy for a header that the file `includer` includes and that the compiler could not open.

    `code` is the source without its comments.
    """
    if includer != name and includer.startswith(tuple(os.path.join(folder, "") for folder in found.folders)):
        # The header of an installed library includes another one that is missing.
        library = next(filter(_LIBRARIES_OF_THE_HOST.fullmatch, _INCLUDED.findall(code)), None)
        if library is not None:
            return _of_the_host(library)
        return (
            f"<{os.path.basename(includer)}> is for host code, which NVRTC does not compile, and includes "
            f'"{header}": leave it out'
        )
    if header.startswith("cupy/"):
        return _OF_CUPY.get(header) or f"<{header}> comes with CuPy: leave it out, with the code that needs it"
    stem = header.removesuffix(".h")
    if not header.endswith(".h") and stem.removeprefix("c") in (*_BUILT_IN, *_C_IN_CUDA_STD):
        stem = stem.removeprefix("c")
    out = f"leave #include <{header}> out"
    is_c = header in (f"{stem}.h", f"c{stem}")
    if is_c and stem in _BUILT_IN:
        return (
            f"NVRTC has no headers of the C library: {out}; {_BUILT_IN[stem]}. If nvcc compiles the file too, put the "
            "line between #ifndef __CUDACC_RTC__ and #endif"
        )
    if is_c and stem in _C_IN_CUDA_STD:
        return (
            f"NVRTC has no headers of the C library: include <cuda/std/{_C_IN_CUDA_STD[stem]}> in place of <{header}>"
        )
    if header in _CPP_IN_CUDA_STD.split() and _has_or_may_have(found, f"cuda/std/{header}"):
        return (
            f"NVRTC has no headers of the C++ library: include <cuda/std/{header}> in place of <{header}>, and write "
            "cuda::std:: in place of std::"
        )
    of_the_host = stem.removeprefix("c") in _C_OF_THE_HOST.split() or header in _CPP_OF_THE_HOST.split()
    if of_the_host or _LIBRARIES_OF_THE_HOST.fullmatch(header):
        return _of_the_host(header)
    return headers.remedy(header, found)


def _of_the_host(header: str) -> str:
    return (
        f"<{header}> is for host code, which NVRTC does not compile: leave #include <{header}> out, with the "
        "code that needs it"
    )


def _has_or_may_have(found: headers.Headers, header: str) -> bool:
    """Return whether CUDA's headers include a header that older versions may lack; True if none are installed."""
    roots = [folder for folder in found.folders if os.path.isdir(os.path.join(folder, os.path.dirname(header)))]
    return not roots or any(os.path.exists(os.path.join(root, header)) for root in roots)


def _for_cub(log: str, code: str, folders: Sequence[str]) -> list[str]:
    """Return the remedy for CUB headers that are meant for host code."""
    # Older versions of CUB's headers fail in Thrust headers that they include.
    if refused := _REFUSED_CUB.search(log) or (_INCLUDED_CUB.search(code) if _THRUST.search(log) else None):
        # The headers are those of the classes that the source uses, and of the block-wide class that corresponds to the
        # host-wide algorithm.
        wanted = [(match[1], match[2].lower()) for match in _COLLECTIVE.finditer(code)]
        if refused[1]:
            wanted.append((f"Block{refused[1].title().replace('_', '')}", "block"))
        included = {}
        for class_name, folder in wanted:
            header = f"cub/{folder}/{re.sub(r'(?<!^)(?=[A-Z])', '_', class_name).lower()}.cuh"
            if any(os.path.exists(os.path.join(root, header)) for root in folders):
                included[header] = class_name
        for_host = "cub::Device*, which the host calls, cannot be compiled by NVRTC"
        if not included:
            return [
                "include the header of each class of CUB that the kernels use, such as <cub/block/block_reduce.cuh> "
                f"for cub::BlockReduce or <cub/warp/warp_scan.cuh> for cub::WarpScan; {for_host}"
            ]
        listing = " and ".join(f"<{header}> for cub::{class_name}" for header, class_name in included.items())
        return [f"include {listing}; {for_host}"]
    return []


def _for_host_code(log: str, code: str, *, header_is_missing: bool) -> list[str]:
    """Return the remedy for a source with host functions, for example a whole program for nvcc."""
    refused = _NO_HOST_FUNCTIONS in log
    launched = _CHEVRONS.search(code)
    if (refused or header_is_missing) and (launched or _MAIN.search(code)):
        kernel = launched[1] if launched else "k"
        return [
            "the source has host code, which NVRTC does not compile: remove main() and every function that "
            "launches kernels or calls CUDA, and the headers that only they need. From Python, "
            f"{kernel}<<<grid, block, shared_bytes, stream>>>(...) is written "
            f'module["{kernel}"][grid, block, shared_bytes, stream](...), and cuda.empty, cuda.to_device and '
            "array.to_host() replace cudaMalloc and cudaMemcpy"
        ]
    if refused:
        return ["mark kernels __global__ and the functions that they call __device__, and remove the host functions"]
    return []
