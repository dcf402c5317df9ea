"""Access policies: which memory a stream's work keeps in the L2 cache."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from . import arguments
from ._driver import api
from .array import DeviceArray
from .device import activated

if TYPE_CHECKING:
    from .stream import Stream

__all__ = ["AccessPolicy"]

_PROPERTIES = ("normal", "streaming", "persisting")


class AccessPolicy:
    """What `stream.access_policy(...)` returns: the policy is the stream's inside its `with` block.

    Afterwards the stream has the window that it had before. Lines that persist stay in L2 until other
    data needs their room, or `device.reset_persisting_l2()`.
    """

    __slots__ = ("_array", "_before", "_hit", "_miss", "_ratio", "_stream")

    def __init__(self, stream: Stream, array: DeviceArray, hit_ratio: float, hit: str, miss: str) -> None:
        call = "Stream.access_policy"
        arguments.opened(call, "array", array, DeviceArray)
        hit_ratio = arguments.number(call, "hit_ratio", hit_ratio, 0, 1)
        arguments.choice(call, "hit", hit, _PROPERTIES)
        arguments.choice(call, "miss", miss, _PROPERTIES[:2])
        if not array.is_contiguous:
            raise ValueError(
                f"{call}: argument 'array' must be contiguous, since an access policy covers one window of bytes"
            )
        most = stream.device.properties.max_access_policy_window_size
        if array.nbytes > most:
            raise ValueError(
                f"{call}: argument 'array' has {array.nbytes:,} bytes, and {most:,} is this device's largest window"
            )
        self._stream = stream
        self._array = array
        self._ratio = hit_ratio
        self._hit, self._miss = hit, miss
        self._before: Any = None

    def __enter__(self) -> Self:
        from cuda.bindings import driver as enums

        kinds = enums.CUaccessProperty
        value = enums.CUstreamAttrValue()
        window = value.accessPolicyWindow
        window.base_ptr = self._array.pointer
        window.num_bytes = self._array.nbytes
        window.hitRatio = self._ratio
        window.hitProp = getattr(kinds, f"CU_ACCESS_PROPERTY_{self._hit.upper()}")
        window.missProp = getattr(kinds, f"CU_ACCESS_PROPERTY_{self._miss.upper()}")
        with activated(self._stream.device):
            before = api.cuStreamGetAttribute(self._stream.native, _window_attribute())
            api.cuStreamSetAttribute(self._stream.native, _window_attribute(), value)
        self._before = before
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        before, self._before = self._before, None
        if before is None:
            raise ValueError("this AccessPolicy was not entered: it holds inside `with stream.access_policy(...):`")
        with activated(self._stream.device):
            api.cuStreamSetAttribute(self._stream.native, _window_attribute(), before)


def _window_attribute() -> Any:
    from cuda.bindings import driver as enums

    return enums.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
