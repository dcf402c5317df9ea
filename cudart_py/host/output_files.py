"""Arguments of commands that name an output file, checked before the work whose result the file receives."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

STANDARD_OUTPUT = "-"


def output_file(text: str) -> str:
    """Parse the name of an output file, or "-" for standard output; creates nothing.

    Raises ArgumentTypeError, a usage error, if the file cannot be written.
    """
    why = None if text == STANDARD_OUTPUT else _why_not_writable(text)
    if why is not None:
        raise argparse.ArgumentTypeError(f"{text} cannot be written: {why}")
    return text


def output_path(text: str) -> Path:
    """Parse the name of an output file as `output_file` does, for options without standard output."""
    return Path(output_file(text))


def _why_not_writable(path: str) -> str | None:
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        return "it is a folder"
    if not os.path.isdir(folder):
        return f"the folder {folder} does not exist"
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        return "permission denied"
    return None
