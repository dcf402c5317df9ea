"""The bindings' enums and structures: `enums.CUevent_flags`, `enums.CUlaunchConfig()`.

They are the same for every driver. The bindings are imported only at the first use of an enum or structure, because
importing them takes longer than importing all of this package.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from cuda.bindings import driver  # imported late, as above

    value = getattr(driver, name)
    globals()[name] = value
    return value
