"""Modules and libraries are loaded from text, fatbins and nvcc's wrappers of fatbins, in memory and in files."""

import ctypes
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudart_py.compilation.fatbins import compression, container
from cudart_py.simulator import driver
from tests.conftest import MakeFatbin
from tests.simulator.kernels import launch, value_of
from tests.simulator.support import Status, compile_ptx, ok, upload

MODES = ["none", "speed", "balance", "size"]


def ptx(value: int, target: str = "sm_90") -> bytes:
    """Return PTX for an architecture, whose kernel `k` writes a value."""
    return f""".version 8.7
.target {target}
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .b64 %d;
    ld.param.u64 %d, [out];
    st.global.u32 [%d], {value};
    ret;
}}
""".encode()


def written(module: Any) -> int:
    """Return the value that the module's kernel writes."""
    out = upload(np.full(1, -1, np.int32))
    assert launch(ok(driver.cuModuleGetFunction(module, b"k")), ctypes.c_void_p(out)) == Status.CUDA_SUCCESS
    return value_of(out)


@pytest.mark.parametrize("mode", MODES)
def test_a_fatbins_code_is_what_was_packed_however_it_is_compressed(fatbin: MakeFatbin, mode: str) -> None:
    """The text has long and short repetitions, and parts that do not repeat."""
    words = np.random.default_rng().integers(0, 1 << 32, 3000)
    table = ", ".join(map(str, words)) + ", 7" * 5000
    text = ptx(1) + f".visible .global .u32 table[8000] = {{{table}}};\n".encode()
    [entry] = container.read_entries(fatbin((text, "90"), compress=mode))
    assert (entry.kind, entry.arch) == (container.Kind.PTX, "sm_90")
    assert (len(entry.stored) < 0.9 * len(text)) == (mode != "none")
    assert entry.code().split() == text.split()


def test_a_damaged_fatbin_is_an_error_or_has_other_code(fatbin: MakeFatbin) -> None:
    """Neither a changed byte nor a cut raises anything but FatbinError."""
    random = np.random.default_rng()
    for mode in MODES:
        whole = fatbin((ptx(5) * 20, "90"), compress=mode)
        for _ in range(200):
            data = bytearray(whole[: random.integers(1, len(whole) + 1)])
            data[random.integers(len(data))] = random.integers(256)
            try:
                for entry in container.read_entries(bytes(data)):
                    entry.code()
            except compression.FatbinError:
                continue


@pytest.mark.parametrize("mode", MODES)
def test_a_fatbin_loads_from_a_buffer_an_address_a_wrapper_and_a_file(
    context: Any, fatbin: MakeFatbin, tmp_path: Path, mode: str
) -> None:
    value = int(np.random.default_rng().integers(1 << 30))
    image = fatbin((ptx(value), "90"), compress=mode)
    held = ctypes.create_string_buffer(image, len(image))
    wrapper = ctypes.create_string_buffer(struct.pack("<4sI2Q", b"\xb1\x43\x62\x46", 1, ctypes.addressof(held), 0), 24)
    (tmp_path / "a file").write_bytes(image)
    for made in (
        driver.cuModuleLoadData(image),
        driver.cuModuleLoadDataEx(ctypes.addressof(held), 0, None, None),
        driver.cuModuleLoadFatBinary(ctypes.addressof(wrapper)),
        driver.cuModuleLoadFatBinary(bytes(wrapper)),
        driver.cuModuleLoad(bytes(tmp_path / "a file")),
    ):
        assert written(ok(made)) == value


@pytest.mark.parametrize(
    ("targets", "best"),
    [
        (["80", "90", "100"], "90"),
        (["90", "90a", "75"], "90a"),
        (["90a", "90"], "90a"),
        (["89", "100f", "103a"], "89"),
    ],
)
def test_the_highest_architecture_that_runs_here_is_chosen(
    context: Any, fatbin: MakeFatbin, targets: list[str], best: str
) -> None:
    codes = [(ptx(place, f"sm_{target}"), target) for place, target in enumerate(targets)]
    assert written(ok(driver.cuModuleLoadData(fatbin(*codes)))) == targets.index(best)


def test_an_image_without_ptx_for_the_device_is_refused_with_what_it_has(context: Any, fatbin: MakeFatbin) -> None:
    # The last field of a wrapper of version 1 is no array of parts.
    held = ctypes.create_string_buffer(fatbin((ptx(1, "sm_100"), "100")))
    part = ctypes.create_string_buffer(fatbin((ptx(1), "90")))
    array = (ctypes.c_uint64 * 2)(ctypes.addressof(part), 0)
    fields = (b"\xb1\x43\x62\x46", 1, ctypes.addressof(held), ctypes.addressof(array))
    for image, contents in (
        (struct.pack("<4sI2Q", *fields), "a fatbin with PTX for sm_100"),
        (b"\x7fELF and more", "a cubin, machine code"),
        (fatbin((ptx(1, "sm_100"), "100")), "a fatbin with PTX for sm_100"),
        (fatbin(), "a fatbin with nothing"),
    ):
        assert driver.cuModuleLoadData(image) == (Status.CUDA_ERROR_NO_BINARY_FOR_GPU, None)
        report = str(driver.take_report())
        assert contents in report
        assert "compile with PTX, as with nvcc -arch=compute_90" in report


def test_a_missing_decompressor_is_reported_with_the_extra(
    context: Any, fatbin: MakeFatbin, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = fatbin((ptx(1) + b"// text\n.visible .global .u32 zeros[8];\n" * 20, "90"), compress="size")
    for name in ("backports", "compression"):  # the latter from Python 3.14 on
        monkeypatch.setitem(sys.modules, name, None)
    assert driver.cuModuleLoadData(image) == (Status.CUDA_ERROR_NOT_SUPPORTED, None)
    assert "pip install 'cudart-py[run]'" in str(driver.take_report())


def test_a_missing_file_is_refused_by_name(context: Any, tmp_path: Path) -> None:
    for name in (tmp_path / "nothing", tmp_path):
        assert driver.cuModuleLoad(bytes(name)) == (Status.CUDA_ERROR_FILE_NOT_FOUND, None)
        assert str(name) in str(driver.take_report())
    assert driver.cuModuleLoad(None) == (Status.CUDA_ERROR_INVALID_VALUE, None)


def test_a_wrapper_of_linked_code_is_linked_from_its_parts(context: Any, fatbin: MakeFatbin) -> None:
    """nvcc -rdc=true -arch=compute_90 leaves the link to the driver. The device runtime, without PTX, is skipped."""
    caller = 'extern __device__ int twice(int); extern "C" __global__ void k(int* x) { *x = twice(21); }'
    called = "__device__ int twice(int x) { return 2 * x; }"
    parts = [fatbin((compile_ptx(source, b"-rdc=true"), "90"), compress="size") for source in (caller, called)]
    parts.append(fatbin((ptx(1, "sm_120"), "120")))
    held = [ctypes.create_string_buffer(part, len(part)) for part in (fatbin(), *parts)]
    array = (ctypes.c_uint64 * 4)(*map(ctypes.addressof, held[1:]), 0)
    fields = (b"\xb1\x43\x62\x46", 2, ctypes.addressof(held[0]), ctypes.addressof(array))
    assert written(ok(driver.cuModuleLoadData(struct.pack("<4sI2Q", *fields)))) == 42
