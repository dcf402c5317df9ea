"""The lesson of `peer`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import ModuleType

import numpy as np

import cudart_py as cuda

from ..checks import compare, poisoned
from ..device_code import blocks_for, load
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

BLOCK = 256


def check(answer: ModuleType) -> Iterator[Check]:
    """Swap arrays that a kernel of each device has yet to write, once and twice."""
    devices = cuda.devices()[:2]
    # Kept until the end, because a module that is given back waits for its device.
    kernels = []
    for device in devices:
        with device:
            kernels.append(load("peer")["copy_words"])
    for size, times in ((1003, 1), (4096, 2)):
        numbers = np.random.default_rng(5).integers(0, 2**32, (2, size), np.uint32)
        sources, arrays, spares, streams = [], [], [], []
        for device, content in zip(devices, numbers, strict=True):
            with device:
                sources.append(cuda.to_device(content))
                arrays.append(poisoned(size, np.uint32))
                spares.append(poisoned(size, np.uint32))
                streams.append(cuda.Stream(non_blocking=True))
                device.synchronize()
        begun: list[bool] = []
        for kernel, source, array, stream in zip(kernels, sources, arrays, streams, strict=True):
            stream.launch_host_function(partial(begun.append, True))
            with stream.device:
                kernel[blocks_for(size, BLOCK), BLOCK, 0, stream](source, array, size)
        for _ in range(times):
            answer.swap(arrays, spares, streams)
        case = f"{size:,} numbers, {'one swap' if times == 1 else 'two swaps'}"
        yield Check(f"{case}: the host waits for nothing, and the work has yet to begin", not begun)
        for device in devices:
            device.synchronize()
        expected = numbers[::-1] if times == 1 else numbers
        for device, array, content in zip(devices, arrays, expected, strict=True):
            yield compare(f"{case}: the array of device {device.ordinal}", array.to_host(), content)
        for stream in streams:
            stream.close()


LESSON = Lesson(
    learn=[
        "What peer access is: a device loads from and stores to another device's memory, by ordinary addresses. The "
        "permission has one direction.",
        "That a copy between devices needs no permission, and what the permission changes: without it the data go "
        "through the host's memory.",
        "How an event orders the streams of two devices, which otherwise run side by side.",
    ],
    steps=[
        Step(
            name="copy, no peer access",
            shows=["by_copy"],
            text="The copy is queued in a stream of the current device. There is no permission yet, so the driver "
            "takes the data from one device to the host's memory, and from there to the other device.",
        ),
        Step(
            name="copy, peer access",
            shows=["access", "by_copy"],
            text="The copy is the same. It runs in a block with permission: `device.enable_peer(peer)` lets `device` "
            "access the memory of `peer`, and not the other way round. The data now cross the link between the "
            "devices.",
        ),
        Step(
            name="copy, without a stream",
            shows=["by_copy_in_order"],
            text="Without a stream, the copy has its place in the default streams of both devices: it runs after all "
            "earlier work there, and before all later work. In a stream it waits for the work of that stream alone.",
        ),
        Step(
            name="copy, devices not named",
            shows=["by_address"],
            text="Addresses are unified: no two devices use the same one. An ordinary copy between two addresses "
            "therefore finds both devices by itself.",
        ),
        Step(
            name="kernel reads",
            shows=["copy_words", "by_kernel"],
            text="A kernel of one device gets an array of the other as an argument, and loads from it as from any "
            "other. Nothing in its code tells where the array is.",
        ),
        Step(
            name="kernel reads 16 bytes",
            shows=["copy_vectors"],
            text="A thread starts four loads of 16 bytes before its first store. The latency of the link is long, so "
            "more bytes have to be in flight.",
        ),
        Step(
            name="wait for the peer's event",
            shows=["exchange"],
            text="A kernel in a stream of the peer writes numbers, and a stream of this device copies them. The peer's "
            "stream records an event behind the kernel, and this device's stream waits for it before the copy. The "
            "host waits for neither.",
        ),
        Step(
            name="event not waited for",
            shows=["no_wait"],
            text="The same without the wait: nothing orders the copy after the kernel, and it may find the old "
            "numbers. This step is wrong on purpose.",
        ),
        Step(
            name="wrong device waited for",
            shows=["wrong_device"],
            text="`Device.synchronize()` waits for the work of one device. Here it is not the one that has the work. "
            "This step is wrong on purpose too.",
        ),
    ],
    look_at=[
        "Most rows need two devices. Without a second GPU, set `CUDART_PY_SIMULATOR_DEVICES=2` on the simulator. One "
        "device alone shows the copy within itself and the two mistakes.",
        "In the row 'permission has one direction', the launch is refused before it runs, and its message names the "
        "call that would give the permission.",
        "The kernels use all bytes of the sectors that they load. The one with 16 bytes a lane has a quarter of the "
        "loads.",
        "Between H200s the link is NVLink with 450 GB/s in each direction, a part of which is spent on the packets' "
        "headers. There a copy reached 396 GB/s, a kernel that reads the peer's memory 372 GB/s, and a copy of 64 "
        "bytes took 5.0 us. A copy within one H200 reads and writes 4,250 GB/s together.",
    ],
    exercise=Exercise(
        task="Write `swap(arrays, spares, streams)`: it swaps the contents of two arrays on two devices. Device 0 has "
        "`arrays[0]`, a spare array of the same size in `spares[0]`, and `streams[0]`; those with index 1 are on "
        "device 1. Earlier work in each stream writes its array. The host must not wait for anything, and when both "
        "streams are done, the arrays are swapped. The copies are there; nothing orders them yet.",
        hints=[
            "Two things can go wrong: a device reads the other one's array before it is written, and it overwrites "
            "its own array before the other device has read it. `stream.record()` returns an event, and "
            "`stream.wait(event)` makes all later work of a stream wait for it.",
        ],
        answer="Each stream records two events. The first says that its array is written, the second that it has read "
        "the other one's array. Each stream waits for the other's first event before it reads, and for the other's "
        "second one before it overwrites its own array. All of it is only queued, so the host goes on at once.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
