"""The one table of cases."""

from __future__ import annotations

from . import arithmetic, behaviour, textures
from .frame import Case

CASES: tuple[Case, ...] = (*arithmetic.cases(), *behaviour.cases(), *textures.cases())
