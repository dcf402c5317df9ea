"""Build the library's functions by name; the part of a name before the first dot is the function's kind."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from .accesses import build_access, build_atomic, build_bulk_copy, build_run
from .checking.bulk_checks import build_bulk_check, build_bulked, build_waited
from .checking.checks import build_check
from .checking.clocks import build_barrier_number, build_clock, build_named, build_strong
from .checking.copies import build_awaited, build_copied, build_issued, build_settle
from .checking.records import build_expand, build_filled, build_find, build_ordered, build_readers
from .checking.side_by_side import build_note
from .checking.undefined import build_undefined
from .counts import build_count, build_most
from .hosts import build_hosts
from .images import build_fetch, build_surface, build_texture
from .matrices import build_product
from .mbarriers import build_mbarrier
from .warps import build_match, build_math, build_permute, build_redux

_BUILDERS: dict[str, Callable[[ir.Module, str], None]] = {
    "load": build_access,
    "store": build_access,
    "run": build_run,
    "atom": build_atomic,
    "permute": build_permute,
    "redux": build_redux,
    "match": build_match,
    "math": build_math,
    "count": build_count,
    "most": build_most,
    "check": build_check,
    "noted": build_note,
    "expand": build_expand,
    "find": build_find,
    "ordered": build_ordered,
    "filled": build_filled,
    "readers": build_readers,
    "issued": build_issued,
    "awaited": build_awaited,
    "settle": build_settle,
    "copied": build_copied,
    "strong": build_strong,
    "hosts": build_hosts,
    "mma": build_product,
    "fetch": build_fetch,
    "texture": build_texture,
    "surface": build_surface,
    "mbarrier": build_mbarrier,
    "bulk": build_bulk_copy,
    "bulkcopy": build_bulk_check,
    "bulked": build_bulked,
    "waited": build_waited,
    "clock": build_clock,
    "named": build_named,
    "barrier": build_barrier_number,
    "undefined": build_undefined,
}


NAMES = frozenset(_BUILDERS)


def build_function(module: ir.Module, name: str) -> None:
    """Build one function of the library in a module; it may call others."""
    _BUILDERS[name.partition(".")[0]](module, name)
