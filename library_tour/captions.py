"""Captions of pictures: a sentence that says what is drawn, including for readers who cannot see the picture."""

from __future__ import annotations

from collections.abc import Iterable

from .report import number
from .stop import Bars, Curve, Film, Limit, Panels, Picture, Timeline

# More names than this are counted, not listed.
_MOST_NAMED = 6
_TIMES = ("ms", "us", "ns")


def caption(picture: Picture) -> str:
    """Return the caption of a picture."""
    match picture:
        case Curve():
            shown = quantity(picture.y)
            subject = "The line shows" if len(picture.lines) == 1 else "The lines show"
            of = _listed(picture.lines, "lines")
            return f"{subject} {shown} against {picture.x}, for {of}.{_dashed(picture.line)}"
        case Bars():
            cases = dict.fromkeys(case for bars in picture.bars.values() for case in bars if case)
            of = f", in the cases {_listed(cases, 'cases')}" if cases else ""
            names = _listed(picture.bars, "variants")
            return f"The bars show {quantity(picture.unit)} for {names}{of}.{_dashed(picture.line)}"
        case Timeline():
            return f"The bars show when each kind of work ran, in {picture.unit}: {_listed(picture.lanes, 'lanes')}."
        case Panels():
            labels = dict.fromkeys(label for values in picture.panels.values() for label in values)
            of = _listed(labels, "variants")
            return f"{picture.about}: the bars show {_listed(picture.panels, 'values')} for {of}."
        case Film():
            moments = list(dict.fromkeys(picture.captions))
            return f"The film has {len(moments)} stages, from “{moments[0]}” to “{moments[-1]}”."


def quantity(unit: str) -> str:
    """Return the quantity that an axis shows, inferred if the label is only a unit."""
    if " " not in unit and unit.endswith("/s"):
        return f"the rate in {unit}"
    return f"the time in {unit}" if unit in _TIMES else unit


def _dashed(line: Limit | None) -> str:
    if line is None or line.rate is None:
        return ""
    return f" The dashed line shows the limit: {line.name}, {number(line.rate)} {line.unit}."


def _listed(names: Iterable[str], noun: str) -> str:
    """Return names as a list within a sentence, or the number of names if there are many."""
    listed = list(names)
    if len(listed) > _MOST_NAMED:
        return f"{len(listed)} {noun}"
    # A name that contains a comma needs a stronger separator.
    between, last = ("; ", "; and ") if any("," in name for name in listed) else (", ", " and ")
    return last.join(filter(None, (between.join(listed[:-1]), listed[-1])))
