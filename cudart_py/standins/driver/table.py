"""The implementations of libcuda's functions."""

from __future__ import annotations

import re
from typing import Any

from ...driver import backend
from ..functions import Function, driver_declarations
from ..messages import Implementation, not_supported
from .marshalling import marshal
from .special import SPECIAL

_VERSION = re.compile(r"_v\d+$")


def implementation(function: Function) -> Implementation:
    """Return the implementation of a function, which answers CUDA_ERROR_NOT_SUPPORTED if the simulator lacks it."""
    return implemented(function) or not_supported(function.symbol)


def implemented(function: Function) -> Implementation | None:
    """Return the implementation of a function, or None if the simulator lacks it."""
    symbol = function.symbol
    # A name without a version that the bindings do not declare stands for the first version, the second of CUDA's.
    found = SPECIAL.get(symbol if symbol in driver_declarations() else f"{symbol}_v2")
    target: Any = getattr(backend.chosen().functions, _VERSION.sub("", symbol), None)
    return found or (None if target is None else marshal(function, target))
