"""Stream attributes, which are only stored and returned; the access policy concerns a cache that isn't simulated."""

from __future__ import annotations

from typing import Any

from cuda.bindings.driver import CUlaunchAttributeID, CUresult, CUstreamAttrValue

from ...state.errors import StatusError
from ...state.streams import find_stream, valid_priority
from ..entry import entry
from ..launches.attributes import is_valid

_ID = CUlaunchAttributeID
_WINDOW = _ID.CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
_PRIORITY = _ID.CU_LAUNCH_ATTRIBUTE_PRIORITY
_DOMAINS = _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
_KEPT = {
    _WINDOW: "accessPolicyWindow",
    _ID.CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY: "syncPolicy",
    _DOMAINS: "memSyncDomainMap",
    _ID.CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: "memSyncDomain",
}

# The fields of the attributes that are structures.
_FIELDS = {
    _WINDOW: ("base_ptr", "num_bytes", "hitRatio", "hitProp", "missProp"),
    _DOMAINS: ("default_", "remote"),
}


def _known(attr: Any) -> Any:
    try:
        found = CUlaunchAttributeID(int(attr))
    except ValueError:
        found = None
    if found != _PRIORITY and found not in _KEPT:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    return found


@entry()
def cuStreamSetAttribute(hStream: Any, attr: Any, value: Any) -> None:
    """Store an attribute of a stream (cuStreamSetAttribute)."""
    stream, key = find_stream(hStream), _known(attr)
    if value is None or not is_valid(key, value):
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    if key == _PRIORITY:
        stream.priority = valid_priority(value.priority)
        return
    kept = CUstreamAttrValue()
    if key in _FIELDS:
        for field in _FIELDS[key]:
            setattr(getattr(kept, _KEPT[key]), field, getattr(getattr(value, _KEPT[key]), field))
    else:
        setattr(kept, _KEPT[key], getattr(value, _KEPT[key]))
    stream.attributes[key.value] = kept


@entry(values=1)
def cuStreamGetAttribute(hStream: Any, attr: Any) -> Any:
    """Return an attribute of a stream (cuStreamGetAttribute)."""
    stream, key = find_stream(hStream), _known(attr)
    if key == _PRIORITY:
        value = CUstreamAttrValue()
        value.priority = stream.priority
        return value
    if key == _DOMAINS and key.value not in stream.attributes:
        value = CUstreamAttrValue()
        value.memSyncDomainMap.remote = 1
        return value
    return stream.attributes.get(key.value, CUstreamAttrValue())


@entry()
def cuStreamCopyAttributes(dst: Any, src: Any) -> None:
    """Copy the attributes of one stream to another, including its priority (cuStreamCopyAttributes)."""
    destination, source = find_stream(dst), find_stream(src)
    if destination.context is not source.context:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    destination.attributes = dict(source.attributes)
    destination.priority = source.priority
