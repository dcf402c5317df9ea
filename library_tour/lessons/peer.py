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
    """Swap arrays that a kernel on each device has yet to write, once and twice."""
    devices = cuda.devices()[:2]
    # Kept until the end, because unloading a module waits for its device.
    kernels = []
    for device in devices:
        with device:
            kernels.append(load("peer")["copy_words"])
    for size, times in ((1003, 1), (4096, 2)):
        elements = np.random.default_rng(5).integers(0, 2**32, (2, size), np.uint32)
        sources, arrays, spares, streams = [], [], [], []
        for device, content in zip(devices, elements, strict=True):
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
        case = f"{size:,} elements, {'one swap' if times == 1 else 'two swaps'}"
        yield Check(f"{case}: the host does not wait", not begun)
        for device in devices:
            device.synchronize()
        expected = elements[::-1] if times == 1 else elements
        for device, array, content in zip(devices, arrays, expected, strict=True):
            yield compare(f"{case}: the array of device {device.ordinal}", array.to_host(), content)
        for stream in streams:
            stream.close()


LESSON = Lesson(
    why="Two H200s sit in the same machine. Copying 1.07 GB from one to the other takes either 28 ms or a tenth of "
    "that, 2.7 ms. The copy is the same in both cases; the difference is a single earlier call. That call lets one "
    "device access the other's memory, and the data then crosses NVLink instead of passing through the host.\n\n"
    "With that permission, a kernel can even read the other device's memory directly, at 376 GB/s.",
    learn=[
        "enable **peer access**, and say what it changes for copies and kernels.",
        "say in which direction peer access works.",
        "order the streams of two devices with events.",
        "wait for the right device.",
    ],
    idea="Every address belongs to exactly one device or to the host; the driver knows which (**unified virtual "
    "addressing**). A copy can therefore move data between any two arrays. Its path depends on peer access:\n\n"
    "```\n"
    "no peer access   device 1 --> host memory --> device 0    38 GB/s on H200s\n"
    "peer access      device 1 ====== NVLink ====> device 0   395 GB/s on H200s\n"
    "```\n\n"
    "`device.enable_peer(peer)` lets `device` access the memory of `peer`, but not the other way round. Kernels on "
    "`device` then access the peer's memory through ordinary pointers.\n\n"
    "The streams of two devices are independent. If device 0 copies data that a kernel on device 1 writes, something "
    "must order the two. An **event** does that: one stream records it, and another stream, on any device, waits for "
    "it.\n\n"
    "The rule of thumb: enable peer access once, at the start, in both directions if both devices need it. Order "
    "streams with events, not by waiting on the host.",
    steps=[
        Step(
            name="copy, no peer access",
            shows=["by_copy"],
            text="The copy is queued in a stream of the current device. Without peer access, the driver moves the data "
            "through host memory.",
        ),
        Step(
            name="copy, peer access",
            shows=["access", "by_copy"],
            text="The same copy, inside a `with` statement that enables peer access. The data now crosses the link "
            "between the devices.",
        ),
        Step(
            name="copy, without a stream",
            shows=["by_copy_in_order"],
            text="If no stream is given, the copy is ordered by the default streams of both devices: it runs after all "
            "earlier work there, and before all later work. If a stream is given, the copy is ordered by that stream "
            "only.",
        ),
        Step(
            name="copy, devices not named",
            shows=["by_address"],
            text="An ordinary copy takes two addresses. Addresses are unified, so they tell the driver which devices "
            "to use.",
        ),
        Step(
            name="kernel reads",
            shows=["copy_words", "by_kernel"],
            text="A kernel on one device takes an array on the other as an argument, and loads from it as from any "
            "other array. Nothing in its code says where the array is.",
        ),
        Step(
            name="kernel reads 16 bytes",
            shows=["copy_vectors"],
            text="Each thread issues four 16-byte loads before its first store, to keep more bytes in flight.",
        ),
        Step(
            name="wait for the peer's event",
            shows=["exchange"],
            text="A kernel in a stream of the peer writes an array, and a stream of this device copies it. The peer's "
            "stream records an event after the kernel, and this device's stream waits for it before the copy. The host "
            "does not wait for either.",
        ),
        Step(
            name="no wait for the event",
            shows=["no_wait"],
            text="Wrong on purpose. Nothing orders the copy after the kernel, so it may read the old values.",
        ),
        Step(
            name="wait for wrong device",
            shows=["wrong_device"],
            text="Also wrong on purpose. `Device.synchronize()` waits for one device, and here the work is on the "
            "other.",
        ),
    ],
    look_at=[
        "Most rows need two devices. Without a second GPU, set `CUDART_PY_SIMULATOR_DEVICES=2` on the simulator. With "
        "a single device, the table shows only the copy within one device and the two mistakes.",
        "In the 'access has one direction' row, the launch is refused before it runs. The error message gives the call "
        "that would grant access.",
        "Between H200s, NVLink provides 450 GB/s in each direction, some of which is spent on packet headers. A copy "
        "reaches 395 GB/s, and a kernel that reads the peer's memory 376 GB/s. The grid has so many threads that "
        "4-byte loads are enough, and wider ones gain nothing.",
        "On the two H200s measured here, simultaneous copies in both directions gain nothing: together they reach 396 "
        "GB/s. A 64-byte copy takes 12 microseconds, however fast the link is.",
        "The 'kernel writes 16 bytes' row runs the same kernel in the opposite direction: it reads its own memory and "
        "writes the peer's.",
    ],
    exercise=Exercise(
        task="Write `swap(arrays, spares, streams)`. The function swaps the contents of two arrays on two devices. "
        "`arrays[0]`, `streams[0]` and a spare array of the same size, `spares[0]`, belong to device 0; those with "
        "index 1 belong to device 1. Earlier work in each stream writes that device's array. The host must not wait, "
        "and the arrays must be swapped when both streams are done. For now, the function queues the copies, but "
        "nothing orders them.",
        hints=[
            "Two things can go wrong. A device may read the other's array before it is written, and it may overwrite "
            "its own array before the other device has read it.",
            "`stream.record()` returns an event, and `stream.wait(event)` makes all later work of a stream wait for "
            "it.",
            "Record one event per stream before the first copies, and another after them. Which stream must wait for "
            "which event?",
        ],
        answer="Each stream records two events. The first marks the point where its own array has been written, and "
        "the second the point where the other array has been read. Each stream waits for the other's first event "
        "before it reads, and for the other's second event before it overwrites its own array. All of this is queued, "
        "so the host continues immediately.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
