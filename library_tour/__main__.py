"""Entry point of the command `library-tour`: run the command, or report what must be installed first."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

USAGE = 2
# The modules that the extra `tour` installs.
TOUR_MODULES = ("jinja2", "markdown_it", "pygments", "rich")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status, which is 2 if Python is too old or the extra `tour` is missing."""
    try:
        import cudart_py  # noqa: F401  # its import fails on an old Python
    except ImportError as error:
        if error.name != "cudart_py":
            raise
        return _refuse(str(error))
    missing = [name for name in TOUR_MODULES if find_spec(name) is None]
    if missing:
        return _refuse(f"the extra `tour` is missing ({', '.join(missing)}): pip install 'cudart-py[tour]'")
    from . import command, processes

    processes.raise_collection_threshold()
    return command.main(arguments)


def _refuse(reason: str) -> int:
    sys.stderr.write(f"library-tour: {reason}\n")
    return USAGE


if __name__ == "__main__":
    raise SystemExit(main())
