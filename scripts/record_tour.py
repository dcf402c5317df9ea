#!/usr/bin/env python3
"""Put a run of the whole tour into the package: the figures of an H200, or the seconds of the simulator.

    library-tour run --json tour.json
    python scripts/record_tour.py tour.json

A run with a GPU's times becomes library_tour/h200.json, without what pages do not show. One without becomes
library_tour/seconds.json, from which the bar of progress knows the time left.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from library_tour import progress, recorded

LINE = 400  # characters at most before a value is divided among lines


def main() -> None:
    """Write one of the two files."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if "gpu_timing" in run["driver"]["capabilities"]:
        written, path = recorded.shortened(run), recorded.FILE
    else:
        written, path = {stop["name"]: round(stop["seconds"], 1) for stop in run["stops"]}, progress.SECONDS
    path.write_text(text(written) + "\n", encoding="utf-8")
    print(f"written: {path}, {path.stat().st_size:,} bytes")


def text(value: object, indent: str = "") -> str:
    """Return a value as JSON, one line for each part that fits into one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= LINE or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {text(each, deeper)}" for key, each in value.items()]
    else:
        parts = [text(each, deeper) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


if __name__ == "__main__":
    main()
