"""The bindings' enums and structures: `enums.CUevent_flags`, `enums.CUlaunchConfig()`.

They are the same for every driver. The bindings are imported when the first one is used, which takes longer than the
import of all of this package.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from cuda.bindings import driver  # not at import, as above

    value = getattr(driver, name)
    globals()[name] = value
    return value
