"""The lesson of `l2_persistence`."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py.streams.access_policy import policy_of

from ..checks import refusal
from ..lesson import Exercise, Lesson, Step
from ..stop import Check

MEBI = 2**20
BEFORE = MEBI
# The sizes of the array and of the part that is requested. No device sets aside as much as the last case requests.
CASES = ((4 * MEBI, 8 * MEBI), (8 * MEBI, 2 * MEBI), (48 * MEBI, 1024 * MEBI))
# A ratio may be a little smaller than what fits.
ENOUGH = 0.85


class Watched:
    """A device that records whether the work of a stream was done when its persisting lines were reset."""

    def __init__(self, device: cuda.Device, stream: cuda.Stream) -> None:
        self._device, self._stream = device, stream
        self.resets: list[bool] = []

    def reset_persisting_l2(self) -> None:
        """Record the state of the stream, and reset the lines."""
        self.resets.append(self._stream.done)
        self._device.reset_persisting_l2()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class Work:
    """Launches in a stream that record their policy and the size set aside when they are queued."""

    def __init__(self, array: cuda.DeviceArray, stream: cuda.Stream, device: cuda.Device) -> None:
        self._array, self._stream, self._device = array, stream, device
        self.window: tuple[int, int, float, str, str] | None = None
        self.set_aside = 0

    def __call__(self) -> None:
        """Queue a fill of the array, and record the policy and the size set aside."""
        cuda.memset(self._array, 1, stream=self._stream)
        policy = policy_of(self._stream)
        self.window = policy.window if policy else None
        self.set_aside = self._device.limits.persisting_l2_cache_size


def set_aside(device: cuda.Device, size: int) -> int:
    """Set a number of bytes aside, and return the number to which the driver has rounded it up."""
    device.limits.persisting_l2_cache_size = size
    return device.limits.persisting_l2_cache_size


def failing() -> None:
    """Raise an error instead of queueing work."""
    raise ZeroDivisionError


def check(answer: ModuleType) -> Iterator[Check]:
    """Use arrays that fit and arrays that do not; check the settings during the work and after it."""
    device = cuda.current_device()
    limits = device.limits
    before = set_aside(device, BEFORE)
    stream = cuda.Stream(non_blocking=True)
    for nbytes, requested in CASES:
        wanted = set_aside(device, min(requested, device.properties.max_persisting_l2_cache_size))
        limits.persisting_l2_cache_size = before
        array = cuda.empty(nbytes, np.uint8)
        device.synchronize()
        work, watched = Work(array, stream, device), Watched(device, stream)
        answer.run_persisting(work, array, stream, watched, requested)
        stream.synchronize()
        case = f"{nbytes // MEBI} MiB, {requested // MEBI} MiB requested"
        address, size, ratio, hit, _ = work.window or (0, 0, 0.0, "normal", "")
        right = (address, size, hit) == (array.pointer, array.nbytes, "persisting")
        yield Check(f"{case}: the array persists during the work", right)
        best = min(1.0, work.set_aside / nbytes)
        detail = f"It is {ratio:.4g}; {work.set_aside / MEBI:.4g} MiB are set aside."
        yield Check(f"{case}: the hit ratio lets as much persist as fits", ENOUGH * best <= ratio <= best, detail)
        yield Check(f"{case}: the requested size is set aside during the work", work.set_aside == wanted)
        yield Check(f"{case}: its lines are reset when the work is done", watched.resets[-1:] == [True])
        detail = f"It is {limits.persisting_l2_cache_size:,} bytes."
        yield Check(f"{case}: the size set aside is restored", limits.persisting_l2_cache_size == before, detail)
    watched = Watched(device, stream)
    call = (failing, array, stream, watched, MEBI // 2)
    yield refusal(
        "an error raised by the work reaches the caller", ZeroDivisionError, lambda: answer.run_persisting(*call)
    )
    undone = bool(watched.resets) and limits.persisting_l2_cache_size == before and policy_of(stream) is None
    yield Check("after an error everything is undone", undone)
    stream.close()


LESSON = Lesson(
    why="When a kernel reads a large array once and a small one again and again, the large one evicts the small one "
    "from the L2 cache. CUDA offers two remedies: a hint in the kernel, and an access policy on the stream. The policy "
    "keeps the small array in a reserved part of L2.\n\n"
    "Their effects differ. On an H200, the hint raises the rate from 4,791 to 6,085 GB/s, more than memory itself "
    "delivers. With the policy, the rate hardly changes: it is 4,818 GB/s. This lesson shows how both work, and why "
    "you should measure before you rely on either.",
    learn=[
        "mark data that is read only once, so that it does not evict other data.",
        "set aside part of L2 and let an array persist there, without changing the kernel.",
        "choose a hit ratio for an array that is larger than the part set aside.",
        "clean up afterwards, so that persisting lines do not take space from other data.",
    ],
    idea="All memory reads go through the **L2 cache**, which keeps recently used **lines**. New lines **evict** old "
    "ones. Even an array that is read repeatedly is evicted if enough other data passes through in the meantime.\n\n"
    "Part of L2 can be **set aside** for data that persists. A stream's **access policy** specifies a window of memory "
    "and a **hit ratio**, the share of accesses to the window that are treated as persisting. The others are treated "
    "as normal or as streaming; streaming lines are evicted first. If the window is larger than the part set aside, "
    "its lines evict each other at a hit ratio of 1. At a smaller ratio, some of them stay. Lines continue to persist "
    "after the kernel ends, until they are reset or read as normal lines.\n\n"
    "The rule of thumb: first use `__ldcs` for data that is read only once. Then try a policy, and measure.",
    steps=[
        Step(
            name="no policy",
            shows=["weigh<false>"],
            text="The kernel reads many values once. With each value, it reads a weight from a small array, which it "
            "goes through over and over. The values that pass through L2 evict the weights.",
        ),
        Step(
            name="__ldcs for the values",
            shows=["weigh<true>"],
            text="This is the other instance of the kernel template. `__ldcs` tells the cache that a value is read "
            "only once, so the values are evicted before the weights. This changes the kernel, but needs no policy.",
        ),
        Step(
            name="policy: persisting",
            shows=["set_aside", "Way", "WAYS"],
            text="This is the first kernel again. `set_aside` asks for as much of L2 as the device allows, and "
            "restores the old size at the end. The launch is inside a `with stream.access_policy(weights, "
            "hit_ratio=..., hit=...)` block, with arguments from the `WAYS` table. The 'policy: streaming' row shows "
            "the opposite policy: the weights are evicted first.",
        ),
        Step(
            name="large: tuned ratio",
            shows=["FITS", "EXCEEDS"],
            text="The large array of weights is 1.5 times as large as the part set aside. With a hit ratio of 1, all "
            "of its lines are marked as persisting, and they evict each other. With a ratio of 0.9 / 1.5 = 0.6, the "
            "marked lines fit and therefore persist. The rest are evicted first.",
        ),
        Step(
            name="the weights persist",
            shows=["add_up", "read_after"],
            text="Afterwards, another array is read over and over. Lines that still persist take space away from it "
            "until the weights are read as normal data, or until `device.reset_persisting_l2()` makes their lines "
            "normal.",
        ),
    ],
    look_at=[
        "The values in the 'L2 hit rate' column are not measured. They are the share of reads that hit in a model of "
        "L2, which always evicts the least recently used line (LRU). The 'model' plot shows the hit rate against the "
        "size of the weights. With a hit ratio of 1, the rate falls as soon as the weights exceed the part set aside. "
        "With a tuned ratio, it falls slowly.",
        "The H200 gains most from `__ldcs`: 6,085 GB/s instead of 4,791. The streaming policy lowers the rate to "
        "4,094 GB/s.",
        "On the H200, weights that fit are read about as fast without a policy as with a persisting one. Its L2 does "
        "not choose the lines to evict the way the model does.",
        "On the H200, large weights gain a little from a persisting policy (4,763 instead of 4,461 GB/s), and less "
        "from the tuned ratio (4,523 GB/s).",
    ],
    exercise=Exercise(
        task="Write `run_persisting(work, array, stream, device, requested)`. It sets aside `requested` bytes of L2, "
        "or as many as the device allows. Under a policy that lets the array persist, it then calls `work()`, which "
        "queues launches in the stream. As much of the array as fits should persist, and no more. Afterwards, "
        "everything must be as it was, even if `work` raises an error: no policy, no persisting lines, and the old "
        "size set aside. Do not reset the lines while the work is still running.",
        hints=[
            "Three things must be undone. Which of them does a `with` block undo for you, and which belong in a "
            "`finally`?",
            "Set at most `device.properties.max_persisting_l2_cache_size`, and read "
            "`device.limits.persisting_l2_cache_size` before and after that, since the driver rounds up. What share of "
            "the array is set aside?",
            "When `work` returns, its launches are only queued. Wait for the stream before you reset the lines.",
        ],
        answer="The hit ratio is the size actually set aside divided by the size of the array, but at most 1. The "
        "policy applies to the launches that are queued inside the `with` block, so the block may end before they run. "
        "A reset takes effect immediately, so the function waits for the stream first. `finally` undoes everything "
        "even after an error.",
        check=check,
    ),
    course="The lectures on which the tour is based give no figures for this topic.",
)
