"""docs/enumerators.md: every name from CUDA exists, and so does its counterpart in this package."""

import fnmatch
import importlib
import operator
import pkgutil
import re
from pathlib import Path

import pytest
from cuda.bindings import driver, runtime

import cudart_py as cuda
from tests.tables import quoted, rows

PAGE = (Path(__file__).parents[1] / "docs" / "enumerators.md").read_text(encoding="utf-8")
ROWS = [[quoted(cell) for cell in row] for row in rows(PAGE) if "`" in "".join(row)]
OF_CUDA = [row for row in ROWS if len(row) == 3]
OF_LIBRARIES = [row for row in ROWS if len(row) == 2]


def members(module):
    enums = [value for value in vars(module).values() if hasattr(value, "__members__")]
    return {name for enum in enums for name in enum.__members__} | set(dir(module))


def test_every_enumerator_exists_and_none_of_these_kinds_is_missing():
    for module, column in ((runtime, 0), (driver, 1)):
        known = members(module)
        assert [name for row in OF_CUDA for name in row[column] if not fnmatch.filter(known, name)] == []
    named = {name for row in OF_CUDA for name in row[0]}
    kinds = "MemcpyKind MemoryType MemoryAdvise StreamCaptureMode AccessProperty TextureAddressMode"
    for kind in f"{kinds} TextureFilterMode TextureReadMode".split():
        assert set(getattr(runtime, f"cuda{kind}").__members__) <= named, kind


def exists(text):
    """Check whether a text is a public name such as `Stream.capture`, a limit, or a keyword argument such as `hit=`."""
    *owners, last = re.match(r"[\w.]+", text)[0].split(".")
    try:
        owner = pkgutil.resolve_name(".".join(["cudart_py", *owners]))  # imports modules such as `coredumps`
    except AttributeError:
        owner = None
    if owner is None or not (hasattr(owner, last) or last in getattr(owner, "__annotations__", {})):
        return text.endswith("=") or hasattr(cuda.Device(0).limits, text.removeprefix("device.limits."))
    return True


def test_every_name_of_ours_exists():
    texts = [text for row in OF_CUDA for text in row[2] if text not in ("TypeError", "ValueError")]
    assert [text for text in texts if not exists(text)] == []


def test_an_error_raises_the_class_beside_it():
    rows = [row for row in OF_CUDA if row[1] and re.fullmatch(r"CUDA_ERROR_\w+", row[1][0])]
    assert rows
    for runtimes, drivers, ours in rows:
        for code in [
            *map(runtime.cudaError_t.__members__.get, runtimes),
            *map(driver.CUresult.__members__.get, drivers),
        ]:
            with pytest.raises(operator.attrgetter(ours[0])(cuda)):
                cuda.check((code,))


def plain(name):
    return name.replace("_", "").lower()


def of_library(name):
    """Return nvmath's module for a routine or an enumerator, and its name without the library's prefix."""
    for library in ("cublasLt", "cublas", "cudss", "cufft", "cusparse", "cusolverDn", "curand"):
        if plain(name).startswith(library.lower()):
            return importlib.import_module(f"nvmath.bindings.{library}"), name[len(library) :]
    raise AssertionError(f"{name} is of no library")


@pytest.mark.needs("libraries")
def test_every_routine_and_enumerator_of_the_libraries_exists():
    for name in (name for row in OF_LIBRARIES for name in row[0]):
        module, rest = of_library(name.replace("<t>", "S"))
        known = {plain(function) for function in dir(module)}
        kinds = [kind for kind in vars(module).values() if hasattr(kind, "__members__")]
        ends = [plain(member) for kind in kinds for member in kind.__members__]
        assert plain(rest) in known or any(plain(rest).endswith(end) for end in ends), name


@pytest.mark.needs("libraries")
def test_every_function_of_our_libraries_is_named():
    libraries = importlib.import_module("cudart_py.libraries")
    named = set(re.findall(r"`libraries\.(\w+)", PAGE))
    assert named <= set(libraries.__all__)
    # Without a counterpart in C.
    others = {"Plan", "TransformPlan", "IllConditionedWarning"}
    others |= {"NotConvergedError", "NotPositiveDefiniteError", "SingularMatrixError"}
    conversions = {"bfloat16", "complex32", "from_bfloat16", "to_bfloat16"}
    conversions |= {"float8_e4m3", "float8_e5m2", "from_float8", "to_float8"}
    assert set(libraries.__all__) - named == others | conversions
