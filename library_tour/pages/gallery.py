"""The gallery of kernels on the documentation site: a page per stop, and a page that compares all kernels.

Each kernel is shown with its counters from the stop's run on the simulator, its source with per-line counters, and its
diagrams from the lesson.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudart_py.profiling.columns import Column, choose
from cudart_py.profiling.report.source_table import heading, source_table
from cudart_py.profiling.source_lines import Source, hot_lines

from .. import device_code, path
from .markup import highlighted
from .pictures import Beside, Shown
from .rendering import render
from .simulated import KernelRun, StopRun

COLUMNS = choose(("instructions", "sectors", "efficiency", "conflicts", "lanes"), ())
# The columns that rank kernels: whether the largest value comes first, and the heading of the list.
RANKED = {
    "load efficiency": (False, "Loads that use the smallest share of the bytes that they move"),
    "store efficiency": (False, "Stores that use the smallest share of the bytes that they move"),
    "active lanes": (False, "The fewest active lanes per instruction"),
    "bank conflicts": (True, "The most bank conflicts"),
}
MOST_RANKED = 5
_KERNEL = re.compile(r"__global__\s+(?:void\s+)?(?:__launch_bounds__\([^()]*\)\s*)?(?:void\s+)?(\w+)\s*\(")


@dataclass(frozen=True)
class _Cell:
    """A counter of a kernel: its text, its value, and its fraction of the best value, None if there is no best one."""

    text: str
    value: float | None
    part: float | None


@dataclass(frozen=True)
class _Instance:
    """A kernel, or an instance of a template, with its cells in the order of the columns and its annotated sources.

    `elsewhere` is the share of its work, from 0 to 1, that is done in third-party headers.
    """

    name: str
    id: str
    launches: int
    cells: Sequence[_Cell]
    sources: Sequence[tuple[str, str]]
    elsewhere: float


@dataclass(frozen=True)
class _Kernel:
    """A kernel with its launched instances; a kernel that was never launched has only its `code`, from line `first`."""

    name: str
    instances: Sequence[_Instance]
    diagrams: Sequence[Shown]
    code: Sequence[str] = ()
    first: int = 0


def write(folder: Path, runs: Sequence[StopRun]) -> list[str]:
    """Write the pages of the gallery into a folder; return the names of the stops that have one.

    The pages of the stops are next to this folder, in `stops`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kernels = {run.outcome.name: list(_kernels(run, folder)) for run in runs}
    kernels = {stop: found for stop, found in kernels.items() if found}
    headings = ["launches", *map(heading, COLUMNS)]
    for stop, found in kernels.items():
        page = render("kernels", "markdown", stop=stop, title=_title(runs, stop), kernels=found, headings=headings)
        (folder / f"{stop}.md").write_text(page, encoding="utf-8")
    chapters = [
        (f"{number}. {chapter.title}", [(stop, kernels[stop]) for stop in chapter.names if stop in kernels])
        for number, chapter in enumerate(path.CHAPTERS, 1)
    ]
    facts = {"chapters": chapters, "ranked": list(_ranked(kernels)), "headings": headings, "device": runs[0].device}
    (folder / "index.md").write_text(render("gallery", "markdown", **facts), encoding="utf-8")
    return list(kernels)


def _title(runs: Sequence[StopRun], stop: str) -> str:
    return next(run.outcome.title for run in runs if run.outcome.name == stop)


def _kernels(run: StopRun, folder: Path) -> Iterator[_Kernel]:
    """Yield the kernels of a stop: those of its device code in file order, then others, such as CUB's."""
    stop = run.outcome.name
    launched: dict[str, list[KernelRun]] = {}
    for kernel in run.kernels:
        launched.setdefault(_plain(kernel.name), []).append(kernel)
    drawn = Beside(folder / "pictures", "pictures").diagrams(stop, [each for each in run.diagrams if each.kernel])
    code = _code(stop)
    begins = kernel_lines(code)
    for name in dict.fromkeys([*begins, *launched]):
        of = [shown for diagram, shown in drawn if _plain(diagram.kernel) == name]
        if name in launched:
            instances = [
                _instance(each, f"{name}-{at}") for at, each in enumerate(sorted(launched[name], key=_order), 1)
            ]
            yield _Kernel(name, instances, of)
        else:
            lines = definition(code, begins[name])
            yield _Kernel(name, (), of, code[lines.start - 1 : lines.stop - 1], lines.start)


def _plain(kernel: str) -> str:
    return kernel.partition("<")[0]


def _order(kernel: KernelRun) -> list[str | int]:
    """Return a key that sorts the instances of a template by the numbers in their names."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", kernel.name)]


def _code(stop: str) -> list[str]:
    try:
        return device_code.find(stop).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:  # the stop has only host code
        return []


def kernel_lines(code: Sequence[str]) -> dict[str, int]:
    """Return the number of the line on which each kernel's definition begins, keyed by the kernel's name."""
    text = "\n".join(code)
    return {found[1]: text.count("\n", 0, found.start()) + 1 for found in _KERNEL.finditer(text)}


def _instance(kernel: KernelRun, id: str) -> _Instance:
    lines = hot_lines(kernel.sources)
    sources, shown = [], 0.0
    for at, source in enumerate(filter(_is_ours, kernel.sources), 1):
        shares = {line.number: line.share for line in lines if line.source is source}
        shown += sum(shares.values())
        numbers = sorted({number for busy in source.lines for number in definition(source.texts, busy)})
        colored = highlighted([source.text(number) for number in range(1, len(source.texts) + 1)], "cuda")
        table = source_table(source, f"{id}-{at}", numbers, COLUMNS[1:], shares, colored=colored)
        sources.append((Path(source.name).name, table))
    return _Instance(kernel.name, id, kernel.launches, [_cell(x, kernel.metrics) for x in COLUMNS], sources, 1 - shown)


def _is_ours(source: Source) -> bool:
    """Check whether a source is the tour's own device code, from a file or a string, and not a third-party header."""
    return bool(source.texts) and "/include/" not in source.name


def _cell(column: Column, metrics: Mapping[str, float]) -> _Cell:
    value = column.value(metrics)
    best = {"efficiency": 100, "lanes": 32}.get(column.heading[1])
    return _Cell(column.text(metrics), value, None if value is None or best is None else min(value / best, 1.0))


def definition(texts: Sequence[str], number: int) -> range:
    """Return the line numbers of the definition that contains a line, with the comment directly above it."""
    first = last = number
    # A definition begins without indentation, and may contain empty lines, braces and directives.
    while first > 1 and not re.match(r"[^\s#{}]", texts[first - 1]):
        first -= 1
    while first > 1 and re.match(r"[^#}]", texts[first - 2]):
        first -= 1
    while last < len(texts) and not texts[last - 1].startswith("}"):
        last += 1
    return range(first, last + 1)


def _ranked(kernels: Mapping[str, Sequence[_Kernel]]) -> Iterator[tuple[str, list[tuple[str, _Instance, str]]]]:
    """Yield lists of kernels, the most extreme ones first: a heading, and each kernel's stop, instance and figure."""
    names = [heading(column) for column in COLUMNS]
    for column, (descending, says) in RANKED.items():
        at = names.index(column)
        found = [
            (instance.cells[at].value, stop, instance)
            for stop, of in kernels.items()
            for kernel in of
            for instance in kernel.instances
        ]
        known = [(value, stop, instance) for value, stop, instance in found if value is not None]
        known.sort(key=lambda each: each[0], reverse=descending)
        # One instance per kernel, since the others tend to have the same figures.
        first: dict[tuple[str, str], tuple[str, _Instance, str]] = {}
        for _, stop, instance in known:
            first.setdefault((stop, _plain(instance.name)), (stop, instance, instance.cells[at].text))
        yield says, list(first.values())[:MOST_RANKED]
