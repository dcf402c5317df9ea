"""The compile cache: what is found again, and what is not."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import cudart_py as cuda
from cudart_py.compilation import cache
from cudart_py.compilation.compiler import compile_image

SOURCE = 'extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }\n'


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Give every test an empty cache of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(folder))
    return folder


def entries(place):
    return sorted(place.glob("*.image"))


def test_second_compile_is_a_hit(builds):
    first = compile_image(SOURCE, arch=90)
    second = compile_image(SOURCE, arch=90)
    assert len(builds) == 1
    assert (second.ptx, second.cubin) == (first.ptx, first.cubin)


def test_hit_has_everything_that_the_compile_had():
    source = "__constant__ float table[2][3];\ntemplate <int N> __global__ void k(int* x) { int unused; x[0] = N; }\n"
    first = compile_image(source, names=["k<3>"], arch=90)
    second = compile_image(source, names=["k<3>"], arch=90)
    for field in ("name", "arch", "signatures", "variables", "names", "resources", "log"):
        assert getattr(second, field) == getattr(first, field), field
    assert second.log


@pytest.mark.parametrize("option", ["-G", " -G", "--device-debug"])
def test_nothing_is_kept_that_was_compiled_behind_a_compile_for_the_debugger(builds, place, option):
    compile_image(SOURCE, arch=90, options=[option])
    assert len(entries(place)) == 1, "the code for the debugger itself is as every process makes it"
    compile_image(SOURCE, arch=90)
    compile_image(SOURCE, arch=90)
    assert len(builds) == 3
    assert len(entries(place)) == 1


def test_nothing_is_kept_behind_a_program_for_the_debugger(place):
    with cuda.Program(SOURCE, arch=90, options=["-G"]) as program:
        program.compile()
    compile_image(SOURCE, arch=90)
    assert not place.exists()


def test_cache_false_neither_reads_nor_writes(builds, place):
    compile_image(SOURCE, cache=False)
    compile_image(SOURCE, cache=False)
    assert len(builds) == 2
    assert not place.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"arch": 80},
        {"define": {"N": 1}},
        {"options": ["--maxrregcount=32"]},
        {"fast_math": True},
        {"std": "c++20"},
        {"names": ["scale"]},
    ],
)
def test_every_argument_is_in_the_key(builds, change):
    compile_image(SOURCE, arch=90)
    compile_image(SOURCE, **{"arch": 90, **change})
    assert len(builds) == 2


def test_editing_the_source_file_rebuilds(builds, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    compile_image(path)
    path.write_text(SOURCE.replace("*=", "+="))
    assert b"add" in compile_image(path).ptx
    assert len(builds) == 2


def test_editing_a_local_header_rebuilds(builds, tmp_path):
    path, header = tmp_path / "k.cu", tmp_path / "value.cuh"
    path.write_text('#include "value.cuh"\nextern "C" __global__ void k(int* x) { x[0] = VALUE; }\n')
    header.write_text("#define VALUE 1234\n")
    assert b"1234" in compile_image(path).ptx
    header.write_text("#define VALUE 5678\n")
    assert b"5678" in compile_image(path).ptx
    header.write_text("#define VALUE 1234\n")
    compile_image(path)
    assert len(builds) == 2


def test_editing_a_header_of_a_header_rebuilds(builds, tmp_path):
    folder = tmp_path / "include" / "deep"
    folder.mkdir(parents=True)
    (folder / "outer.cuh").write_text('#include "inner.cuh"\n')
    (folder / "inner.cuh").write_text("#define VALUE 1234\n")
    source = '#include <deep/outer.cuh>\nextern "C" __global__ void k(int* x) { x[0] = VALUE; }\n'
    compile_image(source, include=[tmp_path / "include"])
    (folder / "inner.cuh").write_text("#define VALUE 5678\n")
    assert b"5678" in compile_image(source, include=[tmp_path / "include"]).ptx
    assert len(builds) == 2


def test_headers_of_an_include_option_count_too(builds, tmp_path):
    (tmp_path / "value.cuh").write_text("#define VALUE 1234\n")
    source = '#include "value.cuh"\nextern "C" __global__ void k(int* x) { x[0] = VALUE; }\n'
    compile_image(source, options=[f"-I{tmp_path}"])
    (tmp_path / "value.cuh").write_text("#define VALUE 5678\n")
    compile_image(source, options=[f"-I{tmp_path}"])
    assert len(builds) == 2


def test_pre_included_file_counts_too(builds, tmp_path):
    header = tmp_path / "first.h"
    header.write_text("#define VALUE 1234\n")
    source = 'extern "C" __global__ void k(int* x) { x[0] = VALUE; }\n'
    compile_image(source, options=[f"--pre-include={header}"])
    header.write_text("#define VALUE 5678\n")
    compile_image(source, options=[f"--pre-include={header}"])
    assert len(builds) == 2


def test_a_header_that_appears_in_front_of_another_rebuilds(builds, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "value.cuh").write_text("#define VALUE 1234\n")
    source = '#include <value.cuh>\nextern "C" __global__ void k(int* x) { x[0] = VALUE; }\n'
    compile_image(source, include=[first, second])
    (first / "value.cuh").write_text("#define VALUE 5678\n")
    assert b"5678" in compile_image(source, include=[first, second]).ptx


def test_asking_for_a_header_that_appears_rebuilds(builds, tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(
        '#if __has_include("value.cuh")\n#define N 5678\n#else\n#define N 1234\n#endif\n'
        'extern "C" __global__ void k(int* x) { x[0] = N; }\n'
    )
    assert b"1234" in compile_image(path).ptx
    (tmp_path / "value.cuh").write_text("")
    assert b"5678" in compile_image(path).ptx


def test_include_of_a_macro_is_never_cached(builds, tmp_path, place):
    path = tmp_path / "k.cu"
    (tmp_path / "value.cuh").write_text("#define VALUE 1\n")
    path.write_text(
        '#define HEADER "value.cuh"\n#include HEADER\nextern "C" __global__ void k(int* x) { *x = VALUE; }\n'
    )
    compile_image(path)
    compile_image(path)
    assert len(builds) == 2
    assert not place.exists()


def test_headers_that_include_each_other_end(tmp_path):
    (tmp_path / "a.cuh").write_text('#pragma once\n#include "b.cuh"\n')
    (tmp_path / "b.cuh").write_text('#pragma once\n#include "a.cuh"\n')
    path = tmp_path / "k.cu"
    path.write_text('#include "a.cuh"\nextern "C" __global__ void k() {}\n')
    assert list(compile_image(path).signatures) == ["k"]


def test_another_nvrtc_wheel_rebuilds(builds, monkeypatch):
    compile_image(SOURCE)
    monkeypatch.setattr("cudart_py.compilation.headers.installed_wheels", lambda: ("nvidia_cuda_nvrtc-13.99.1",))
    compile_image(SOURCE)
    assert len(builds) == 2


def test_a_changed_library_outside_wheels_rebuilds(builds, monkeypatch, tmp_path):
    library = tmp_path / "libnvrtc.so.13"
    library.write_bytes(b"1")
    monkeypatch.setattr("cudart_py.compilation.compiler.library_path", lambda: str(library))
    compile_image(SOURCE)
    compile_image(SOURCE)
    assert len(builds) == 1
    library.write_bytes(b"22")
    compile_image(SOURCE)
    assert len(builds) == 2


@pytest.mark.parametrize("keep", [0, 10, 40, 200, -1])
def test_truncated_entry_is_rebuilt(builds, place, keep):
    first = compile_image(SOURCE)
    (entry,) = entries(place)
    whole = entry.read_bytes()
    entry.write_bytes(whole[:keep])
    assert compile_image(SOURCE).cubin == first.cubin
    assert len(builds) == 2
    assert len(entry.read_bytes()) == len(whole)


def test_entry_with_a_flipped_bit_is_rebuilt(builds, place):
    compile_image(SOURCE)
    (entry,) = entries(place)
    content = bytearray(entry.read_bytes())
    content[-100] ^= 1
    entry.write_bytes(content)
    compile_image(SOURCE)
    assert len(builds) == 2


def test_unwritable_folder_warns_once_and_compiles(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(blocked))
    monkeypatch.setattr(cache, "_has_warned", False)
    with pytest.warns(cache.CacheWarning, match="CUDART_PY_CACHE"):
        assert compile_image(SOURCE).cubin
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_image(SOURCE).cubin


def test_failed_compile_leaves_no_entry(place):
    with pytest.raises(Exception, match="does not compile"):
        compile_image("nonsense")
    assert not place.exists()


def test_writing_leaves_no_temporary_file(place):
    compile_image(SOURCE)
    assert [path.suffix for path in place.iterdir()] == [".image"]


COMPILE = f"""
import sys
from cudart_py.compilation.compiler import compile_image
image = compile_image({SOURCE!r}, arch=90)
assert list(image.signatures) == ["scale"] and image.cubin
print(*(name for name in sys.modules if name.startswith(("cuda.", "platformdirs"))))
with open("/proc/self/maps") as maps:
    print("libnvrtc" in maps.read())
"""


def test_sixteen_processes_at_once_end_with_one_valid_entry(builds, place):
    processes = [subprocess.Popen([sys.executable, "-c", COMPILE], stdout=subprocess.DEVNULL) for _ in range(16)]
    assert [process.wait() for process in processes] == [0] * 16
    assert len(list(place.iterdir())) == 1
    compile_image(SOURCE, arch=90)
    assert builds == []


def test_hit_in_another_process_loads_no_compiler():
    compile_image(SOURCE, arch=90)
    output = subprocess.run([sys.executable, "-c", COMPILE], capture_output=True, text=True, check=True).stdout
    modules, mapped = output.splitlines()
    assert modules == ""
    assert mapped == "False"


def test_import_loads_no_compiler():
    code = "import sys, cudart_py; assert 'cuda.bindings.nvrtc' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs knows the folder")
def test_the_folder_is_found_without_platformdirs(python):
    program = (
        "import sys; from cudart_py.compilation import cache; print(cache.folder(), 'platformdirs' in sys.modules)"
    )
    assert python(program, CUDART_PY_CACHE="", XDG_CACHE_HOME="/somewhere").stdout == "/somewhere/cudart_py False\n"


def test_cache_info_counts_entries_bytes_hits_and_misses(place):
    before = cache.cache_info()
    compile_image(SOURCE)
    compile_image(SOURCE)
    after = cache.cache_info()
    assert after.folder == str(place)
    assert (before.entries, after.entries) == (0, 1)
    assert after.bytes == entries(place)[0].stat().st_size
    assert (after.hits - before.hits, after.misses - before.misses) == (1, 1)


def test_a_process_begins_with_no_hits_and_no_misses(python):
    assert python("from cudart_py.compilation import cache; print(*cache.cache_info()[3:])").stdout == "0 0\n"


def test_clear_cache_empties_it_and_counts(builds, place):
    compile_image(SOURCE)
    (place / "left.0.0.tmp").write_text("")
    assert cache.clear_cache() == 1
    assert list(place.iterdir()) == []
    compile_image(SOURCE)
    assert len(builds) == 2


def test_clear_cache_leaves_other_files_alone(place):
    compile_image(SOURCE)
    (place / "notes.txt").write_text("")
    cache.clear_cache()
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_clearing_a_cache_that_is_not_there_is_no_error():
    assert cache.clear_cache() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="the rule spelled out is Linux's")
@pytest.mark.parametrize("base", ["", "/somewhere/else"])
def test_default_folder_is_platformdirs_folder(monkeypatch, base):
    import platformdirs

    monkeypatch.delenv(cache.ENVIRONMENT_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    assert Path(cache.folder()) == Path(platformdirs.user_cache_dir("cudart_py", appauthor=False))


def test_environment_variable_may_start_with_a_tilde(monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "~/images")
    assert cache.folder() == os.path.expanduser("~/images")


def test_key_parts_cannot_run_into_each_other():
    assert cache.make_key(["ab", "c"]) != cache.make_key(["a", "bc"])
