"""Texture cases: each filter with each address mode.

The cases with pitched memory use images whose sizes are powers of two, and others. The cases with CUDA arrays use
floats, and integers of 8 and 16 bits, at coordinates that no filter weight represents exactly. The inputs of the latter
are recorded too, in `data/filtering_inputs.npz`, because they came from generators whose streams NumPy may change. In
that file, an image has the name of its geometry or its integer type, and coordinates have the names of the image and
the address mode, followed by `x`, `y`, `z` or `layer`.
"""

from typing import Any

import numpy as np

from . import values
from .frame import ROOT, Array, Case, Out, Sampled

_POINTS = 640
_MODES = ("clamp", "clamp normalized", "border", "border normalized", "wrap normalized", "mirror normalized")


def _addressing(mode: str) -> dict[str, Any]:
    address, _, normalized = mode.partition(" ")
    return {"address": address, "normalized": bool(normalized)}


def _coordinates(seed: int, extent: int, normalized: bool) -> values.Array:
    """Return coordinates that reach one image width beyond either side of the image.

    Most are at the centres of elements, at the edges between them, or at and next to the steps of the filter's weights.
    """
    steps = values.below(seed, _POINTS, 3 * extent * 512, np.int64) / 512
    steps[::4] = np.rint(steps[::4] * 2) / 2
    steps[1::4] += 2.0**-12
    found = (steps - extent).astype(np.float32)
    return found / np.float32(extent) if normalized else found


def _pitched(kernel: str, name: str, image: values.Array, dtype: str, **options: Any) -> Case:
    height, width = image.shape[:2]
    normalized = bool(options.get("normalized", False))
    x, y = _coordinates(301, width, normalized), _coordinates(302, height, normalized)
    sampled = Sampled(image, tuple(sorted(options.items())))
    out = Out("out", dtype, (_POINTS, *image.shape[2:]))
    return Case("texture", kernel, -(-_POINTS // 128), 128, (sampled, x, y, out, _POINTS), name=name)


def _sampling() -> list[Case]:
    # Whole numbers, because single precision represents their sums with 8-bit weights exactly.
    odd = values.below(311, 35, 4096, np.int64).astype(np.float32).reshape(5, 7)
    even = values.below(312, 128, 4096, np.int64).astype(np.float32).reshape(8, 16)
    pixels = values.below(313, 8 * 16 * 4, 256, np.uint8).reshape(8, 16, 4)
    found = []
    for size, image in (("8x16", even), ("5x7", odd)):
        for filter_ in ("point", "linear"):
            for mode in _MODES:
                options = {"filter": filter_, **_addressing(mode), "border": (7.0, 0.0, 0.0, 0.0)}
                found.append(_pitched("sample", f"{filter_} {mode} {size}", image, "float32", **options))
    pixel: dict[str, Any] = {"read": "normalized_float", "address": ("wrap", "mirror"), "normalized": True}
    return [
        *found,
        _pitched("sample_pixels", "pixels as floats", pixels, "float32", filter="point", **pixel),
        _pitched("sample_pixels", "filtered pixels", pixels, "float32", filter="linear", **pixel),
        _pitched("sample_bytes", "bytes", np.ascontiguousarray(pixels[:, :, 0]), "uint32", address="clamp"),
    ]


INPUTS = ROOT / "data" / "filtering_inputs.npz"
_AXES = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": "x", "a2d": "xy"}


def _case(inputs: dict[str, Array], geometry: str, image: str, at: str, name: str, **options: object) -> Case:
    """Return a case that samples an image at the recorded coordinates with the name `at`."""
    layered = geometry[0] == "a"
    sampled = Sampled(inputs[image], tuple(sorted(options.items())), "layered" if layered else "array")
    coordinates = [inputs[f"{at}/{axis}"] for axis in (*_AXES[geometry], *(["layer"] if layered else []))]
    points = len(coordinates[0])
    arguments = (sampled, *coordinates, Out("out", "float32", (points,)), points)
    return Case("filtering", f"sample_{geometry}", -(-points // 128), 128, arguments, name=name)


def _filtering() -> list[Case]:
    with np.load(INPUTS, allow_pickle=False) as file:
        inputs = {name: file[name] for name in file.files}
    found = []
    for geometry in _AXES:
        for mode in _MODES:
            name = f"{geometry} {mode}"
            found.append(_case(inputs, geometry, geometry, name, name, filter="linear", **_addressing(mode)))
    for geometry in ("a1d", "a2d"):
        name = f"{geometry} layers outside"
        found.append(_case(inputs, geometry, f"{name}/image", name, name))
    for integers in ("uint8", "int8", "uint16", "int16"):
        for filter_ in ("point", "linear"):
            options = {"filter": filter_, "read": "normalized_float"}
            found.append(_case(inputs, "2d", integers, integers, f"{integers} {filter_}", **options))
    return found


def cases() -> list[Case]:
    return [*_sampling(), *_filtering()]
