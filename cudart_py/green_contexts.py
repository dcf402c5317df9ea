"""Green contexts: parts of a device's multiprocessors, whose streams run kernels only there.

    groups, rest = green_contexts.multiprocessors().split(16, 32)
    with green_contexts.GreenContext(groups[0]) as part:
        kernel[grid, block, 0, part.stream()](x, y)

A long kernel in one part cannot delay the kernels in another. Memory, modules and events are those of the device.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any, Self

from . import errors
from .base import arguments
from .base.set_once import SetOnce
from .context.current import activated
from .context.device import Device, current_device
from .context.lifetimes import WaitingHandle
from .driver import enums
from .driver.calls import api
from .streams.event import Event
from .streams.stream import Stream, stream_of_owner

__all__ = ["GreenContext", "Multiprocessors", "multiprocessors"]
__dir__ = __all__.copy  # without private names and imports

# CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING; newer bindings have renamed its enumeration.
_IGNORE_COSCHEDULING = 1


class Multiprocessors(SetOnce):
    """A set of a device's multiprocessors (CUdevResource). `multiprocessors` and `split` return such sets.

    `device` is the device, and `count` the number of multiprocessors. `smallest` is the least number of multiprocessors
    in a part of the set, 0 if the set cannot be split, since it is the result of a split itself.
    """

    __slots__ = ("_resources", "count", "device", "smallest")

    def __init__(self, device: Device, resources: Iterable[Any], *, whole: bool) -> None:
        self.device = device
        self._resources = list(resources)
        self.count = sum(int(resource.sm.smCount) for resource in self._resources)
        self.smallest = int(self._resources[0].sm.minSmPartitionSize) if whole else 0

    def split(self, *counts: int, coscheduled: bool = True) -> tuple[list[Multiprocessors], Multiprocessors]:
        """Return one disjoint set per count, and the remaining multiprocessors, if any (cuDevSmResourceSplitByCount).

        Each set has at least as many multiprocessors as its count says: counts are rounded up to what the hardware can
        separate, 8 on an H200. With `coscheduled=False`, sets may be smaller, but large clusters may not fit into them.
        The rest has no such guarantee. If the counts differ, each set consists of several equal parts of the device.

        Only all multiprocessors of a device or of a green context can be split. Raises ValueError for sets that are
        the result of a split, and if there are not enough multiprocessors.
        """
        call, most = "Multiprocessors.split", max(self.count, 1)
        sizes = [arguments.integer(call, f"counts[{place}]", count, 1, most) for place, count in enumerate(counts)]
        flags = 0 if arguments.flag(call, "coscheduled", coscheduled) else _IGNORE_COSCHEDULING
        if not sizes:
            raise arguments.unusable(call, "counts", "have at least one count")
        if not self.smallest:
            remedy = "make a GreenContext of it, whose multiprocessors can be split"
            raise arguments.unusable(call, "self", "not be the result of a split", None, remedy)
        if len(set(sizes)) == 1:
            groups, rest = self._split_equally(len(sizes), sizes[0], flags)
            if len(groups) < len(sizes):
                raise self._too_few(sizes)
            return [self._part([group]) for group in groups], self._part(rest)
        smallest = self.smallest if coscheduled else 1
        units, rest = self._split_equally(self.count // smallest, smallest, flags)
        unit = int(units[0].sm.smCount)
        parts = []
        for size in sizes:
            needed = -(-size // unit)
            if needed > len(units):
                raise self._too_few(sizes)
            parts.append(self._part(units[:needed]))
            del units[:needed]
        return parts, self._part([*units, *rest])

    def _split_equally(self, groups: int, size: int, flags: int) -> tuple[list[Any], list[Any]]:
        """Return at most `groups` parts of at least `size` multiprocessors, and the remainder if there is one."""
        with activated(self.device):
            try:
                parts, count, rest = api.cuDevSmResourceSplitByCount(groups, self._resources[0], flags, size)
            except errors.CudaError as error:
                if error.status.name == "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION":
                    raise self._too_few([size] * groups) from error
                raise
        kind = enums.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        return list(parts[:count]), [rest] if rest.type == kind and rest.sm.smCount else []

    def _too_few(self, sizes: list[int]) -> ValueError:
        least = f"in units of at least {self.smallest}, or of 2 with coscheduled=False"
        rule = f"fit into {self.count} multiprocessors, {least}"
        return arguments.unusable("Multiprocessors.split", "counts", rule, tuple(sizes))

    def _part(self, resources: list[Any]) -> Multiprocessors:
        return Multiprocessors(self.device, resources, whole=False)

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return f"<Multiprocessors: {self.count} of device {self.device.ordinal}>"


def multiprocessors(device: Device | None = None) -> Multiprocessors:
    """Return all multiprocessors of a device, by default the current one (cuDeviceGetDevResource)."""
    if device is None:
        device = current_device()
    arguments.instance("multiprocessors", "device", device, Device, "a Device or None")
    kind = enums.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
    return Multiprocessors(device, [api.cuDeviceGetDevResource(device.handle, kind)], whole=True)


class GreenContext(WaitingHandle):
    """A part of a device's multiprocessors, with streams whose kernels run only there (cuGreenCtxCreate).

    - `multiprocessors`: a set that `Multiprocessors.split` or `multiprocessors` returned. Several green contexts may
      share multiprocessors.

    Arrays, modules, kernels and events are those of the device: any kernel can be launched in any stream. The context
    lives as long as its streams. Closing it closes its streams, and waits for all work on the device.
    """

    __slots__ = ("_device", "_streams")

    def __init__(self, multiprocessors: Multiprocessors) -> None:
        self._value = None
        self._owned = True
        chosen = arguments.instance("GreenContext", "multiprocessors", multiprocessors, Multiprocessors)
        if not chosen.count:
            raise arguments.unusable("GreenContext", "multiprocessors", "not be empty")
        self._device = chosen.device
        self._streams: weakref.WeakSet[Stream] = weakref.WeakSet()
        with activated(chosen.device):
            descriptor = api.cuDevResourceGenerateDesc(chosen._resources, len(chosen._resources))
            flags = enums.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM
            self._value = int(api.cuGreenCtxCreate(descriptor, chosen.device.handle, flags))

    @property
    def device(self) -> Device:
        """The device that the context's multiprocessors belong to."""
        return self._device

    @property
    def multiprocessors(self) -> Multiprocessors:
        """The context's multiprocessors, which can be split again (cuGreenCtxGetDevResource)."""
        kind = enums.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
        resource = api.cuGreenCtxGetDevResource(self.handle, kind)
        return Multiprocessors(self._device, [resource], whole=True)

    def stream(self, *, priority: int = 0) -> Stream:
        """Return a new stream of the context, which does not synchronise with the default streams.

        `priority` is as for `Stream` (cuGreenCtxStreamCreate).
        """
        least, greatest = self._device.stream_priorities
        level = arguments.integer("GreenContext.stream", "priority", priority, greatest, least)
        with activated(self._device):
            flags = enums.CUstream_flags.CU_STREAM_NON_BLOCKING
            handle = int(api.cuGreenCtxStreamCreate(self.handle, flags, level))
        result = stream_of_owner(handle, self._device, self)
        self._streams.add(result)
        return result

    def record(self, event: Event | None = None) -> Event:
        """Record an event after the work so far in all of the context's streams (cuGreenCtxRecordEvent).

        `event` is by default a new one with timing. Returns the event. Raises CaptureError if a stream of the context
        is being captured.
        """
        handle = self.handle
        with activated(self._device):
            event = Event() if event is None else self._checked("GreenContext.record", event)
            api.cuGreenCtxRecordEvent(handle, event.handle)
        event._recorded = True
        return event

    def wait(self, event: Event) -> None:
        """Make all later work in the context's streams wait for an event (cuGreenCtxWaitEvent).

        Raises EventNotRecordedError for an event that was never recorded.
        """
        self._checked("GreenContext.wait", event)
        if not event.recorded:
            raise errors.EventNotRecordedError(
                "GreenContext.wait: argument 'event' must be an event that has been recorded; call its record() first"
            )
        handle = self.handle
        with activated(self._device):
            api.cuGreenCtxWaitEvent(handle, event.handle)

    def _checked(self, call: str, event: Event) -> Event:
        """Return an open event of the context's device."""
        arguments.opened(call, "event", event, Event)
        if event.device is not self._device:
            rule = f"be on device {self._device.ordinal}, like the context"
            raise arguments.unusable(call, "event", rule, f"on device {event.device.ordinal}")
        return event

    def close(self) -> None:
        """Wait for the device, and destroy the context and its streams (cuGreenCtxDestroy); a second call does nothing.

        The context is destroyed even if destroying a stream reports an error of its work.
        """
        try:
            for stream in list(self._streams):
                stream.close()
        finally:
            super().close()

    def _destroy(self, value: Any) -> None:
        api.cuGreenCtxDestroy(value)

    def __enter__(self) -> Self:
        self._open_handle()  # ValueError when closed
        return self

    def __repr__(self) -> str:
        if self._value is None:
            return "<GreenContext closed>"
        return f"<GreenContext with {self.multiprocessors.count} multiprocessors of device {self._device.ordinal}>"
