"""The values that a client can unfold: the frames of a stopped launch, their scopes, and the parts of variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..views.tables import element_and_shape, shared_elements
from ..views.texts import UNKNOWN, index_text, mask_text, value_text_in, waiting_text

if TYPE_CHECKING:
    from ...simulator.debugging.scope import Scope
    from ...simulator.debugging.values import Value
    from ..session import Session

Shown = dict[str, Any]
_MOST_CHILDREN = 256


class ShownValues:
    """The values of one stop, by the references under which a client asks for their parts."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # The format of the values; see `formats`.
        self.letter = ""
        self._parts: list[Callable[[], list[Shown]]] = []
        self._frames: list[tuple[int, int]] = []

    def frame(self, lane: int, level: int) -> int:
        """Return the number of a frame: a lane and a level of its call stack."""
        self._frames.append((lane, level))
        return len(self._frames)

    def scope(self, frame: int) -> tuple[Scope, int]:
        """Return the names that are visible in a frame, and the position of its lane in its group."""
        lane, level = self._frames[frame - 1]
        group = self._session.moment.group_of(lane)
        if group is None:
            raise ValueError("this thread has exited")
        position = int(np.searchsorted(group.lanes, lane))
        return self._session.recorder.scope(self._session.moment, group, level), position

    def scopes(self, frame: int) -> list[Shown]:
        """Return the scopes of a frame."""
        scope, position = self.scope(frame)
        lane = self._frames[frame - 1][0]
        return [
            self._scope("Locals", lambda: self._locals(scope, position)),
            self._scope("Thread", lambda: self._thread(scope, lane)),
            self._scope("Lanes of the warp", lambda: self._lanes(scope, lane)),
            self._scope("Shared memory", lambda: self._shared(lane)),
            self._scope("Registers", lambda: self._registers(scope, position)),
        ]

    def parts(self, reference: int) -> list[Shown]:
        """Return what a reference stands for; raises ValueError for a reference from an earlier stop."""
        if not 0 < reference <= len(self._parts):
            raise ValueError("this value belongs to an earlier stop")
        return self._parts[reference - 1]()

    def value(self, name: str, value: Value | None, scope: Scope, position: int) -> Shown:
        """Return a variable, whose parts can be unfolded if it has any."""
        if value is None:
            return _leaf(name, UNKNOWN)
        text = value_text_in(scope.memory, value, position, self.letter)
        kind = type(value.type).__name__
        has_parts = kind in ("Array", "Structure") or (
            kind == "Pointer" and getattr(value.type, "target", None) is not None
        )
        reference = (
            self._reference(lambda: self._parts_of(value, scope, position)) if has_parts and text != UNKNOWN else 0
        )
        shown = {"name": name, "value": text, "type": value.type.name, "variablesReference": reference}
        addresses = value.data if kind == "Pointer" else value.addresses
        if text != UNKNOWN and addresses is not None:
            # Each thread has its own local memory, and each block its own shared memory.
            shown["memoryReference"] = f"{int(addresses[position]):#x}@{int(scope.group.lanes[position])}"
        return shown

    def _reference(self, parts: Callable[[], list[Shown]]) -> int:
        self._parts.append(parts)
        return len(self._parts)

    def _scope(self, name: str, parts: Callable[[], list[Shown]]) -> Shown:
        return {"name": name, "variablesReference": self._reference(parts), "expensive": name != "Locals"}

    def _locals(self, scope: Scope, position: int) -> list[Shown]:
        names = [one.name for one in scope.variables]
        return [self.value(name, value, scope, position) for name, value in scope.values(names)]

    def _registers(self, scope: Scope, position: int) -> list[Shown]:
        values = scope.values(scope.registers)
        return [
            self.value(name, value, scope, position)
            for name, value in values
            if value is not None and value.known[position]
        ]

    def _thread(self, scope: Scope, lane: int) -> list[Shown]:
        moment = self._session.moment
        warp, number = moment.warp_of(lane)
        active = [moment.warp_of(one)[1] for one in moment.warp_lanes(lane) if scope.group.has(one)]
        launch = moment.chunk.state.launch
        return [
            _leaf("threadIdx", index_text(moment.thread_index(lane))),
            _leaf("blockIdx", index_text(moment.block_index(lane))),
            _leaf("blockDim", index_text(launch.block)),
            _leaf("gridDim", index_text(launch.grid)),
            _leaf("warp", str(warp)),
            _leaf("lane", str(number)),
            _leaf("active lanes", mask_text(active)),
            _leaf("state", waiting_text(scope.group) or ("runs" if scope.group is moment.running else "ready")),
        ]

    def _lanes(self, scope: Scope, lane: int) -> list[Shown]:
        """Return each variable, with its value in each lane as its parts."""
        moment = self._session.moment
        inside = [one for one in moment.warp_lanes(lane) if scope.group.has(one)]

        def parts(value: Value) -> list[Shown]:
            return [
                self.value(f"lane {moment.warp_of(one)[1]}", value, scope, int(np.searchsorted(scope.group.lanes, one)))
                for one in inside
            ]

        found = []
        for name, value in scope.values([one.name for one in scope.variables]):
            if value is not None:
                reference = self._reference(lambda value=value: parts(value))  # type: ignore[misc]  # a default
                found.append(_leaf(name, f"{len(inside)} lanes", value.type.name, reference))
        return found

    def _shared(self, lane: int) -> list[Shown]:
        found = []
        for name, variable in self._session.recorder.shared_variables.items():
            element, shape = element_and_shape(variable.type)
            elements = self._elements(lane, variable, element, shape)
            found.append(self._grid(name, variable.type.name, elements, shape))
        return found

    def _elements(self, lane: int, variable: Any, element: Any, shape: Sequence[int]) -> list[str]:
        recorder = self._session.recorder
        values, threads, places = shared_elements(self._session, variable, element, int(np.prod(shape)), lane)
        return [
            UNKNOWN if place < 0 else f"{value}, written by thread {thread} at line {recorder.writing_line(place)}"
            for value, thread, place in zip(values, threads, places, strict=True)
        ]

    def _grid(self, name: str, type_name: str, elements: Sequence[str], shape: Sequence[int]) -> Shown:
        """Return a variable whose parts are rows, and at last its elements."""
        if not shape:
            return _leaf(name, elements[0], type_name)
        each = len(elements) // shape[0]

        def rows() -> list[Shown]:
            return [
                self._grid(f"[{row}]", "", elements[row * each : (row + 1) * each], shape[1:])
                for row in range(min(shape[0], _MOST_CHILDREN))
            ]

        return _leaf(
            name, f"{shape[0]} x ..." if shape[1:] else f"{shape[0]} elements", type_name, self._reference(rows)
        )

    def _parts_of(self, value: Value, scope: Scope, position: int) -> list[Shown]:
        """Return the members of a structure, the elements of an array, or what a pointer points to."""
        if value.members:
            return [self.value(name, one, scope, position) for name, one in value.members.items()]
        type_: Any = scope.whole(value.type)
        kind = type(type_).__name__
        addresses = value.data if kind == "Pointer" else value.addresses
        assert addresses is not None
        if kind == "Pointer":
            parts = [("*", scope.whole(type_.target), 0)]
        elif kind == "Array":
            count = min(type_.count, _MOST_CHILDREN)
            parts = [(f"[{number}]", type_.element, number * type_.element.size) for number in range(count)]
        else:
            parts = [(one.name, one.type, one.offset) for one in type_.members]
        return [
            self.value(name, scope.memory.load(part, addresses + np.uint64(offset), value.known), scope, position)
            for name, part, offset in parts
        ]


def _leaf(name: str, value: str, type_: str = "", reference: int = 0) -> Shown:
    return {"name": name, "value": value, "type": type_, "variablesReference": reference}
