"""Launch attributes: those that determine a launch, and those that are only kept with the kernel nodes of graphs."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cuda.bindings.driver import (
    CUaccessProperty,
    CUlaunchAttributeID,
    CUlaunchAttributeValue,
    CUresult,
)

from ...state.attributes import attribute
from ...state.errors import StatusError
from .shapes import Extents

if TYPE_CHECKING:
    from ...state.queue.stream import Stream

_ID = CUlaunchAttributeID
# The size of CUlaunchAttributeValue.
VALUE_BYTES = 64
# Attributes that have no effect in the simulator.
_WITHOUT_EFFECT = {
    _ID.CU_LAUNCH_ATTRIBUTE_IGNORE,
    _ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
    _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
    _ID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
    _ID.CU_LAUNCH_ATTRIBUTE_PRIORITY,
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP,
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
    _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION,
    _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
}
# The attributes that kernel nodes keep, and the bytes of their defaults up to the last one that is not 0.
_KEPT = {
    _ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW.value: b"",
    _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE.value: b"",
    _ID.CU_LAUNCH_ATTRIBUTE_PRIORITY.value: b"",
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP.value: b"\0\1",
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN.value: b"",
    _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT.value: b"",
}

_ENUMERATORS = {
    _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: "clusterSchedulingPolicyPreference",
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: "memSyncDomain",
}


def is_valid(identity: int, value: Any) -> bool:
    """Return whether an attribute of a launch or of a stream may have a value, as far as the driver checks it.

    Raises ValueError for a number that is not an enumerator.
    """
    if identity in _ENUMERATORS:
        getattr(value, _ENUMERATORS[identity])
    match identity:
        case _ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
            window = value.accessPolicyWindow
            return bool(
                0 <= window.hitRatio <= 1
                and window.num_bytes <= attribute("MAX_ACCESS_POLICY_WINDOW_SIZE")
                and window.missProp != CUaccessProperty.CU_ACCESS_PROPERTY_PERSISTING
            )
        case _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
            domains = value.memSyncDomainMap
            return max(int(domains.default_), int(domains.remote)) < attribute("MEM_SYNC_DOMAIN_COUNT")
        case _ID.CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
            return -1 <= int(value.sharedMemCarveout) <= 100
    return True


class LaunchAttributes:
    """The attributes of a launch: whether it is cooperative, the extents of its cluster, and the bytes of all others.

    `others` contains only the attributes that the nodes of graphs keep, keyed by the number of their kind.
    """

    __slots__ = ("cluster", "cooperative", "others")

    def __init__(
        self,
        *,
        cooperative: bool = False,
        cluster: Extents | None = None,
        others: Mapping[int, bytes] = {},  # never changed
    ) -> None:
        self.cooperative = cooperative
        self.cluster = cluster
        self.others = others

    @classmethod
    def read(cls, given: Sequence[Any]) -> LaunchAttributes:
        """Return the attributes of a launch's configuration."""
        made = cls()
        for item in given:
            made = made.changed(item.id, item.value)
        return made

    def changed(self, identity: Any, value: Any) -> LaunchAttributes:
        """Return these attributes with another value of one.

        Raises CUDA_ERROR_NOT_SUPPORTED for unknown attributes, and CUDA_ERROR_INVALID_VALUE for invalid values.
        """
        cooperative, cluster, others = self.cooperative, self.cluster, self.others
        if identity == _ID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            cooperative = bool(value.cooperative)
        elif identity == _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            extents = value.clusterDim
            cluster = extents.x, extents.y, extents.z
        elif identity == _ID.CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY or not is_valid(identity, value):
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        elif identity not in _WITHOUT_EFFECT:
            raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED)
        elif int(identity) in _KEPT:
            others = {**others, int(identity): ctypes.string_at(value.getPtr(), VALUE_BYTES)}
        return LaunchAttributes(cooperative=cooperative, cluster=cluster, others=others)

    def captured_in(self, stream: Stream) -> LaunchAttributes:
        """Return these attributes, and those of a stream for all that the launch does not set itself."""
        priority = CUlaunchAttributeValue()
        priority.priority = stream.priority
        inherited = {_ID.CU_LAUNCH_ATTRIBUTE_PRIORITY.value: priority, **stream.attributes}
        bytes_of = {
            identity: ctypes.string_at(value.getPtr(), VALUE_BYTES)
            for identity, value in inherited.items()
            if identity in _KEPT
        }
        others = {**bytes_of, **self.others}
        return LaunchAttributes(cooperative=self.cooperative, cluster=self.cluster, others=others)

    def value(self, identity: int) -> Any:
        """Return an attribute of a kernel node; raise CUDA_ERROR_INVALID_VALUE for one that nodes don't have."""
        made = CUlaunchAttributeValue()
        if identity == _ID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
            made.cooperative = int(self.cooperative)
        elif identity == _ID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            made.clusterDim.x, made.clusterDim.y, made.clusterDim.z = self.cluster or (0, 0, 0)
        elif identity in _KEPT:
            content = self.others.get(identity, _KEPT[identity])
            ctypes.memmove(made.getPtr(), content, len(content))
        else:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        return made


# The attributes of a launch without any.
NO_ATTRIBUTES = LaunchAttributes()
