"""The compile cache: what hits and what misses. Changes of headers are in test_includes."""

import os
import sys

import pytest

from cudart_py.compilation import cache
from cudart_py.compilation.compiler import compile_image

pytestmark = pytest.mark.usefixtures("place")
SOURCE = 'extern "C" __global__ void scale(float* x, float a) { x[threadIdx.x] *= a; }\n'


def test_a_hit_has_everything_that_the_compile_had(builds):
    source = "__constant__ float table[2][3];\ntemplate <int N> __global__ void k(int* x) { int unused; x[0] = N; }\n"
    first, second = (compile_image(source, names=["k<3>"], arch=90) for _ in range(2))
    assert len(builds) == 1
    for field in ("name", "arch", "ptx", "cubin", "ltoir", "signatures", "variables", "names", "attributes", "log"):
        assert getattr(second, field) == getattr(first, field), field
    assert second.log


@pytest.mark.parametrize("option", ["-G", " -G", "--device-debug"])
def test_nothing_is_kept_that_was_compiled_behind_a_compile_for_the_debugger(builds, place, option):
    compile_image(SOURCE, arch=90, options=[option])
    assert len(list(place.iterdir())) == 1, "the code for the debugger itself is as every process makes it"
    compile_image(SOURCE, arch=90)
    compile_image(SOURCE, arch=90)
    assert len(builds) == 3
    assert len(list(place.iterdir())) == 1


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


def test_key_parts_cannot_run_into_each_other():
    keys = {cache.make_key(parts) for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["", "abc"], ["abc", ""])}
    assert len(keys) == 5


@pytest.mark.parametrize("wheel", ["cudart_py", "nvidia_cuda_nvrtc"])
def test_another_release_of_this_package_or_of_the_compiler_rebuilds(builds, monkeypatch, wheel):
    compile_image(SOURCE)
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listdir(path), f"{wheel}-99.dist-info"])
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


COMPILE = f"""
import sys
from cudart_py.compilation.compiler import compile_image
from cudart_py.compilation import cache
image = compile_image({SOURCE!r}, arch=90)
assert list(image.signatures) == ["scale"] and image.cubin
print(*(name for name in sys.modules if name.startswith(("cuda.", "platformdirs"))))
with open("/proc/self/maps") as maps:
    print("libnvrtc" in maps.read(), *cache.cache_info()[3:])
"""


def test_processes_at_once_end_with_one_valid_entry_and_a_hit_loads_no_compiler(place, python, at_once):
    at_once(COMPILE, 6)
    assert len(list(place.iterdir())) == 1
    assert python(COMPILE, own_imports=True).stdout == "\nFalse 1 0\n"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere platformdirs knows the folder")
def test_the_folder_is_found_without_platformdirs(python):
    program = (
        "import sys; from cudart_py.compilation import cache; print(cache.folder(), 'platformdirs' in sys.modules)"
    )
    assert python(program, CUDART_PY_CACHE="", XDG_CACHE_HOME="/somewhere").stdout == "/somewhere/cudart_py False\n"


@pytest.mark.skipif(sys.platform != "linux", reason="the rule spelled out is Linux's")
@pytest.mark.parametrize("base", ["", "/somewhere/else", "relative"])
def test_default_folder_is_platformdirs_folder(monkeypatch, base):
    import platformdirs

    monkeypatch.delenv(cache.ENVIRONMENT_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", base)
    found = cache.folder()
    monkeypatch.setenv("XDG_CACHE_HOME", base.replace("relative", ""))  # XDG ignores relative paths
    assert found == platformdirs.user_cache_dir("cudart_py", appauthor=False)


def test_environment_variable_may_start_with_a_tilde(monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "~/images")
    assert cache.folder() == os.path.expanduser("~/images")


def test_the_cache_is_counted_and_emptied(builds, place):
    assert cache.clear_cache() == 0, "the cache has no folder yet"
    before = cache.cache_info()
    for _ in range(3):
        compile_image(SOURCE)
    (entry,) = place.iterdir()
    after = cache.cache_info()
    assert after[:3] == (str(place), 1, entry.stat().st_size)
    assert (before.entries, after.hits - before.hits, after.misses - before.misses) == (0, 2, 1)
    for name in ("left.0.0.tmp", "notes.txt"):
        (place / name).write_text("")
    assert cache.clear_cache() == 1
    assert [path.name for path in place.iterdir()] == ["notes.txt"]
    compile_image(SOURCE)
    assert len(builds) == 2
