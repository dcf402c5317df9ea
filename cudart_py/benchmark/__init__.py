"""Measurements: reliable device times, host overhead, and a device's peak rates for comparison.

    from cudart_py.benchmark import ceilings, measure

    found = measure(lambda: saxpy[grid, 256](2.0, x, y, n), bytes=12 * n, ceiling="copy")
    print(found)                   # 1.03 ms ± 0.1 %, 4,160 GB/s, 98.4 % of copy (...)

`docs/measuring.md` describes the method and its pitfalls.
"""

from __future__ import annotations

from .clock_locks import locked_clocks
from .device.ceilings import Ceilings, ceilings
from .measuring import measure, measure_host
from .record import Measurement
from .sampling import MeasureOptions

__all__ = ["Ceilings", "MeasureOptions", "Measurement", "ceilings", "locked_clocks", "measure", "measure_host"]
__dir__ = __all__.copy  # hides private names and imports
