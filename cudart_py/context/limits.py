"""A context's limits, read with cuCtxGetLimit and set with cuCtxSetLimit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base import arguments
from ..driver import enums
from ..driver.calls import api, raw
from ..driver.unwrap import failure
from .current import activated

if TYPE_CHECKING:
    from .device import Device


class _Limit:
    """One limit as an attribute of `Limits`; `fixed_by` names the functions that fix it once a kernel calls them."""

    def __init__(self, name: str, doc: str, fixed_by: str = "") -> None:
        self._name = name
        self._fixed_by = fixed_by
        self.__doc__ = doc

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute

    def _enum(self) -> Any:
        return getattr(enums.CUlimit, f"CU_LIMIT_{self._name}")

    def __get__(self, limits: Limits | None, owner: type) -> Any:
        if limits is None:
            return self
        with activated(limits._device):
            return api.cuCtxGetLimit(self._enum())

    def __set__(self, limits: Limits, value: int) -> None:
        size = arguments.integer("Limits", self._attribute, value, 0, 2**64 - 1)
        with activated(limits._device):
            (status,) = raw.cuCtxSetLimit(self._enum(), size)
        if status:
            raise failure(status, "cuCtxSetLimit", self._explain(status, size))

    def _explain(self, status: Any, size: int) -> str:
        detail = f"The requested value of Limits.{self._attribute} was {size}"
        if self._fixed_by and status.name == "CUDA_ERROR_INVALID_VALUE":
            detail += (
                f". This limit can no longer be changed once a kernel that uses {self._fixed_by} has been launched: "
                "set it at the beginning of the program"
            )
        return detail


class Limits:
    """The limits of one device's primary context. The driver may round the values that are set up or down."""

    __slots__ = ("_device",)

    def __init__(self, device: Device) -> None:
        self._device = device

    stack_size = _Limit("STACK_SIZE", "Bytes of stack per thread.")
    printf_fifo_size = _Limit(
        "PRINTF_FIFO_SIZE",
        "Bytes of the buffer for printf in kernels; fixed once a kernel that uses printf has been launched.",
        "printf",
    )
    malloc_heap_size = _Limit(
        "MALLOC_HEAP_SIZE",
        "Bytes of the heap for malloc in kernels; fixed once a kernel that uses malloc has been launched.",
        "malloc or free",
    )
    max_l2_fetch_granularity = _Limit("MAX_L2_FETCH_GRANULARITY", "Bytes that L2 fetches at once, 0 to 128: a hint.")
    persisting_l2_cache_size = _Limit("PERSISTING_L2_CACHE_SIZE", "Bytes of L2 set aside for persisting accesses.")

    def __repr__(self) -> str:
        values = (f"{name}={getattr(self, name)}" for name, kind in vars(Limits).items() if isinstance(kind, _Limit))
        return f"Limits({', '.join(values)})"
