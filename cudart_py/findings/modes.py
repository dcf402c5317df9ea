"""The mode of the simulator's checks that the environment sets."""

from __future__ import annotations

import os

MODE_VARIABLE = "CUDART_PY_SANITIZER"
MODES = ("off", "warn", "error")
_SPELLINGS = {"": "warn", "0": "off", "1": "warn"}


def initial_mode() -> str:
    """Return the mode that `CUDART_PY_SANITIZER` sets: "off", "warn" or "error".

    "0" means "off", and "1" or no value means "warn". Any other value raises ValueError.
    """
    value = os.environ.get(MODE_VARIABLE, "")
    found = _SPELLINGS.get(value, value)
    if found not in MODES:
        raise ValueError(f"{MODE_VARIABLE}={value!r} is not one of 0, 1, {', '.join(MODES)}")
    return found
