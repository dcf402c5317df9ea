"""The one table of cases."""

from . import arithmetic, behaviour, textures
from .frame import Case

CASES: tuple[Case, ...] = (*arithmetic.cases(), *behaviour.cases(), *textures.cases())
