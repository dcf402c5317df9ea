"""The table of all cases."""

from . import arithmetic, behaviour, textures
from .frame import Case

CASES: tuple[Case, ...] = (*arithmetic.cases(), *behaviour.cases(), *textures.cases())
