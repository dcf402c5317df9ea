"""Source with what each line did beside it: sectors a request, bank conflicts, active lanes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from .profiles import LaunchProfile

__all__ = ["annotated_sources"]

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_ACCESSES = "smsp__inst_executed_op_shared_{}.sum"
_WARPS = "smsp__inst_executed.sum"
_LANES = "smsp__thread_inst_executed.sum"
_GLOBAL = ("ld", "st", "red", "atom")
_SHARED = ("ld", "st", "atom")
# So many lines around one that did something are shown, and gaps of so many more are left out.
_NEAR = 3
_GAP = 8
_FIGURES = 26
_HEAD = f"{'sectors/':>8} {'bank':>10} {'active':>6}\n{'request':>8} {'conflicts':>10} {'lanes':>6}  line"


def annotated_sources(launches: Iterable[LaunchProfile]) -> str:
    """Return the text of every source that the launches' lines come from, annotated; those of the program first.

    Long stretches that did nothing are left out. Files that are not there are shown by line number alone.
    """
    sources: dict[tuple[str, str | None], dict[int, dict[str, float]]] = {}
    for launch in launches:
        for line in launch.lines:
            if line.line:
                # Sources that were given as strings may have the same name.
                lines = sources.setdefault((line.file, launch.sources.get(line.file)), {})
                _add(lines.setdefault(line.line, {}), line.metrics)
    here = os.getcwd() + os.sep
    ranked = sorted(sources, key=lambda key: (key[1] is None and not key[0].startswith(here), key[0]))
    return "\n\n".join(_annotated(file, text, sources[file, text]) for file, text in ranked)


def _add(into: dict[str, float], metrics: Mapping[str, float]) -> None:
    for name, value in metrics.items():
        into[name] = into.get(name, 0) + value


def _annotated(file: str, text: str | None, lines: Mapping[int, Mapping[str, float]]) -> str:
    try:
        texts = (Path(file).read_text(encoding="utf-8") if text is None else text).splitlines()
    except (OSError, UnicodeDecodeError):
        texts = []
    here = os.getcwd() + os.sep
    name = (file.removeprefix(here) or "unknown source") + ("" if texts else " (its text is not at hand)")
    rows = [name, _HEAD]
    last = 0
    for number in _shown(lines, len(texts)):
        if texts and number != last + 1:
            rows.append(f"{'':{_FIGURES}}    ⋮")
        rows.append(f"{_figures(lines.get(number, {}))} {number:5d} {_text(texts, number)}".rstrip())
        last = number
    return "\n".join(rows)


def _shown(lines: Iterable[int], count: int) -> list[int]:
    """Return the lines to show of a file of `count` lines: those that executed instructions, and their neighbours."""
    busy = sorted(lines)
    if not count:
        return busy
    kept = set(busy)
    # A gap that is shorter than what would be left out of it is shown.
    for before, after in itertools.pairwise((-_NEAR, *busy, count + _NEAR + 1)):
        if after - before <= 2 * _NEAR + _GAP:
            kept.update(range(before, after))
        else:
            kept.update(range(before, before + _NEAR + 1), range(after - _NEAR, after))
    return sorted(number for number in kept if 1 <= number <= count)


def _text(texts: list[str], number: int) -> str:
    return texts[number - 1].expandtabs(4) if number <= len(texts) else ""


def _figures(metrics: Mapping[str, float]) -> str:
    def total(pattern: str, kinds: Iterable[str]) -> float:
        return sum(metrics.get(pattern.format(kind), 0) for kind in kinds)

    requests = total(_REQUESTS, _GLOBAL)
    sectors = f"{total(_SECTORS, _GLOBAL) / requests:.1f}" if requests else ""
    conflicts = f"{total(_CONFLICTS, _SHARED):,.0f}" if total(_ACCESSES, _SHARED) else ""
    lanes = f"{metrics[_LANES] / metrics[_WARPS]:.1f}" if metrics.get(_WARPS) else ""
    return f"{sectors:>8} {conflicts:>10} {lanes:>6}"
