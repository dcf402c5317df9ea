import ctypes
import re
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from cudart_py.simulator import driver
from cudart_py.simulator.state import contexts, memory
from tests.simulator.kernels import function, launch
from tests.simulator.support import Player, Status, download, ok, struct, upload

MEBIBYTE = 1 << 20


def in_reach(address: int) -> bool:
    return address in contexts.current().memory.extents()[0].tolist()


def allocate(size: int, at: int | None = None) -> int:
    """Allocate memory; `at` is a freed address to reuse, as happens once all addresses have been used."""
    if at is not None:
        memory.space.region._cursor = at
    address = int(ok(driver.cuMemAlloc(size)))
    assert at in (None, address)
    return address


def freed(size: int) -> int:
    address = allocate(size)
    ok(driver.cuMemFree(address))
    return address


@pytest.mark.parametrize("size", [1, 100, 512, 40_000, 1_000_000])
def test_allocations_lie_apart_and_where_none_has_been(context: Any, size: int) -> None:
    addresses = {freed(size) for _ in range(200)}
    for _ in range(20):
        address = allocate(size)
        assert address % 512 == 0
        assert memory.live.find(address - 1) is memory.live.find(address + size) is None
        addresses.add(address)
    assert len(addresses) == 220


def test_memory_is_freed_once_and_its_pages_are_gone_from_the_process(context: Any) -> None:
    pinned, device = ok(driver.cuMemHostAlloc(64, 0)), ok(driver.cuMemAlloc(10_000_000))
    for free, address in ((driver.cuMemFree, device), (driver.cuMemFreeHost, pinned)):
        ok(free(address))
        assert free(address) == (Status.CUDA_ERROR_INVALID_VALUE,)
    with open("/proc/self/maps", encoding="ascii") as lines:
        for line in lines:
            pages, access = line.split()[:2]
            start, end = (int(part, 16) for part in pages.split("-"))
            assert not start <= int(device) < end or access == "---p"


def test_another_devices_memory_is_in_reach_only_with_peer_access(two_devices: list[Any]) -> None:
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    address = allocate(100)
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    assert not in_reach(address)
    assert "no peer access" in contexts.current().memory.describe(address)
    ok(driver.cuCtxEnablePeerAccess(two_devices[1], 0))
    assert in_reach(address)


def test_registered_memory_is_in_reach_until_it_is_unregistered(context: Any) -> None:
    array = np.zeros(1000, np.uint8)
    address = array.ctypes.data
    ok(driver.cuMemHostRegister(array, 1000, 0))
    assert in_reach(address)
    assert int(ok(driver.cuMemHostGetDevicePointer(address, 0))) == address
    overlapping = driver.cuMemHostRegister(address + 500, 1000, 0)
    assert overlapping == (Status.CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,)
    ok(driver.cuMemHostUnregister(address))
    assert not in_reach(address)
    assert driver.cuMemHostUnregister(address) == (Status.CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,)


def assert_described(pattern: str, address: int) -> None:
    assert re.fullmatch(pattern, memory.describe(address)), memory.describe(address)


def test_an_address_is_described_by_what_is_near_it(context: Any) -> None:
    address = allocate(4096)
    name = f"the 4096-byte allocation at {address:#x}, allocated at {__file__}:.*"
    assert_described(f"12 bytes after the end of {name}", address + 4108)
    assert_described(f"1 byte into {name}", address + 1)
    assert_described(f"4 bytes before the start of {name}", address - 4)
    assert_described("the null pointer", 0)
    assert_described("an invalid address.*", 8)
    ok(driver.cuMemFree(address))
    assert_described(f"8 bytes into {name}, which was freed at {__file__}:.*", address + 8)
    neighbour, far = allocate(8192), allocate(64 * MEBIBYTE - 8192)
    assert_described("0 bytes after the end of the 8192-byte.*", neighbour + 8192)
    assert_described("no allocation is near it", far + 66 * MEBIBYTE)


def test_an_address_in_the_gap_between_two_allocations_is_described_by_both_the_nearest_first(context: Any) -> None:
    first, second = allocate(400), allocate(200)
    if second - first > 1024:  # a slab of small allocations was full after the first
        first, second = allocate(400), allocate(200)
    end = first + 400
    gap = second - end
    assert 64 < gap < 1024
    after, before = (
        rf"the {size}-byte allocation at {address:#x}, allocated at \S+"
        for size, address in ((400, first), (200, second))
    )
    assert_described(f"0 bytes after the end of {after}", end)
    assert_described(f"4 bytes after the end of {after}, and {gap - 4} bytes before the start of {before}", end + 4)
    assert_described(f"4 bytes before the start of {before}, and {gap - 4} bytes after the end of {after}", second - 4)
    assert_described(f"8 bytes after the end of {before}", second + 208)


def test_where_memory_was_freed_the_nearest_of_live_and_freed_is_named_first(context: Any) -> None:
    address = freed(8 * MEBIBYTE)
    allocate(MEBIBYTE, at=address)
    second = rf"into the 8388608-byte .* which was freed at {__file__}:\d+"
    assert_described(f"8 bytes after the end of the 1048576-byte .* {second}", address + MEBIBYTE + 8)
    assert_described(f"3145728 bytes {second}", address + 3 * MEBIBYTE)
    inside = allocate(MEBIBYTE // 4, at=freed(MEBIBYTE) + MEBIBYTE // 2)
    second = rf"into the 1048576-byte .* which was freed at {__file__}:\d+"
    assert_described(f"16 bytes before the start of the 262144-byte .* {second}", inside - 16)


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the checks off, which keep freed addresses from being given out again."""
    monkeypatch.setenv("CUDART_PY_SANITIZER", "off")


@pytest.mark.usefixtures("unchecked")
def test_the_live_allocation_in_freed_ones_place_is_named_first_and_the_last_of_those_second(play: Player) -> None:
    play("take null keep, free null keep, take null a 8192, free null a, take null b 8100, free null b")
    play("take null c 7996, sync null")
    assert play["a"] == play["b"] == play["c"]
    second = "; earlier, it was 8000 bytes into the 8100-byte .*, which was freed"
    assert_described(f"4 bytes after the end of the 7996-byte allocation .*{second}", play["a"] + 8000)
    assert_described("7995 bytes into the 7996-byte allocation.*", play["a"] + 7995)


@pytest.mark.parametrize("checks", ["off", "warn"])
@pytest.mark.parametrize("engine", ["auto", "numpy", "native"])
def test_a_missing_bound_is_blamed_on_the_allocation_that_was_indexed(play, module, monkeypatch, engine, checks):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
    monkeypatch.setenv("CUDART_PY_SANITIZER", checks)
    pool, keep = ok(driver.cuDeviceGetDefaultMemPool(0)), bindings.cuuint64_t(2**40)
    release = bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    ok(driver.cuMemPoolSetAttribute(pool, release, keep))
    for name, size in (("a", 8192), ("b", 7996)):
        play(f"take null {name} {size}, fill null {name} {size}")
        parameters = ctypes.c_void_p(play[name]), ctypes.c_int(1), ctypes.c_uint(2048)
        launch(function(module, "add"), *parameters, grid=(8, 1, 1), block=(256, 1, 1))
        if name == "a":
            play("free null a, sync null")
    play("sync null -> ILLEGAL_ADDRESS")
    report = driver.take_report() or ""
    assert "out of bounds: 0 bytes after the end of the 7996-byte allocation at" in report
    earlier = re.search(r"; earlier, it was 7996 bytes into the 8192-byte allocation at .* which was freed", report)
    assert (earlier is not None) == (checks == "off")


INVALID = (Status.CUDA_ERROR_INVALID_VALUE,)
SIZE = 1000
DEVICE = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
HOST = bindings.CUmemorytype.CU_MEMORYTYPE_HOST


def test_the_host_side_is_a_buffer_or_an_address(context: Any) -> None:
    data, address = np.random.default_rng(1).integers(0, 256, SIZE, np.uint8), int(ok(driver.cuMemAlloc(SIZE)))
    for source in (data.tobytes(), data, data.ctypes.data):
        ok(driver.cuMemsetD8(address, 0, SIZE))
        ok(driver.cuMemcpyHtoD(address, source, SIZE))
        assert (download(address, SIZE) == data).all()


def test_bytes_outside_an_allocation_and_sides_exchanged_or_null_are_an_invalid_value(context: Any) -> None:
    device, other = upload(np.zeros(SIZE, np.uint8)), upload(np.zeros(2 * SIZE, np.uint8))
    host = np.zeros(2 * SIZE, np.uint8).ctypes.data
    for offset, size in ((0, SIZE + 1), (1, SIZE), (-1, 5), (SIZE, 1), (SIZE + 200, 1)):
        assert driver.cuMemcpyHtoD(device + offset, host, size) == INVALID
        assert driver.cuMemcpyDtoH(host, device + offset, size) == INVALID
        assert driver.cuMemcpyDtoD(device + offset, other, size) == INVALID
        assert driver.cuMemcpyDtoD(other, device + offset, size) == INVALID
        assert driver.cuMemcpy(device + offset, host, size) == INVALID
        assert driver.cuMemsetD8(device + offset, 0, size) == INVALID
    for destination, source in ((host, device), (device, None), (0, host)):
        assert driver.cuMemcpyHtoD(destination, source, SIZE) == INVALID
    assert driver.cuMemcpyDtoH(device, host, SIZE) == INVALID
    ok(driver.cuMemcpyHtoD(0, None, 0))


@pytest.mark.filterwarnings("ignore::cudart_py.errors.SimulatorWarning")  # the missing synchronization is a race
def test_only_a_fill_of_memory_that_the_host_sees_is_waited_for(stream: Any) -> None:
    def seen(address: int) -> set[int]:
        return set((ctypes.c_uint8 * SIZE).from_address(address))

    managed = int(ok(driver.cuMemAllocManaged(SIZE, 1)))
    ok(driver.cuMemsetD8Async(managed, 3, SIZE, 0))
    assert seen(managed) == {0}
    ok(driver.cuMemsetD8(managed, 4, SIZE))
    assert seen(managed) == {4}
    source, destination = upload(np.ones(SIZE, np.uint8)), upload(np.zeros(SIZE, np.uint8))
    ok(driver.cuMemcpyDtoD(destination, source, SIZE))
    assert seen(destination) == {0}
    # Without the missing synchronization, the copy reads stale data.
    result = np.zeros(SIZE, np.uint8)
    ok(driver.cuMemsetD8Async(source, 9, SIZE, stream))
    ok(driver.cuMemcpyDtoH(result, source, SIZE))
    assert (result == 1).all()


ENDS: list[tuple[dict[str, Any], bool]] = [
    ({"Y": 3, "height": 4, "depth": 2}, True),
    ({"Y": 4, "height": 4, "depth": 2}, False),  # a slice has 7 rows
    ({"Y": 4, "height": 4, "Z": 1}, False),
    ({"Y": 4, "height": 4}, False),
    ({"Y": 3, "height": 5, "depth": 2}, False),
    ({"XInBytes": 2, "width": 6}, True),
    ({"XInBytes": 3, "width": 6}, False),
    ({"Y": 1, "Pitch": 0}, True),  # adjacent rows
    ({"Z": 1, "Pitch": 0}, True),
    ({"Pitch": 0}, True),
    ({"Device": 0}, False),
    ({"MemoryType": HOST, "Host": 0}, False),
    ({"Y": 124, "Height": 125}, True),
    ({"Y": 125, "Height": 126}, False),  # the allocation has 125 rows
]


@pytest.mark.parametrize(("end", "other"), [("src", "dst"), ("dst", "src")])
def test_each_end_of_a_box_is_checked_against_its_pitch_and_height(context: Any, end: str, other: str) -> None:
    device, host = upload(np.zeros(1000, np.uint8)), np.zeros(1000, np.uint8)
    there = {"MemoryType": HOST, "Host": host.ctypes.data, "Pitch": 10, "Height": 10}
    for fields, fits in ENDS:
        here = {"MemoryType": DEVICE, "Device": device, "Pitch": 8, "Height": 7}
        here.update((name, value) for name, value in fields.items() if name[0].isupper())
        sides = {f"{side}{name}": value for side, of in ((end, here), (other, there)) for name, value in of.items()}
        size = {"WidthInBytes": fields.get("width", 4), "Height": fields.get("height", 1)}
        parameters = struct("CUDA_MEMCPY3D", **sides, **size, Depth=fields.get("depth", 1))
        assert driver.cuMemcpy3D(parameters) == ((Status.CUDA_SUCCESS,) if fits else INVALID), fields
    assert driver.cuMemcpy2D(struct("CUDA_MEMCPY2D", WidthInBytes=1, Height=1)) == INVALID
    assert driver.cuMemcpy2D(None) == INVALID


def test_a_fill_reaches_no_other_devices_memory(two_devices: list[Any]) -> None:
    array, stream = upload(np.arange(100, dtype=np.uint8)), ok(driver.cuStreamCreate(1))
    ok(driver.cuCtxSetCurrent(two_devices[1]))
    for default in (0, 1, 2):
        assert driver.cuMemsetD8Async(array, 7, 100, default) == INVALID
    assert driver.cuMemsetD8(array, 7, 100) == INVALID
    # A stream of the memory's own device works whichever device is current.
    ok(driver.cuMemsetD8Async(array, 9, 50, stream))
    ok(driver.cuStreamSynchronize(stream))
    ok(driver.cuCtxSetCurrent(two_devices[0]))
    assert (download(array, 100) == [*[9] * 50, *range(50, 100)]).all()


Attribute = bindings.CUmemPool_attribute


@pytest.fixture
def pool(context: Any) -> Any:
    """Return the default pool, with a release threshold that makes it keep all its memory."""
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
@pytest.mark.usefixtures("unchecked")
def test_a_block_is_given_again_to_work_that_comes_after_its_free(pool, play, steps, again):
    play(steps)
    assert (play["a"] == play["b"]) is again


@pytest.mark.parametrize("checks", ["off", "warn"])
def test_freed_addresses_are_not_given_again_while_the_checks_are_on(pool, play, module, monkeypatch, checks):
    """Reserved memory is the same, and blocks that queued work uses elsewhere keep their addresses."""
    monkeypatch.setenv("CUDART_PY_SANITIZER", checks)
    play("take s a, free s a, take s b, take s keep")
    assert (play["a"] == play["b"]) == (checks == "off")
    assert int(ok(driver.cuMemPoolGetAttribute(pool, Attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))) == 2 << 20
    play("free s b, run t work, take s c")
    assert play["c"] == play["b"]
    play("sync t, sync s")
    launch(function(module, "bounded"), ctypes.c_void_p(play["a"]), block=(128, 1, 1))
    play("sync null" if checks == "off" else "sync null -> ILLEGAL_ADDRESS")


@pytest.mark.usefixtures("unchecked")
def test_the_rules_can_be_switched_off(pool: Any, play: Player) -> None:
    for rule in ("FOLLOW_EVENT_DEPENDENCIES", "ALLOW_OPPORTUNISTIC"):
        ok(driver.cuMemPoolSetAttribute(pool, getattr(Attribute, f"CU_MEMPOOL_ATTR_REUSE_{rule}"), 0))
    for order in ("sync s", "record e s, wait t e"):
        play(f"{FREED}{order}, take t b")
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


@pytest.mark.usefixtures("unchecked")
def test_work_that_is_older_than_an_allocation_means_what_was_there_before(pool, play, module):
    play("take null a 12")
    launch(function(module, "bounded"), ctypes.c_void_p(play["a"]), block=(128, 1, 1))
    play("free null a, take null b 400")
    assert play["a"] == play["b"]
    play("sync null -> ILLEGAL_ADDRESS")
    assert "after the end of the 12-byte" in (driver.take_report() or "")


PROGRAM = r"""
import resource
import numpy as np
import cudart_py as cuda

with open("/proc/self/statm") as file:
    used = int(file.read().split()[0]) * resource.getpagesize()
limit = used + ({megabytes} << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    array = cuda.to_device(np.arange(1 << 20))
    print(int(array.to_host().sum()) == (1 << 19) * ((1 << 20) - 1))
except MemoryError as error:
    print(error)
"""


@pytest.mark.parametrize(("megabytes", "words"), [(1 << 10, "True"), (90, "can't reserve 67,108,864 bytes")])
def test_the_simulator_reserves_less_or_names_a_limit_that_is_too_small(python, megabytes, words):
    printed = python(PROGRAM.format(megabytes=megabytes), CUDART_PY_DRIVER="simulator").stdout
    assert words in printed
    assert ("(ulimit -v)" in printed) == (megabytes == 90)
