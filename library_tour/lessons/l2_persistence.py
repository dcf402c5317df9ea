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
# Of the array and of the room that is asked for; no device sets as much aside as the last one asks for.
CASES = ((4 * MEBI, 8 * MEBI), (8 * MEBI, 2 * MEBI), (48 * MEBI, 1024 * MEBI))
# A ratio may be a little less than what fits.
ENOUGH = 0.85


class Watched:
    """A device that notes whether the work of a stream was done when its persisting lines were reset."""

    def __init__(self, device: cuda.Device, stream: cuda.Stream) -> None:
        self._device, self._stream = device, stream
        self.resets: list[bool] = []

    def reset_persisting_l2(self) -> None:
        """Note the state of the stream, and reset the lines."""
        self.resets.append(self._stream.done)
        self._device.reset_persisting_l2()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)


class Work:
    """Launches in a stream, and under which policy and with how much room they were queued."""

    def __init__(self, array: cuda.DeviceArray, stream: cuda.Stream, device: cuda.Device) -> None:
        self._array, self._stream, self._device = array, stream, device
        self.window: tuple[int, int, float, str, str] | None = None
        self.room = 0

    def __call__(self) -> None:
        """Queue a fill of the array, and note what holds now."""
        cuda.memset(self._array, 1, stream=self._stream)
        policy = policy_of(self._stream)
        self.window = policy.window if policy else None
        self.room = self._device.limits.persisting_l2_cache_size


def failing() -> None:
    """Raise an error in the place of work."""
    raise ZeroDivisionError


def check(answer: ModuleType) -> Iterator[Check]:
    """Let arrays persist that fit and that do not, look at what holds for the work, and at what is left behind."""
    device = cuda.current_device()
    limits = device.limits
    limits.persisting_l2_cache_size = BEFORE
    stream = cuda.Stream(non_blocking=True)
    for nbytes, room in CASES:
        array = cuda.empty(nbytes, np.uint8)
        device.synchronize()
        work, watched = Work(array, stream, device), Watched(device, stream)
        answer.run_persisting(work, array, stream, watched, room)
        stream.synchronize()
        case = f"{nbytes // MEBI} MiB, {room // MEBI} MiB of room"
        address, size, ratio, hit, _ = work.window or (0, 0, 0.0, "normal", "")
        right = (address, size, hit) == (array.pointer, array.nbytes, "persisting")
        yield Check(f"{case}: the array persists during the work", right)
        best = min(1.0, work.room / nbytes)
        detail = f"It is {ratio:.4g}; {work.room / MEBI:.4g} MiB are set aside."
        yield Check(f"{case}: the hit ratio lets as much persist as fits", ENOUGH * best <= ratio <= best, detail)
        most = min(room, device.properties.max_persisting_l2_cache_size)
        yield Check(f"{case}: the room is set aside during the work", work.room == most)
        yield Check(f"{case}: its lines are reset when the work is done", watched.resets[-1:] == [True])
        found = f"It is {limits.persisting_l2_cache_size:,} bytes."
        yield Check(f"{case}: the size set aside is restored", limits.persisting_l2_cache_size == BEFORE, found)
        limits.persisting_l2_cache_size = BEFORE
    watched = Watched(device, stream)
    call = (failing, array, stream, watched, MEBI // 2)
    yield refusal("an error of the work reaches the caller", ZeroDivisionError, lambda: answer.run_persisting(*call))
    undone = bool(watched.resets) and limits.persisting_l2_cache_size == BEFORE and policy_of(stream) is None
    yield Check("after an error everything is undone", undone)
    stream.close()


LESSON = Lesson(
    learn=[
        "All memory is read through the L2 cache, where new data replaces old. An array that is read again and again "
        "is evicted from it if enough other data passes through meanwhile.",
        "A part of L2 can be set aside for data that persists. Which data that is, the host says by an access policy "
        "of the stream, and the kernel does not change.",
        "An array that is larger than the room needs a hit ratio, so that a part of it persists, instead of its lines "
        "displacing each other.",
        "Lines that persist stay after the kernel, until they are reset or read as normal ones.",
    ],
    steps=[
        Step(
            name="no policy",
            shows=["weigh<false>"],
            text="The kernel reads many values once, and an array of weights in turn with them, over and over. The "
            "values that pass through L2 displace the weights.",
        ),
        Step(
            name="__ldcs for the values",
            shows=["weigh<true>"],
            text="The other instance of the same template. `__ldcs` tells the cache that a value is read once, so that "
            "it is evicted before the weights. This takes a change of the kernel, and no policy.",
        ),
        Step(
            name="policy: persisting",
            shows=["set_aside", "Way", "WAYS"],
            text="The kernel is the first one again. `set_aside` asks for as much of L2 as the device allows, and "
            "gives it back in the end. The launch is in a block `with stream.access_policy(weights, hit_ratio=..., "
            "hit=...)`; the arguments are in the table of the ways. The row 'policy: streaming' says the opposite of "
            "the weights: they are replaced first.",
        ),
        Step(
            name="large: tuned ratio",
            shows=["FITS", "EXCEEDS"],
            text="The large weights take 1.5 times the room. With a hit ratio of 1 they all want to persist, and "
            "displace each other. With a ratio of 0.9 / 1.5, that is 0.6, a share that fits persists, and the rest is "
            "replaced first.",
        ),
        Step(
            name="the weights persist",
            shows=["add_up", "read_after"],
            text="Another array is read over and over afterwards. Lines that still persist take room from it, until "
            "the weights are read as normal data, or until `device.reset_persisting_l2()` makes their lines normal "
            "again.",
        ),
    ],
    look_at=[
        "The column 'of reads hit' is not measured. It is the share of reads that hit in a model of L2 which always "
        "replaces the line that was used longest ago. The picture 'model' shows it against the size of the weights: "
        "with a hit ratio of 1 it falls as soon as they exceed the room, and with a tuned ratio it falls slowly.",
        "An H200 gains most from `__ldcs`: 6,080 GB/s instead of 4,790. The streaming policy lowers the rate to 4,110.",
        "Weights that fit are read about as fast without a policy on an H200 as with a persisting one, 4,790 and 4,810 "
        "GB/s. Its L2 replaces lines in another way than the model, so measure before you rely on a policy.",
        "Large weights gain a little from persisting on an H200, 4,750 instead of 4,460 GB/s, and less with the tuned "
        "ratio, 4,520 GB/s.",
    ],
    exercise=Exercise(
        task="Write `run_persisting(work, array, stream, device, room)`. It sets `room` bytes of L2 aside, and calls "
        "`work()`, which queues launches in the stream, while the array persists. As much of the array as fits into "
        "the room should persist, and no more; a device may set less aside than it is asked for. Afterwards nothing is "
        "left, even if `work` raises an error: the policy, the lines that persist, and the size that was set aside. "
        "Do not reset the lines while the work is still running.",
        hints=[
            "Read `device.limits.persisting_l2_cache_size` before you set it, and again after that. What share of the "
            "array is it? When `work` returns, its launches are only queued.",
        ],
        answer="The hit ratio is the size that was really set aside over the array's, and at most 1. The policy is the "
        "stream's for the launches that the block queues, so the block may end before they run. A reset acts at once, "
        "so it waits for the stream. `finally` undoes everything after an error too.",
        check=check,
    ),
    course="The courses give no figures for this topic.",
)
