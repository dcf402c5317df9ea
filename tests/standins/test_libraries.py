"""The functions of the stand-ins: their types, and which of them the simulator has."""

import ctypes
import fnmatch
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cudart_py.driver import backend
from cudart_py.standins import functions, library
from cudart_py.standins.declarations import declarations
from cudart_py.standins.driver.marshalling import STRUCTURE_BYTES
from cudart_py.standins.driver.table import implemented
from cudart_py.standins.functions import driver_functions, runtime_functions
from cudart_py.standins.library_names import LINKER
from cudart_py.standins.runtime import table
from cudart_py.standins.runtime.same_arguments import SAME_ARGUMENTS
from tests.standins.conftest import SECONDS

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "run.md"
# The newest version of CUDA whose functions the guide takes into account.
NEWEST = 13050


def test_parameters_have_the_sizes_that_cudas_headers_declare(headers, tmp_path):
    """The C++ compiler computes the size of every parameter of every function of cuda.h and cuda_runtime_api.h."""
    functions = {**driver_functions(), **runtime_functions()}
    driver, runtime = (Path(headers, name).read_text() for name in ("cuda.h", "cuda_runtime_api.h"))
    # The end of cuda.h declares old versions, which programs do not see.
    driver = driver.rpartition("#if defined(__CUDA_API_VERSION_INTERNAL)")[0]
    declared = {
        *re.findall(r"CUresult CUDAAPI (cu\w+)\(", driver),
        *re.findall(r"cudaError_t CUDARTAPI (cuda\w+)\(", runtime),
    }
    # The headers replace some names by those of a version, which they declare too.
    replaced = set(re.findall(r"#\s*define (cu\w+)\s", driver + runtime))
    chosen = sorted(declared & functions.keys() - replaced)
    lines = [f'show<decltype({name})>("{name}");' for name in chosen]
    lines += [f'std::printf("{name} %zu\\n", sizeof({name}));' for name in STRUCTURE_BYTES]
    source = tmp_path / "sizes.cpp"
    source.write_text(
        "#include <cuda.h>\n#include <cuda_runtime_api.h>\n#include <cstdio>\n"
        "template <class T> struct Sizes;\n"
        "template <class R, class... T> struct Sizes<R(T...)> "
        '{ static void print() { int each[] = {0, std::printf(" %zu", sizeof(T))...}; (void)each; } };\n'
        'template <class F> void show(const char *name) { std::printf("%s", name); Sizes<F>::print(); puts(""); }\n'
        "int main() {\n" + "\n".join(lines) + "\n}\n"
    )
    program = tmp_path / "sizes"
    command = ["g++", "-w", str(source), "-I", headers, "-o", str(program)]
    subprocess.run(command, check=True, timeout=SECONDS)
    printed = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=SECONDS).stdout
    found = {line.split()[0]: [int(word) for word in line.split()[1:]] for line in printed.splitlines()}
    assert {name: [ctypes.sizeof(kind) for kind in functions[name].types] for name in chosen} == {
        name: found[name] for name in chosen
    }
    assert len(chosen) > 500
    assert {name: found[name][0] for name in STRUCTURE_BYTES} == STRUCTURE_BYTES


def test_the_guide_lists_the_functions_of_the_runtime_that_are_missing(headers):
    text = Path(headers, "cuda_runtime_api.h").read_text()
    declared = set(re.findall(r"cudaError_t CUDARTAPI (cuda\w+)\(", text)) - {"cudaGetExportTable"}
    functions = runtime_functions()
    missing = {name for name in declared if name not in functions or not _is_implemented(functions[name])}
    rows = GUIDE.read_text().partition("### Missing runtime functions")[2]
    patterns = re.findall(r"`(cuda[\w*]+)`", rows)
    assert len(patterns) > 20
    listed = {name for name in declared for pattern in patterns if fnmatch.fnmatchcase(name, pattern)}
    assert listed - missing == set()
    if int(re.search(r"define CUDART_VERSION\s+(\d+)", text)[1]) <= NEWEST:
        assert missing - listed == set()


def _is_implemented(function):
    same = SAME_ARGUMENTS.get(function.symbol)
    if same is not None:
        return same in driver_functions() and implemented(driver_functions()[same]) is not None
    return any(function.symbol in module.FUNCTIONS for module in table._MODULES)


def test_earlier_versions_exist_even_if_the_bindings_do_not_declare_them(monkeypatch):
    """Version 13.3 of the bindings lacks these. The sizes of the parameters are those at the end of cuda.h."""
    sizes = {"cuCtxCreate_v2": [8, 4, 4], "cuStreamGetCaptureInfo_v2": [8] * 6}
    older = {name: item for name, item in declarations("driver").items() if name not in sizes}
    cached = functions.driver_functions, functions.driver_declarations
    monkeypatch.setattr(functions, "declarations", lambda module: older)
    try:
        for function in cached:
            function.cache_clear()
        found = {name: functions.driver_functions()[name] for name in sizes}
        assert {name: [ctypes.sizeof(kind) for kind in one.types] for name, one in found.items()} == sizes
        assert all(map(implemented, found.values()))
    finally:
        for function in cached:
            function.cache_clear()


def test_libraries_of_changed_code_are_other_libraries(monkeypatch, tmp_path):
    """The folder's name is made of the inputs of the code, so that a start need not generate the code."""
    copied = Path(shutil.copytree(library._HERE, tmp_path / "standins"))
    monkeypatch.setattr(library, "_HERE", copied)
    digests = [library._digest({})]
    for name in ("start.c", "functions.py"):
        with (copied / name).open("a") as file:
            file.write("\n")
        digests.append(library._digest({}))
    digests.append(library._digest({LINKER: "/libnvJitLink.so.13"}))
    assert len({*digests}) == len(digests)


def test_a_runtime_function_takes_the_arguments_of_the_driver_function_that_it_stands_for():
    runtime, driver = runtime_functions(), driver_functions()
    # Older bindings lack some of them.
    known = {name: same for name, same in SAME_ARGUMENTS.items() if name in runtime and same in driver}
    assert not [name for name, same in known.items() if runtime[name].types != driver[same].types]
    assert len(known) > 120


@pytest.mark.needs("in_process")
def test_every_function_of_the_simulator_has_an_entry_in_libcuda():
    functions = backend.chosen().functions
    missing = []
    for symbol, function in driver_functions().items():
        if hasattr(functions, re.sub(r"_v\d+$", "", symbol)) and implemented(function) is None:
            missing.append(symbol)
    # Its first version, which has a parameter less, is refused as well.
    assert set(missing) <= {"cuMulticastBindMem_v2"}
