"""The shared libraries: their C code, compiled once by the system's C compiler and kept in the cache.

A folder holds the libraries for one interpreter, since libcuda has the path of Python's library in it. The libraries of
the compiler and the linker exist only where CUDA's own are installed, which do the work. The assembler, a script,
exists only for Triton.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ..compilation import cache
from ..errors import CudaError
from ..host.files import make_private_folder
from .c_types import definitions, spelling
from .declarations import declarations_file
from .functions import Function, compiler_functions, driver_functions, linker_functions, runtime_functions
from .library_names import ASSEMBLER, COMPILER, DRIVER, LINKER, REAL, RUNTIME

_HERE = Path(__file__).parent
# The bindings' modules whose declarations each library implements.
_BINDINGS = {DRIVER: "driver", RUNTIME: "runtime", COMPILER: "nvrtc", LINKER: "nvjitlink"}
COMPILER_VARIABLE = "CUDART_PY_CC"
_SECONDS = 120
# NVRTC's functions for machine code return PTX, which the simulator runs.
_OTHER_FUNCTIONS = {
    "nvrtcGetCUBIN": 'real_function("nvrtcGetPTX")',
    "nvrtcGetCUBINSize": "(void *)machine_code_size",
}
_OTHER, _CALL, _RELEASE, _GET_CURRENT = range(4)  # the kinds of functions in start.c
_RELEASES = re.compile("Free|Destroy|Unload|Release|Unregister|cuCtx(Set|Push|Pop)Current")
_IMPORTED = (
    "#include <stddef.h>\nstruct library { const char *name; void **functions; int filled; };\n"
    "void *cudart_py_function(struct library *, size_t, int);\nint cudart_py_status(int);\n"
)


class StandInError(CudaError):
    """The stand-ins for CUDA's libraries cannot be built on this machine."""


def libraries() -> Path:
    """Return the folder with the stand-ins, which are compiled at the first call on this machine.

    Raises StandInError if there is no C compiler, if it fails, if Python has no shared library, or without a cache.
    """
    real = {name: path for name in (COMPILER, LINKER) if (path := _installed(name))}
    assembler = _assembler_of_triton()
    if assembler:
        real[ASSEMBLER] = assembler
    folder = _cache() / f"standins-{_digest(real)}"
    if folder.is_dir():
        return folder
    try:
        _build(folder, real, _c_compiler())
    except OSError as error:
        raise _unusable(str(folder.parent), error) from error
    return folder


def _digest(real: dict[str, str]) -> str:
    """Return a digest of the inputs of the libraries' code; generating the code at each start would take longer."""
    used = [module for library, module in _BINDINGS.items() if library in (DRIVER, RUNTIME, *real)]
    files = [path for path in sorted(_HERE.iterdir()) if path.is_file()] + [declarations_file(name) for name in used]
    contents = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    described = repr((sys.executable, _python_library(), sorted(real.items()), contents))
    return hashlib.sha256(described.encode()).hexdigest()[:16]


def _build(folder: Path, real: dict[str, str], compiler: str) -> None:
    """Compile the libraries, and put them into a new folder."""
    sources = {DRIVER: _driver_source(), RUNTIME: _runtime_source()}
    if COMPILER in real:
        sources[COMPILER] = _compiler_source(real[COMPILER])
    if LINKER in real:
        sources[LINKER] = _IMPORTED + _stubs("libnvJitLink", linker_functions().values())
    # Built next to its final place and renamed, so that other processes never see an incomplete library.
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".standins-") as place:
        built = Path(place, "libraries")
        (built / REAL).mkdir(parents=True)
        for name, path in real.items():
            (built / REAL / name).symlink_to(path)
            # NVRTC 13.0 looks for this library next to the one whose functions the process calls, which is the
            # stand-in.
            for builtins in Path(path).parent.glob("libnvrtc-builtins.so*"):
                (built / builtins.name).unlink(missing_ok=True)
                (built / builtins.name).symlink_to(builtins)
        if ASSEMBLER in real:
            shutil.copyfile(_HERE / "assembler.sh", built / ASSEMBLER)
            (built / ASSEMBLER).chmod(0o755)
        for name, source in sources.items():
            _compile(compiler, name, source, built)
        for name in (DRIVER, RUNTIME):
            # The names that the linker looks for: wheels of CUDA lack the one of the runtime, machines without a GPU
            # the one of the driver.
            (built / f"{name.partition('.')[0]}.so").symlink_to(name)
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was first
                raise


def preloaded(folder: Path) -> list[Path]:
    """Return the libraries that must be in a process before Python packages look for them by their paths."""
    return [path for name in (RUNTIME, COMPILER, LINKER) if (path := folder / name).is_file()]


def _cache() -> Path:
    place = cache.folder()
    if not place:
        raise StandInError(
            f"the stand-ins need a cache folder, and the home folder is unknown: set {cache.ENVIRONMENT_VARIABLE}"
        )
    try:
        make_private_folder(place)
    except OSError as error:
        raise _unusable(place, error) from error
    return Path(place)


def _unusable(place: str, error: OSError) -> StandInError:
    return StandInError(
        f"the cache folder {place!r} cannot be used: {error.strerror}; set {cache.ENVIRONMENT_VARIABLE} to another"
    )


def _c_compiler() -> str:
    named = os.environ.get(COMPILER_VARIABLE)
    for name in (named,) if named else ("cc", "gcc", "clang"):
        if path := shutil.which(name):
            return path
    if named:
        raise StandInError(
            f"{COMPILER_VARIABLE}={named!r}: there is no such program; set it to the path of a C compiler (without "
            "options), or unset it"
        )
    raise StandInError("no C compiler (cc, gcc, clang) was found: install one, for example with `apt-get install gcc`")


def _python_library() -> str:
    name = sysconfig.get_config_var("INSTSONAME")
    path = Path(sysconfig.get_config_var("LIBDIR") or "", name or "")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED") or not path.is_file():
        raise StandInError(
            f"this Python ({sys.executable}) has no shared library, which other programs need to run it: use a Python "
            "that uv has installed, or one that was configured with --enable-shared"
        )
    return str(path)


def _installed(name: str) -> str:
    """Return the path of a library of CUDA, or "" if it is not installed."""
    for entry in sys.path:
        if (path := Path(entry, "nvidia", "cu13", "lib", name)).is_file():
            return str(path)
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib  # imported late: wheels are usual

    try:
        return load_nvidia_dynamic_lib(name.removeprefix("lib").partition(".")[0]).abs_path or ""
    except DynamicLibNotFoundError:
        return ""


def _assembler_of_triton() -> str:
    """Return the path of the assembler in Triton's package, or "" if Triton is not installed."""
    spec = importlib.util.find_spec("triton")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("ptxas-blackwell", "ptxas"):  # Triton's newer versions use the first for every GPU since Hopper
            if (path := Path(folder, "backends", "nvidia", "bin", name)).is_file():
                return str(path)
    return ""


def _driver_source() -> str:
    constants = (
        f"#define PYTHON_LIBRARY {_quoted(_python_library())}\n#define PYTHON_PROGRAM {_quoted(sys.executable)}\n"
    )
    return constants + (_HERE / "start.c").read_text() + _stubs("libcuda", driver_functions().values())


def _runtime_source() -> str:
    return _IMPORTED + (_HERE / "channel_format.c").read_text() + _stubs("libcudart", runtime_functions().values())


def _compiler_source(real: str) -> str:
    stubs = [
        _stub(function, _OTHER_FUNCTIONS.get(function.symbol, f'real_function("{function.symbol}")'))
        for function in compiler_functions().values()
    ]
    return f"#define REAL_LIBRARY {_quoted(real)}\n" + (_HERE / "forward.c").read_text() + "\n".join(stubs) + "\n"


def _quoted(text: str) -> str:
    """Return a C string literal with every byte escaped, so that any path will do."""
    return '"' + "".join(f"\\{byte:03o}" for byte in os.fsencode(text)) + '"'


def _stubs(library: str, functions: Iterable[Function]) -> str:
    listed = list(functions)
    lines = [
        definitions(),
        f"static void *functions[{len(listed)}];",
        f'static struct library this_library = {{"{library}", functions, 0}};',
    ]
    for index, function in enumerate(listed):
        kind = _kind(function)
        address = f"cudart_py_function(&this_library, {index}, {kind})"
        lines.append(_stub(function, address, "" if kind == _OTHER else "cudart_py_status"))
    return "\n".join(lines) + "\n"


def _kind(function: Function) -> int:
    if function.result is not ctypes.c_int:
        return _OTHER
    if function.symbol == "cuCtxGetCurrent":
        return _GET_CURRENT
    return _RELEASE if _RELEASES.search(function.symbol) else _CALL


def _stub(function: Function, found: str, convert: str = "") -> str:
    """Return a C function that calls another, whose address an expression gives, and converts its result."""
    types = [spelling(kind) for kind in function.types]
    parameters = ", ".join(f"{kind} p{place}" for place, kind in enumerate(types)) or "void"
    passed = ", ".join(f"p{place}" for place in range(len(types)))
    result = spelling(function.result)
    call = f"{convert}((({result} (*)({', '.join(types) or 'void'})){found})({passed}))"
    return f"{result} {function.symbol}({parameters}) {{ {'' if result == 'void' else 'return '}{call}; }}"


def _compile(compiler: str, name: str, source: str, folder: Path) -> None:
    path = folder / f"{name}.c"
    path.write_text(source)
    versions = folder / f"{name}.map"
    # NVIDIA's libraries give their symbols the library's name as a version, for which programs ask.
    versions.write_text(f"{name} {{ global: *; }};\n")
    # Without optimisation, the compiler takes a third of the time; each call spends far longer in Python than in C.
    command = [compiler, "-shared", "-fPIC", "-O0", "-w", f"-Wl,-soname,{name}", "-o", str(folder / name), str(path)]
    if name != DRIVER:
        command.append(f"-Wl,--version-script={versions}")
    if name in (RUNTIME, LINKER):
        # A process that has lost LD_LIBRARY_PATH, but not LD_PRELOAD, finds libcuda next to the library.
        command += [f"-L{folder}", f"-l:{DRIVER}", "-Wl,-rpath,$ORIGIN"]
    try:
        done = subprocess.run(
            [*command, "-ldl", "-lpthread"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StandInError(f"the C compiler {compiler} could not build {name}: {error}") from error
    if done.returncode:
        first = (done.stderr or done.stdout).strip().splitlines()[:3] or [f"exit status {done.returncode}"]
        # Compilers of other languages, such as nvcc, do not know the options.
        raise StandInError(f"{compiler} could not build {name} as a C compiler: " + " / ".join(first))
    path.unlink()
    versions.unlink()
