"""The version of this package, which the build takes from here, and the oldest Python that the package runs on.

It is imported before every other module, so that an older Python gets a sentence and not a SyntaxError.
"""

import sys

__version__ = "0.2.0.dev0"

_OLDEST_PYTHON = (3, 11)

if sys.version_info < _OLDEST_PYTHON:  # in a clone: pip goes by requires-python
    raise ImportError(
        "cudart_py needs Python {}.{} or later, and this is Python {}.{}.{}: use a newer one, or `uv run` in the "
        "clone, which finds or downloads one".format(*_OLDEST_PYTHON, *sys.version_info[:3]),
        name="cudart_py",
    )
