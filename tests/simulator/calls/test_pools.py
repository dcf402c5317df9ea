from __future__ import annotations

import ctypes
from typing import Any

import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from tests.simulator.kernels import function, launch
from tests.simulator.support import Player, ok, struct

Attribute = bindings.CUmemPool_attribute


@pytest.fixture
def pool(context: Any) -> Any:
    """The default pool, which keeps what it has."""
    found = ok(driver.cuDeviceGetDefaultMemPool(0))
    ok(driver.cuMemPoolSetAttribute(found, Attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, bindings.cuuint64_t(2**64 - 1)))
    return found


FREED = "take s a, free s a, "


@pytest.mark.parametrize(
    ("steps", "again"),
    [
        (FREED + "take s b", True),
        (FREED + "take t b", False),
        (FREED + "sync s, take t b", True),
        (FREED + "record e s, wait t e, take t b", True),
        (FREED + "destroy s, take t b", True),
        ("take s a, run s work, record e s, free s a, destroy s, take t b", False),
        ("take s a, run s work, record e s, free s a, destroy s, sync e, take t b", True),
        ("take s a, fill s a 1048576, free s a, take s b 786432, fill s b 786432, sync s", True),
    ],
)
def test_a_block_is_given_again_to_work_that_comes_after_its_free(pool, play, steps, again):
    play(steps)
    assert (play["a"] == play["b"]) is again


def test_the_rules_can_be_switched_off(pool: Any, play: Player) -> None:
    for rule in ("FOLLOW_EVENT_DEPENDENCIES", "ALLOW_OPPORTUNISTIC"):
        ok(driver.cuMemPoolSetAttribute(pool, getattr(Attribute, f"CU_MEMPOOL_ATTR_REUSE_{rule}"), 0))
    play(FREED + "sync s, take t b")
    assert play["a"] != play["b"]


def test_idle_blocks_make_room_and_either_free_takes_either_allocation_once(pool: Any, play: Player) -> None:
    start = ok(driver.cuMemGetInfo())
    play("take s a 10485760, free s a, take s b 52428800, free s b, take s c 26214400")
    play("free s c, free s c -> INVALID_VALUE, fill s c -> INVALID_VALUE, take null a")
    ok(driver.cuMemFreeAsync(ok(driver.cuMemAlloc(1 << 20)), 0))
    ok(driver.cuMemFree(play["a"]))
    ok(driver.cuCtxSynchronize())
    ok(driver.cuMemPoolTrimTo(pool, 0))
    assert ok(driver.cuMemGetInfo()) == start


def test_access_to_a_pool_is_given_to_other_devices(context: Any) -> None:
    pool, flags = ok(driver.cuDeviceGetDefaultMemPool(0)), bindings.CUmemAccess_flags
    description = struct(
        "CUmemAccessDesc",
        location__type=bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE,
        location__id=1,
        flags=flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    )
    assert ok(driver.cuMemPoolGetAccess(pool, description.location)) == flags.CU_MEM_ACCESS_FLAGS_PROT_NONE
    ok(driver.cuMemPoolSetAccess(pool, [description], 1))
    assert ok(driver.cuMemPoolGetAccess(pool, description.location)) == description.flags


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ("take t a, fill s a, free t a, sync t", ["which was freed"]),
        ("take null a, fill s a, free null a, sync null", ["freed in the legacy default stream", "(stream=s)"]),
        (
            "take null a 512, free null a, record e null, take null b 400, wait s e, fill s b 400",
            ["0 bytes into the 400-byte allocation", "has not reached the allocation", "(stream=s)"],
        ),
    ],
)
def test_work_that_the_allocations_stream_does_not_order_is_a_fault_with_the_remedy(pool, play, steps, words):
    play(f"{steps}, sync s -> ILLEGAL_ADDRESS")
    report = driver.take_report() or ""
    assert all(word in report for word in words), report


def test_work_that_is_older_than_an_allocation_means_what_was_there_before(pool, play, module):
    play("take null a 12")
    launch(function(module, "bounded"), ctypes.c_void_p(play["a"]), block=(128, 1, 1))
    play("free null a, take null b 400")
    assert play["a"] == play["b"]
    play("sync null -> ILLEGAL_ADDRESS")
    assert "after the end of the 12-byte" in (driver.take_report() or "")
