"""Streams, copies and kernels as lanes of time, from the events that a stop recorded."""

from __future__ import annotations

from cudart_py.pages.diagram import COLORS, GROUND, INK, RULE, WIDTH, Diagram, box, label_at, stroke

from ..stop import Points, Timeline

_LANE, _LEFT, _COLUMNS, _MOST_TICKS = 22, 140, 52, 8
# If there are several runs, a lane's name begins with the run's name and this separator.
_SEPARATOR = ": "


def timeline_diagram(timeline: Timeline, title: str) -> Diagram:
    """Return a diagram of a timeline's spans, with one colour per stage."""
    ends = _ends(timeline)
    end = max(ends.values())
    if len(ends) == 1:
        caption = f"All work ends after {end:.3g} {timeline.unit}."
    else:
        each = [f"{name} after {finish:.3g} {timeline.unit}" for name, finish in ends.items()]
        caption = f"The work ends: {', '.join(each)}."
    width = max(map(len, timeline.lanes))
    texts = [f"  {name:{width}} [{_marks(spans, end)}]" for name, spans in timeline.lanes.items()]
    texts.append(f"  {'':{width}}  0{f'{end:.3g} {timeline.unit}':>{_COLUMNS - 1}}")
    texts += ["", "    # and = alternate between the operations of a lane   . nothing runs"]
    return Diagram(title, caption, texts, *_drawing(timeline, end))


def _ends(timeline: Timeline) -> dict[str, float]:
    """Return when the work of each run ends."""
    ends: dict[str, float] = {}
    for name, spans in timeline.lanes.items():
        run = name.rpartition(_SEPARATOR)[0]
        ends[run] = max([ends.get(run, 0.0), *(finish for _, finish in spans)])
    return ends


def _marks(spans: Points, end: float) -> str:
    marks = ["."] * _COLUMNS
    for at, (begin, finish) in enumerate(spans):
        first = min(int(begin / end * _COLUMNS), _COLUMNS - 1)
        for column in range(first, max(first + 1, round(finish / end * _COLUMNS))):
            marks[column] = "#="[at % 2]
    return "".join(marks)


def _ticks(end: float) -> list[float]:
    """Return round times up to the end: multiples of 1, 2 or 5 times a power of ten."""
    steps = (digit * 10.0**power for power in range(-6, 7) for digit in (1, 2, 5))
    step = next(step for step in steps if end / step <= _MOST_TICKS)
    return [step * number for number in range(int(end / step) + 1)]


def _drawing(timeline: Timeline, end: float) -> tuple[float, list[str]]:
    scale = (WIDTH - _LEFT - 4) / end
    height = len(timeline.lanes) * _LANE
    stages = list(dict.fromkeys(name.rpartition(_SEPARATOR)[2] for name in timeline.lanes))
    parts = []
    for time in _ticks(end):
        x = _LEFT + time * scale
        parts.append(stroke(x, 0, x, height, RULE, 0.6))
        parts.append(label_at(x, height + 13, f"{time:.4g}", anchor="middle"))
    parts.append(label_at(0, height + 13, f"time in {timeline.unit}"))
    for row, (name, spans) in enumerate(timeline.lanes.items()):
        y = row * _LANE
        parts.append(label_at(0, y + 15, name, size=11, color=INK))
        color = COLORS[stages.index(name.rpartition(_SEPARATOR)[2]) % len(COLORS)]
        for begin, finish in spans:
            width = max(1.0, (finish - begin) * scale)
            parts.append(box(_LEFT + begin * scale, y + 2, width, _LANE - 4, color, GROUND))
    return height + 20, parts
