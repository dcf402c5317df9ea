"""Types of command-line arguments that the commands about benchmarks and the pytest plugin share."""

from __future__ import annotations

import argparse
import math

from .counter_gate import Limit, read_limit


def count(text: str) -> int:
    """Parse a number of runs or commits, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def percentage(text: str) -> float:
    """Parse a limit in percent, with or without the sign; reject NaN and infinity, which nothing would ever exceed."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage of at least 0, such as 5%")
    return value


def counter_limit(text: str) -> Limit:
    """Parse the limit of a counter, such as `sectors:5%`."""
    try:
        return read_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
