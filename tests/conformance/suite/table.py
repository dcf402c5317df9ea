"""The one table of cases."""

from __future__ import annotations

from . import arithmetic, behaviour, libraries, textures
from .frame import Case

CONFORMANCE: tuple[Case, ...] = (*arithmetic.cases(), *behaviour.cases(), *textures.cases())
LIBRARIES: tuple[Case, ...] = tuple(libraries.cases())
