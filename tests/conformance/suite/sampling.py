"""Cases of textures: each filter with each way of addressing, over images whose sizes are and aren't powers of two."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import values
from .frame import Case, Out, Sampled

_POINTS = 640
_MODES = [(mode, normalized) for normalized in (False, True) for mode in ("clamp", "border")]
_MODES += [("wrap", True), ("mirror", True)]


def _coordinates(seed: int, extent: int, normalized: bool) -> values.Array:
    """Return coordinates from one image's width before the image to one behind it.

    Most lie on elements' middles, on the edges between them, and on and next to the steps of the filter's weights.
    """
    steps = values.below(seed, _POINTS, 3 * extent * 512, np.int64) / 512
    steps[::4] = np.rint(steps[::4] * 2) / 2
    steps[1::4] += 2.0**-12
    found = (steps - extent).astype(np.float32)
    return found / np.float32(extent) if normalized else found


def _case(kernel: str, name: str, image: values.Array, dtype: str, **options: Any) -> Case:
    height, width = image.shape[:2]
    normalized = bool(options.get("normalized", False))
    x, y = _coordinates(301, width, normalized), _coordinates(302, height, normalized)
    sampled = Sampled(image, tuple(sorted(options.items())))
    shape = (_POINTS, *image.shape[2:])
    return Case(
        "texture", kernel, -(-_POINTS // 128), 128, (sampled, x, y, Out("out", dtype, shape), _POINTS), name=name
    )


def cases() -> list[Case]:
    """Return every case of this module."""
    # Whole numbers: weights of 8 bits make sums of them that single precision holds.
    odd = values.below(311, 35, 4096, np.int64).astype(np.float32).reshape(5, 7)
    even = values.below(312, 128, 4096, np.int64).astype(np.float32).reshape(8, 16)
    pixels = values.below(313, 8 * 16 * 4, 256, np.uint8).reshape(8, 16, 4)
    found = []
    for size, image in (("8x16", even), ("5x7", odd)):
        for filter_ in ("point", "linear"):
            for mode, normalized in _MODES:
                name = f"{filter_} {mode}{' normalized' if normalized else ''} {size}"
                options = {"filter": filter_, "address": mode, "normalized": normalized, "border": (7.0, 0.0, 0.0, 0.0)}
                found.append(_case("sample", name, image, "float32", **options))
    pixel: dict[str, Any] = {"read": "normalized_float", "address": ("wrap", "mirror"), "normalized": True}
    return [
        *found,
        _case("sample_pixels", "pixels as floats", pixels, "float32", filter="point", **pixel),
        _case("sample_pixels", "filtered pixels", pixels, "float32", filter="linear", **pixel),
        _case("sample_bytes", "bytes", np.ascontiguousarray(pixels[:, :, 0]), "uint32", address="clamp"),
    ]
