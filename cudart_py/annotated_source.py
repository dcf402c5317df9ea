"""Source with what each line did beside it: sectors a request, bank conflicts, active lanes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from .profiling import LaunchProfile

__all__ = ["annotated_sources"]

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_{}.sum"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
_ACCESSES = "smsp__inst_executed_op_shared_{}.sum"
_WARPS = "smsp__inst_executed.sum"
_LANES = "smsp__thread_inst_executed.sum"
_GLOBAL = ("ld", "st", "red", "atom")
_SHARED = ("ld", "st", "atom")
_HEAD = f"{'sectors/':>9} {'bank':>11} {'active':>7}\n{'request':>9} {'conflicts':>11} {'lanes':>7}   line"


def annotated_sources(launches: Iterable[LaunchProfile]) -> str:
    """Give the text of every source file that the launches' lines come from, annotated.

    Files that are not there, such as sources given as strings, are shown by line number alone.
    """
    files: dict[str, dict[int, dict[str, float]]] = {}
    for launch in launches:
        for line in launch.lines:
            if line.line:
                _add(files.setdefault(line.file, {}).setdefault(line.line, {}), line.metrics)
    return "\n\n".join(_annotated(file, files[file]) for file in sorted(files))


def _add(into: dict[str, float], metrics: Mapping[str, float]) -> None:
    for name, value in metrics.items():
        into[name] = into.get(name, 0) + value


def _annotated(file: str, lines: Mapping[int, Mapping[str, float]]) -> str:
    try:
        texts = Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        texts = []
    shown = range(1, len(texts) + 1) if texts else sorted(lines)
    rows = [f"{_figures(lines.get(number, {}))} {number:5d} {_text(texts, number)}".rstrip() for number in shown]
    return "\n".join([file or "unknown source", _HEAD, *rows])


def _text(texts: list[str], number: int) -> str:
    return texts[number - 1].expandtabs(4) if number <= len(texts) else ""


def _figures(metrics: Mapping[str, float]) -> str:
    def total(pattern: str, kinds: Iterable[str]) -> float:
        return sum(metrics.get(pattern.format(kind), 0) for kind in kinds)

    requests = total(_REQUESTS, _GLOBAL)
    sectors = f"{total(_SECTORS, _GLOBAL) / requests:.1f}" if requests else ""
    conflicts = f"{total(_CONFLICTS, _SHARED):,.0f}" if total(_ACCESSES, _SHARED) else ""
    lanes = f"{metrics[_LANES] / metrics[_WARPS]:.1f}" if metrics.get(_WARPS) else ""
    return f"{sectors:>9} {conflicts:>11} {lanes:>7} "
