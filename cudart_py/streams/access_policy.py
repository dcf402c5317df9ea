"""Access policies, which control the memory that a stream's work keeps in the L2 cache."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Protocol, Self

from ..base import arguments
from ..context.current import activated
from ..context.device import Device
from ..context.resetting import at_reset
from ..driver import enums
from ..driver.calls import api
from .stream_base import StreamBase

_ATTRIBUTES = ("closed", "is_contiguous", "nbytes", "pointer")
_PROPERTIES = ("normal", "streaming", "persisting")


class Window(Protocol):
    """The bytes that a policy applies to: a DeviceArray, or another object with these attributes."""

    @property
    def pointer(self) -> int:
        """The device address of the first byte; ValueError when closed."""
        ...

    @property
    def nbytes(self) -> int:
        """The number of bytes."""
        ...

    @property
    def is_contiguous(self) -> bool:
        """Whether the bytes are contiguous."""
        ...

    @property
    def closed(self) -> bool:
        """Whether the memory has been released."""
        ...


class AccessPolicy:
    """The result of `stream.access_policy(...)`: a policy that applies to the stream inside the `with` block.

    Afterwards the stream's previous window is restored. Persisting lines stay in L2 until other data evicts them or
    until `device.reset_persisting_l2()`.
    """

    __slots__ = ("_array", "_before", "_hit", "_miss", "_outer", "_place", "_ratio", "_stream")

    def __init__(self, stream: StreamBase, array: Window, hit_ratio: float, hit: str, miss: str) -> None:
        call = "Stream.access_policy"
        # A class has the attributes of its instances too.
        if isinstance(array, type) or not all(hasattr(type(array), name) for name in _ATTRIBUTES):
            raise arguments.wrong_type(call, "array", "a DeviceArray", array)
        if array.closed:
            raise arguments.wrong_value(call, "array", "open", array)
        hit_ratio = arguments.number(call, "hit_ratio", hit_ratio, 0, 1)
        arguments.choice(call, "hit", hit, _PROPERTIES)
        arguments.choice(call, "miss", miss, _PROPERTIES[:2])
        arguments.contiguous(call, "array", array, "an access policy covers one window of bytes")
        most = stream.device.properties.max_access_policy_window_size
        if array.nbytes > most:
            rule = f"have at most {most:,} bytes, the device's largest access policy window"
            raise arguments.unusable(call, "array", rule, f"{array.nbytes:,}")
        self._stream = stream
        self._array = array
        self._ratio = hit_ratio
        self._hit, self._miss = hit, miss
        # Set inside the block: the stream's previous window, the stream's key, and the policy of the enclosing block.
        self._before: Any = None
        self._place: tuple[Device, int] | None = None
        self._outer: AccessPolicy | None = None

    @property
    def window(self) -> tuple[int, int, float, str, str]:
        """The address and size in bytes of the window, the hit ratio, and the properties for hits and misses."""
        return self._array.pointer, self._array.nbytes, self._ratio, self._hit, self._miss

    def of(self, stream: StreamBase) -> AccessPolicy:
        """Return the same policy for another stream."""
        return AccessPolicy(stream, self._array, self._ratio, self._hit, self._miss)

    def __repr__(self) -> str:
        return f"<AccessPolicy of {self._stream!r}>"

    def __enter__(self) -> Self:
        if self._place is not None:
            raise ValueError("this AccessPolicy is already in use: make another one for a nested block")
        kinds = enums.CUaccessProperty
        value = enums.CUstreamAttrValue()
        window = value.accessPolicyWindow
        window.base_ptr = self._array.pointer
        window.num_bytes = self._array.nbytes
        window.hitRatio = self._ratio
        window.hitProp = getattr(kinds, f"CU_ACCESS_PROPERTY_{self._hit.upper()}")
        window.missProp = getattr(kinds, f"CU_ACCESS_PROPERTY_{self._miss.upper()}")
        place = _key(self._stream)
        with activated(self._stream.device):
            self._before = api.cuStreamGetAttribute(self._stream.native, _window_attribute())
            api.cuStreamSetAttribute(self._stream.native, _window_attribute(), value)
        self._place = place
        self._outer, _policies[place] = _policies.get(place), self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        place, self._place = self._place, None
        if place is None:
            raise ValueError("this AccessPolicy was not entered: use `with stream.access_policy(...):`")
        if self._outer is None:
            _policies.pop(place, None)
        else:
            _policies[place] = self._outer
        if self._stream.closed:  # its window has ended with it
            return
        device, _ = place
        with activated(device):
            api.cuStreamSetAttribute(self._stream.native, _window_attribute(), self._before)


# The policies of the `with` blocks that have been entered, keyed by device and stream handle.
_policies: dict[tuple[Device, int], AccessPolicy] = {}
at_reset(_policies.clear)


def _key(stream: StreamBase) -> tuple[Device, int]:
    return stream.device, stream.handle


def policy_of(stream: StreamBase) -> AccessPolicy | None:
    """Return the policy of the innermost `with` block that a stream is in, or None."""
    return _policies.get(_key(stream)) if _policies else None


def _window_attribute() -> Any:
    return enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
