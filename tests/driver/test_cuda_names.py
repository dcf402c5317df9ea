"""CUDA's own names raise an error with their equivalents, which the pages in docs/ list."""

import itertools
import operator
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import checkpoints, coredumps, green_contexts, libraries, multicast
from cudart_py.hints import cuda_names
from tests.tables import quoted, rows

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {page: rows((DOCS / page).read_text(encoding="utf-8")) for page in ("names.md", "enumerators.md")}
# By name: the code of its rows' last cells.
NAMES: dict[str, list[str]] = {}
for row in itertools.chain(*PAGES.values()):
    for name in quoted(" ".join(row[:-1])):
        if name.isidentifier():
            NAMES.setdefault(name, []).extend(quoted(row[-1]))
MODULES = {"cuda": cuda} | {
    module.__name__.rpartition(".")[2]: module
    for module in (checkpoints, coredumps, green_contexts, libraries, multicast)
}


# Calls that end the use of an object, or that need other memory, more dimensions or a capture.
UNSUITED = re.compile(r"close\(|register_host|memcpy[23]d|_value\(|external=")


def error_of(path: str) -> str:
    with pytest.raises(AttributeError) as raised:
        eval(f"cp.{path}", {"cp": cuda})
    return str(raised.value)


def test_each_name_on_the_pages_is_answered_with_its_equivalent_and_names_that_exist() -> None:
    assert len(NAMES) > 1000
    for name, codes in NAMES.items():
        text = error_of(name)
        assert "docs/" not in text
        # On an object, only the last name of `Class.method(...)` is written.
        found = [re.findall(r"\w+", re.split("[(=]", code)[0])[-1:] for code in codes]
        assert not codes or any(last[0] in text for last in found if last), name
        for dotted in re.findall(r"\b(?:cuda|libraries|coredumps|green_contexts|multicast)(?:\.\w+)+", text):
            module, _, rest = dotted.partition(".")
            assert rest.startswith("raw.") or operator.attrgetter(rest)(MODULES[module]), text


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cudaMemcpyAsync", "device_array.to_host(out=pinned, stream=stream)"),
        ("cudaMemcpyKind.cudaMemcpyHostToDevice", "copy_from(source)"),
        ("cudaMemcpyToSymbolAsync", "module.symbol(name).copy_from(source, stream=stream)"),
        ("cudaMemAdviseUnsetReadMostly", 'write cuda.advise(array, "unset_read_mostly")'),
        ("cudaErrorECCUncorrectable", "cuda.CudaError"),
        ("cuStreamWaitValue32", "stream.wait_value("),
        ("cuMemAlloc", "cuda.raw.cuMemAlloc"),
        ("cublasZgemm", "libraries.gemm"),
        ("cudaGreenCtxCreate", "from cudart_py import green_contexts"),
        ("cudaGetLastError", "left out: every failure raises an exception"),
        ("runtime.memcpyDeviceToHost", "to_host()"),  # CuPy's cp.cuda.runtime
        ("malloc", "cuda.empty(shape)"),
        ("stream_create", "cuda.Stream()"),
        ("deviceSynchronize", "device.synchronize()"),
        ("cudaOfTheFuture", "docs/names.md"),
    ],
)
def test_a_name_of_cuda_says_what_to_write(name: str, code: str) -> None:
    assert code in error_of(name)
    assert not hasattr(cuda, name)


def test_an_import_of_cudas_name_says_what_to_write() -> None:
    with pytest.raises(
        ImportError, match=r"cannot import name 'cudaMalloc' from 'cudart_py': write cuda\.empty\(shape"
    ):
        exec("from cudart_py import cudaMalloc")


def test_the_libraries_answer_their_routines_in_c() -> None:
    with pytest.raises(AttributeError, match=r"write libraries\.spmv"):
        _ = libraries.cusparseSpMV


def test_names_that_are_not_cudas_stay_unknown() -> None:
    for name in ("cumsum_of", "cufoo", "CUBE", "custom", "cub", "cublas"):
        assert error_of(name) == f"module 'cudart_py' has no attribute {name!r}"


def test_what_the_errors_say_runs(device: cuda.Device) -> None:
    """Run the code of some errors on values that a program has."""
    host = np.arange(4, dtype=np.float32)
    names: dict[str, Any] = {
        "cuda": cuda,
        "array": cuda.managed_empty(1, np.int32),
        "device": device,
        "device_array": cuda.to_device(host),
        "dst": cuda.zeros(4, np.float32),
        "event": cuda.Event().record(),
        "host": host,
        "host_array": host.copy(),
        "shape": 4,
        "source": host,
        "src": host,
        "stream": cuda.Stream(),
        "value": 0,
    }
    ran = 0
    for name in NAMES:
        write = re.search(r": write ([^;]+\))(; the raw call is .*| \(after .*)?$", error_of(name))
        code = write[1] if write else ""
        used = set(re.findall(r"(?<![\w.\"])[a-z_]\w*(?=[.,)\[])", code))
        if " " not in re.sub(r", |\"[^\"]*\"", "", code) and used <= names.keys() and not UNSUITED.search(code):
            eval(code or "None", dict(names))
            ran += bool(code)
    assert ran > 30


def test_a_wheel_has_the_pages_beside_the_package(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "cudart_py" / "hints"
    package.mkdir(parents=True)
    assert cuda_names.find("names.md") == DOCS / "names.md"
    (package / "names.md").touch()
    assert cuda_names.find("names.md", package) == package / "names.md"
