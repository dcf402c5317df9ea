"""The version of this package, which the build reads from this file, and the oldest Python that the package supports.

This module is imported before all others, so that an older Python gets a clear message and not a SyntaxError.
"""

import sys

__version__ = "0.2.0.dev0"

_OLDEST_PYTHON = (3, 11)

if sys.version_info < _OLDEST_PYTHON:  # only in a clone: pip respects requires-python
    raise ImportError(
        "cudart_py needs Python {}.{} or later, and this is Python {}.{}.{}: use a newer one, or `uv run` in the "
        "clone, which finds or downloads one".format(*_OLDEST_PYTHON, *sys.version_info[:3]),
        name="cudart_py",
    )
