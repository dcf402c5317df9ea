"""Let the tests of this folder, like `record.py` beside them, import the package `suite`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
