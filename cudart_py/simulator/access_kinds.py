"""Tell how instructions access memory: plainly or strongly, with what order, and for what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ptx.instructions import Access, Instruction

if TYPE_CHECKING:
    from .ptx.control_flow import Code

__all__ = ["AccessKinds"]

_STRONG = {"volatile", "relaxed", "acquire", "release", "mmio"}
_RELEASING = {"release", "acq_rel"}


class AccessKinds:
    """Keep the answers for the instructions of one launch."""

    def __init__(self) -> None:
        self._strength: dict[int, tuple[bool, bool, str]] = {}
        self._guesses: dict[int, bool] = {}

    def strength(self, site: Instruction, kind: str) -> tuple[bool, bool, str]:
        """Tell whether an access is atomic or volatile, whether it releases by itself, and in which scope then."""
        known = self._strength.get(id(site))
        if known is None:
            parts = set(site.parts)
            strong = kind in ("atom", "red") or bool(parts & _STRONG)
            releases = bool(parts & _RELEASING)
            scope = ("cta" if "cta" in parts else "gpu") if releases else ""
            known = self._strength[id(site)] = strong, releases, scope
        return known

    def first_guess(self, code: Code, site: Instruction) -> bool:
        """Tell whether a load only fetches what a compare-and-swap at the same place starts from."""
        known = self._guesses.get(id(site))
        if known is None:
            here = [(o.base, o.offset) for o in site.operands if isinstance(o, Access)]
            swaps = [o for o in code.function.instructions if o.opcode.startswith("atom") and ".cas" in o.opcode]
            known = self._guesses[id(site)] = any(
                isinstance(operand, Access) and (operand.base, operand.offset) in here
                for swap in swaps
                for operand in swap.operands
            )
        return known
