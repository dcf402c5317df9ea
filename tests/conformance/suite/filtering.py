"""Cases of textures of CUDA arrays: floats and integers of 8 and 16 bits, at coordinates that fit no weight exactly.

The inputs are recorded too, in `data/filtering_inputs.npz`: they came from generators whose streams NumPy may change.
An image is named by its geometry or its integers. The coordinates of a case are named by the image and the address
mode, and by `x`, `y`, `z` and `layer`.
"""

from __future__ import annotations

import numpy as np

from .frame import ROOT, Array, Case, Out, SampledArray

INPUTS = ROOT / "data" / "filtering_inputs.npz"
_AXES = {"1d": "x", "2d": "xy", "3d": "xyz", "a1d": "x", "a2d": "xy"}
_MODES = ("clamp", "clamp normalized", "border", "border normalized", "wrap normalized", "mirror normalized")


def _case(inputs: dict[str, Array], geometry: str, image: str, at: str, name: str, **options: object) -> Case:
    """Return a case that reads an image at the coordinates of a name."""
    layered = geometry[0] == "a"
    sampled = SampledArray(inputs[image], tuple(sorted(options.items())), layered)
    axes = [*_AXES[geometry], *(["layer"] if layered else [])]
    coordinates = [inputs[f"{at}/{axis}"] for axis in axes]
    points = len(coordinates[0])
    out = Out("out", "float32", (points,))
    arguments = (sampled, *coordinates, out, points)
    return Case("filtering", f"sample_{geometry}", -(-points // 128), 128, arguments, name=name)


def cases() -> list[Case]:
    """Return every case of this module."""
    with np.load(INPUTS, allow_pickle=False) as file:
        inputs = {name: file[name] for name in file.files}
    found = []
    for geometry in _AXES:
        for mode in _MODES:
            name = f"{geometry} {mode}"
            address, _, normalized = mode.partition(" ")
            options = {"filter": "linear", "address": address, "normalized": bool(normalized)}
            found.append(_case(inputs, geometry, geometry, name, name, **options))
    for geometry in ("a1d", "a2d"):
        name = f"{geometry} layers outside"
        found.append(_case(inputs, geometry, f"{name}/image", name, name))
    for integers in ("uint8", "int8", "uint16", "int16"):
        for filter_ in ("point", "linear"):
            options = {"filter": filter_, "read": "normalized_float"}
            found.append(_case(inputs, "2d", integers, integers, f"{integers} {filter_}", **options))
    return found
