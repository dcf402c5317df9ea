"""Records of events, and waits for events, as the work of nodes."""

from __future__ import annotations

from typing import Any, ClassVar

from ..base import arguments
from ..context.capture import RetainedObjects
from ..context.device import Device
from ..driver.calls import api
from ..streams.event import RECORD, WAIT, Event, WaitedEvent
from ..streams.graphs.nodes import NodeWork


class NodeEvent(NodeWork):
    """The use of an event by a node."""

    __slots__ = ("_event",)

    _name: ClassVar[str]  # of the driver's functions for these nodes

    def __init__(self, event: Event) -> None:
        self._event = arguments.opened(type(self).__name__, "event", event, Event)

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if the event was closed."""
        self._retained_by(0).check()

    def _add_node(self, graph: int, before: list[Any], device: Device) -> Any:
        """Add a node that uses the event to a graph, and return it."""
        return getattr(api, f"cuGraphAdd{self._name}Node")(graph, before, len(before), self._event.native)

    def _set_node(self, node: int, device: Device) -> None:
        """Make a node of a graph use the event."""
        getattr(api, f"cuGraph{self._name}NodeSetEvent")(node, self._event.native)

    def _change_node(self, executable: int, node: int, device: Device) -> None:
        """Make a node of an executable graph use the event."""
        getattr(api, f"cuGraphExec{self._name}NodeSetEvent")(executable, node, self._event.native)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._event!r}>"


class NodeRecord(NodeEvent):
    """A record of an event for a node of the kind "event_record" (cuGraphAddEventRecordNode).

        start, end = cuda.Event(), cuda.Event()
        first = graph.add(cuda.graphs.NodeRecord(start))
        work = graph.add(scale[grid, block].bind(x, 2.0), after=first)
        graph.add(cuda.graphs.NodeRecord(end), after=work)

    Each launch of the graph records the event when the node runs. Once the launch has finished, `end - start` is the
    time between the two nodes in milliseconds. Other streams and graphs can wait for the event. `event` must be on the
    graph's device. Raises TypeError for other objects and ValueError for a closed event.
    """

    __slots__ = ()

    _kind = "event_record"
    _name = "EventRecord"

    def _check_node(self, call: str, device: Device, *, adds: bool = False) -> None:
        """Raise ValueError if the event was closed or is on another device."""
        super()._check_node(call, device, adds=adds)
        if self._event.device is not device:
            rule = f"record an event on device {device.ordinal}, like the graph"
            raise arguments.unusable(call, "work", rule, f"one on device {self._event.device.ordinal}")

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the event, which a launch marks as recorded."""
        return RetainedObjects(RECORD, (self._event,), node)


class NodeWait(NodeEvent):
    """A wait for an event for a node of the kind "wait_event" (cuGraphAddEventWaitNode).

        graph.add(cuda.graphs.NodeWait(ready), after=node)

    The nodes that depend on this node run after the event's last record before the launch. Without a record, there is
    nothing to wait for. The event may be on another device. Raises TypeError for other objects and ValueError for a
    closed event.
    """

    __slots__ = ()

    _kind = "wait_event"
    _name = "EventWait"

    def _retained_by(self, node: int) -> RetainedObjects:
        """Return the event as one that a launch does not record."""
        return RetainedObjects(WAIT, (WaitedEvent(self._event),), node)
