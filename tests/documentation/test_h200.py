"""docs/h200.md is made of the figures that are recorded in library_tour/h200.json."""

from __future__ import annotations

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "scripts" / "record_tour.py"


def test_the_page_has_the_recorded_figures():
    script = runpy.run_path(str(SCRIPT))
    made = script["page"](script["kept_bars"]())
    assert script["PAGE"].read_text(encoding="utf-8") == made, "run `python scripts/record_tour.py`"
