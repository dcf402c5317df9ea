"""The implementations of libcuda's functions."""

from __future__ import annotations

import re
from typing import Any

from ...driver import backend
from ..functions import Function
from ..messages import Implementation, not_supported
from .marshalling import marshal
from .special import SPECIAL

_VERSION = re.compile(r"_v\d+$")


def implementation(function: Function) -> Implementation:
    """Return the implementation of a function, which answers CUDA_ERROR_NOT_SUPPORTED if the simulator lacks it."""
    symbol = function.symbol
    if symbol in SPECIAL:
        return SPECIAL[symbol]
    target: Any = getattr(backend.chosen().functions, _VERSION.sub("", symbol), None)
    found = None if target is None else marshal(function, target)
    return found or not_supported(symbol)
