"""The report: one self-contained HTML page, which includes its charts and styles."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from ...pages.document import document
from ...pages.tables import breakable
from . import tables
from .roofline import ceilings_of, kernels_of, operations, roofline
from .runs import Run
from .trend_chart import trend_chart, written
from .trends import Setup, Trend, setups

_BODY, _STYLE = (Path(__file__).parent / name for name in ("page.html", "page.css"))

_ROOFLINE = """\
The benchmarks whose bytes and operations are known. The sloping lines are the limits of the memory at each number of
operations per byte, and the flat lines are the limits of the arithmetic units. A point near a line is close to the
device's limit."""
_FIGURES = {
    "instructions": "instructions executed by warps (groups of 32 threads)",
    "requests": "loads and stores of global memory by warps",
    "sectors": "32-byte sectors of global memory that these touch",
    "local": "32-byte sectors of local memory that loads and stores touch",
    "wavefronts": "wavefronts of loads and stores of shared memory",
    "conflicts": "additional wavefronts because of bank conflicts",
    "memory": "bytes of device memory that the first call allocates beyond what was in use before",
    "lanes": "active threads per instruction, out of 32; more is better here, and less is better for all other counts",
}


def page(runs: Sequence[Run]) -> str:
    """Return the HTML of a report on `runs`, of which there must be at least one, sorted by date."""
    first, latest = runs[0], runs[-1]
    title = f"Benchmarks of {latest.project}" if latest.project else "Benchmarks"
    found = setups(runs)
    sections = "".join(_section(setup, f"setup-{number}") for number, setup in enumerate(found, 1))
    body = Template(_BODY.read_text(encoding="utf-8")).substitute(
        title=escape(title),
        runs=_counted(len(runs), "run"),
        first=f"{first.when:%Y-%m-%d}",
        last=f"{latest.when:%Y-%m-%d}",
        latest=escape(_described(latest)),
        contents=_contents(found),
        sections=sections,
        table=tables.runs_table(runs),
    )
    return document(title, body, style=_STYLE.read_text(encoding="utf-8"))


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'s' * (count != 1)}"


def _described(run: Run) -> str:
    """Return the name of a run with its date and its commit."""
    commit = f", commit {run.short_commit}" if run.short_commit else ""
    return f"{run.name} ({run.when:%Y-%m-%d}{commit}{', uncommitted changes' if run.dirty else ''})"


def _contents(found: Sequence[Setup]) -> str:
    items = []
    for number, setup in enumerate(found, 1):
        counts = _counted(len(setup.runs), "run"), _counted(len(setup.steps), "step")
        facts = "; ".join(filter(None, (_facts(setup), *counts)))
        items.append(f'<li><a href="#setup-{number}">{escape(_title(setup))}</a>: {escape(facts)}</li>')
    return f"<nav><ul>{''.join(items)}</ul></nav>"


def _title(setup: Setup) -> str:
    device = setup.conditions.device
    if setup.counts:
        return f"Counts of {device or 'launches'}"
    return f"Times on {device}" if device else "Host times"


def _facts(setup: Setup) -> str:
    """Return the conditions other than the device: driver, processor and Python."""
    known = setup.conditions
    return ", ".join(filter(None, (known.driver and f"driver {known.driver}", known.processor, known.python)))


def _section(setup: Setup, name: str) -> str:
    latest = setup.runs[-1]
    several = len(setup.runs) > 1
    # The anchors of the benchmarks' trends in the page.
    links = {benchmark: f"{name}-{number}" for number, benchmark in enumerate(setup.trends, 1)} if several else {}
    if several:
        compared = f"The latest run is {_described(latest)}, the previous one {_described(setup.runs[-2])}."
    else:
        compared = f"There is one run so far: {_described(latest)}."
    missing = len(setup.trends) - len(setup.entries(latest))
    if missing:
        compared += f" Benchmarks of earlier runs that it does not have: {missing}."
    steps = tables.steps_table(setup, links)
    table = (tables.counted_table if setup.counts else tables.timed_table)(setup, links)
    facts = _facts(setup)
    return "\n".join(
        (
            f'<section id="{name}" class="setup"><h2>{escape(_title(setup))}</h2>',
            f"<p>{escape(facts)}</p>" if facts else "",
            f"<h3>Steps</h3>{steps}" if steps else "",
            f"<h3>The latest run</h3><p>{escape(compared)}</p>{table}",
            _counted_figures(setup) if setup.counts else _roofline(setup),
            _trends(setup, links) if several else "",
            "</section>",
        )
    )


def _counted_figures(setup: Setup) -> str:
    """Return the explanations of the counted figures that the trends show."""
    names = dict.fromkeys(trend.figure.name for trends in setup.trends.values() for trend in trends)
    lines = "".join(f"<dt>{name}</dt><dd>{escape(_FIGURES[name])}</dd>" for name in names if name in _FIGURES)
    return f"<details><summary>Meaning of the counts</summary><dl>{lines}</dl></details>"


def _roofline(setup: Setup) -> str:
    """Draw the latest run's roofline; return "" if no benchmark has both bytes and operations."""
    entries = list(setup.entries(setup.runs[-1]).values())
    kernels, ceilings = kernels_of(entries), ceilings_of(entries)
    if not kernels:
        return ""
    known = ", ".join(f"{name} {_ceiling(name, rate)}" for name, rate in ceilings.items())
    items = "".join(
        f"<li>{escape(kernel.name)}: {kernel.intensity:.3g} operations per byte, {operations(kernel.rate)}</li>"
        for kernel in kernels
    )
    measured = f"The ceilings that this run measured: {known}." if known else "This run measured no ceilings."
    return (
        f'<h3>Roofline</h3><p>{_ROOFLINE} {measured}</p><div class="roofline">{roofline(kernels, ceilings)}'
        f"<ol>{items}</ol></div>"
    )


def _ceiling(name: str, rate: float) -> str:
    return operations(rate) if name.startswith("fp") else f"{rate / 1e9:,.0f} GB/s"


def _trends(setup: Setup, links: dict[str, str]) -> str:
    """Draw each benchmark's trends; figures without a chart, such as constant counts, share a line of text."""
    articles = []
    for benchmark, trends in setup.trends.items():
        drawn = [trend for trend in trends if len(trend.points) > 1 and (trend.steps or not trend.figure.exact)]
        same = ", ".join(f"{trend.figure.name} {_last(trend)}" for trend in trends if trend not in drawn)
        constant = f"<p>The same in every run: {escape(same)}.</p>" if same else ""
        heading = f"<h4>{breakable(benchmark)}</h4>"
        charts = "".join(map(_chart, drawn))
        articles.append(f'<article id="{links[benchmark]}">{heading}{charts}{constant}</article>')
    return f'<h3>Trends</h3><div class="trends">{"".join(articles)}</div>'


def _chart(trend: Trend) -> str:
    steps = "".join(f'<li class="{kind}">{escape(line)}</li>' for line, kind in tables.changes(trend))
    listed = f"<ul>{steps}</ul>" if steps else ""
    caption = f"{trend.figure.name}, at last {_last(trend)}"
    return f"<figure><figcaption>{escape(caption)}</figcaption>{trend_chart(trend)}{listed}</figure>"


def _last(trend: Trend) -> str:
    return written(trend.figure, trend.points[-1].value)
