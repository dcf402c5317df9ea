"""Formats: the dtypes and channels that elements of textures and CUDA arrays can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import arguments
from ..driver import enums

_FORMATS = {
    "uint8": "UNSIGNED_INT8",
    "uint16": "UNSIGNED_INT16",
    "uint32": "UNSIGNED_INT32",
    "int8": "SIGNED_INT8",
    "int16": "SIGNED_INT16",
    "int32": "SIGNED_INT32",
    "float16": "HALF",
    "float32": "FLOAT",
}


def check_format(call: str, name: str, dtype: np.dtype[Any]) -> None:
    """Raise TypeError for a dtype that elements of textures cannot have."""
    if dtype.name not in _FORMATS:
        raise arguments.wrong_dtype(call, name, f"one of {', '.join(_FORMATS)}", dtype)


def check_channels(call: str, name: str, channels: int, reason: str = "") -> int:
    """Return the number of channels; ValueError, with `reason` after the rule, unless it is 1, 2 or 4."""
    if channels not in (1, 2, 4):
        rule = "be 1, 2 or 4" if name == "channels" else "have 1, 2 or 4 channels"
        raise arguments.unusable(call, name, f"{rule}{reason}", channels)
    return channels


def format_of(dtype: np.dtype[Any]) -> Any:
    """Return the driver's format for channels of a dtype."""
    return getattr(enums.CUarray_format, f"CU_AD_FORMAT_{_FORMATS[dtype.name]}")
