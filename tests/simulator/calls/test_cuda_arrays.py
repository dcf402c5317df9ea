"""CUDA arrays: which exist, what the driver says of them, and copies to and from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import INVALID
from tests.simulator.support import Player, Status, create_array, ok, struct, upload

FLOAT = bindings.CUarray_format.CU_AD_FORMAT_FLOAT
LAYERED, SURFACE = bindings.CUDA_ARRAY3D_LAYERED, bindings.CUDA_ARRAY3D_SURFACE_LDST
DEVICE, ARRAY = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE, bindings.CUmemorytype.CU_MEMORYTYPE_ARRAY


def copy(shape: tuple[int, int, int], **settings: Any) -> Any:
    """Return the parameters of a copy of depth, height and bytes."""
    depth, height, width = shape
    return struct("CUDA_MEMCPY3D", **{"Depth": depth, "Height": height, "WidthInBytes": width, **settings})


def from_device(address: int, array: Any, shape: tuple[int, int, int], **settings: Any) -> Any:
    source = {"srcMemoryType": DEVICE, "srcDevice": address, "srcPitch": shape[2], "srcHeight": shape[1]}
    return copy(shape, **source, dstMemoryType=ARRAY, dstArray=array, **settings)


@pytest.mark.parametrize(
    ("extents", "flags", "exists"),
    [
        ((131072,), 0, True),
        ((131073,), 0, False),
        ((32769,), SURFACE, False),
        ((8, 65536), 0, True),
        ((8, 65537), 0, False),
        ((8, 8, 16385), 0, True),  # the other limits of a 3-D array allow it
        ((8192, 2, 16385), SURFACE, False),
        ((8, 0, 8), 0, False),
        ((8, 0, 2048), LAYERED, True),
        ((8, 0, 2049), LAYERED, False),
        ((8, 8, 2048), LAYERED | SURFACE, True),
        ((8, 8), LAYERED, False),
        ((0, 8), 0, False),
    ],
)
def test_each_kind_of_array_has_its_limits(context: Any, extents: tuple[int, ...], flags: int, exists: bool) -> None:
    result = create_array(*extents, flags=flags)
    assert result[0] == (Status.CUDA_SUCCESS if exists else INVALID)
    if exists:
        ok(driver.cuArrayDestroy(result[1]))


def test_an_array_is_described_as_it_was_asked_for_until_its_end(context: Any) -> None:
    gone = Status.CUDA_ERROR_INVALID_HANDLE
    array, other = ok(create_array(5, 4, 3, flags=SURFACE, channels=2)), ok(create_array(5))
    found = ok(driver.cuArray3DGetDescriptor(array))
    assert (found.Width, found.Height, found.Depth) == (5, 4, 3)
    assert (found.Format, found.NumChannels, found.Flags) == (FLOAT, 2, SURFACE)
    assert ok(driver.cuArrayGetDescriptor(array)).Height == 4
    ok(driver.cuArrayDestroy(array))
    assert driver.cuArrayDestroy(array) == (gone,)
    ok(driver.cuDevicePrimaryCtxReset(0))
    ok(driver.cuCtxSetCurrent(ok(driver.cuDevicePrimaryCtxRetain(0))))
    assert driver.cuArray3DGetDescriptor(other)[0] == gone


@pytest.mark.parametrize(
    "settings",
    [{"dstXInBytes": 2}, {"dstXInBytes": 4}, {"dstY": 1}, {"dstZ": 1}, {"WidthInBytes": 18}],
)
def test_a_copy_stays_within_the_array_and_its_elements(context: Any, settings: dict[str, int]) -> None:
    array, source = ok(create_array(5, 4, 3)), upload(np.zeros(60, np.float32))
    assert driver.cuMemcpy3D(from_device(source, array, (3, 4, 20), **settings)) == (INVALID,)


def test_a_queued_copy_to_an_array_that_is_gone_is_a_fault_of_the_graph(play: Player) -> None:
    array, source = ok(create_array(5)), upload(np.zeros(5, np.float32))
    play("begin s relaxed")
    ok(driver.cuMemcpy3DAsync(from_device(source, array, (1, 1, 20)), play["s"]))
    executable = ok(driver.cuGraphInstantiate(play("end s"), 0))
    ok(driver.cuArrayDestroy(array))
    ok(driver.cuGraphLaunch(executable, play["s"]))
    play("sync s -> ILLEGAL_ADDRESS")
    assert "array allocation" in driver.take_report()
