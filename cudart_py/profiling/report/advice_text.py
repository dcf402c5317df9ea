"""The estimated costs of lines and the advice on them, as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..advice import Advice, advise_on
from ..source_lines import hot_lines, sources_of
from .cost_table import cost_table

if TYPE_CHECKING:
    from ..profiles import LaunchProfile

_WIDTH = 80


def advice_texts(launches: Sequence[LaunchProfile]) -> Iterator[str]:
    """Yield the table of the most expensive lines if their costs are known, then the advice, or that there is none."""
    ranked = hot_lines(sources_of(launches))
    if ranked:
        yield cost_table(ranked)
    advice = advise_on(ranked)
    head = "Advice, starting with the most expensive lines:" if advice else "No advice: no rule applies."
    yield "\n".join((head, *map(_advised, advice)))


def _advised(advice: Advice) -> str:
    text = f"{advice.line.place}: {advice.sentence} (Rule: {advice.rule}.)"
    return textwrap.fill(text, _WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False)
