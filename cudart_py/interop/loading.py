"""Loading of kernels that were compiled from Python, with the lines of the Python source."""

from __future__ import annotations

import linecache
import os
import re
from types import CodeType

from ..compilation.exports import lookup_table
from ..compilation.images import CompiledImage
from ..compilation.names.signatures import Signature
from ..host.callers import call_site
from ..launch.kernel import Kernel
from ..launch.loading import load_compiled

_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)


def load_kernel(call: str, ptx: str, cubin: bytes, signature: Signature, code: CodeType) -> Kernel:
    """Load the only kernel of an image on the current device; `code` is the function that it was compiled from.

    Reports and profiles read the source's file. A source that is not a file, for example one in a notebook, is added to
    the image.
    """
    file = os.path.abspath(code.co_filename)
    source = "" if os.path.isfile(file) else "".join(linecache.getlines(code.co_filename))
    target = _TARGET.search(ptx)
    image = CompiledImage(
        file,
        target[1] if target else "",
        f"{ptx.rstrip()}\n".encode(),  # the source follows, on a line of its own
        cubin,
        b"",
        {signature.entry: signature},
        {},
        lookup_table([(signature.entry, signature.name)]),
        {},
        "",
        source,
    )
    return load_compiled(call, image, call_site())[signature.entry]
