"""Parse PTX, and read the comments that its compiler has added."""

from __future__ import annotations

import json
import re
from functools import cached_property

from cuda.bindings.driver import CUlimit, CUresult

from ... import ptx
from ...state.errors import StatusError
from ...state.fault_reports import put_report
from .assembling import resources_of
from .images import refuse_target, runs_here

# PTX has no register counts. The compiler of the image may add them, in one such comment per kernel.
_COUNTS = re.compile(r"^// cudart-py: registers (\S+)=(\d+) spills=(\d+) stack=(\d+)\s*$", re.MULTILINE)
# Functions of the device's runtime, which PTX declares if a kernel calls them, and the limits that can't be changed any
# more after a launch of such code.
_FIXING = re.compile(r"^\s*\.extern\s+\.func\b[^;]*?\b(vprintf|malloc|free)\b\s*[(;]", re.MULTILINE)
_FIXED_LIMITS = {
    "vprintf": CUlimit.CU_LIMIT_PRINTF_FIFO_SIZE.value,
    "malloc": CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value,
    "free": CUlimit.CU_LIMIT_MALLOC_HEAP_SIZE.value,
}
# Comments in JSON: the folder in which the source was compiled; and a list of the source's name, its text, and the line
# that compiled it, if it is not a file.
_FOLDER = re.compile(r"^// cudart-py: folder (\".*\")\s*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^\s*\.\w", re.MULTILINE)
_SOURCE = re.compile(r"^// cudart-py: source (\[.*\])\s*$", re.MULTILINE)


class ParsedImage:
    """The code of an image, which can be loaded into any context.

    `fixed_limits` are the limits that a launch of a kernel fixes, and `counts` the registers per thread and the size of
    a thread's stack in bytes, for the kernels for which the image states them.
    """

    def __init__(self, text: str) -> None:
        self.code, self._text = parse(text), text
        self.fixed_limits = {_FIXED_LIMITS[name] for name in _FIXING.findall(text)}
        self.counts = {match[1]: (int(match[2]), int(match[4])) for match in _COUNTS.finditer(text)}

    @cached_property
    def resources(self) -> dict[str, tuple[int, int]]:
        """Like `counts`, but if the image states nothing, the code is assembled, which takes a moment."""
        return self.counts or resources_of(self._text)


def parse(text: str, *, relocatable: bool = False) -> ptx.Module:
    """Return the parsed PTX of a text, or raise the driver's status, with a report.

    Functions and variables of `relocatable` code may be defined elsewhere.
    """
    if not _DIRECTIVE.search(text):
        put_report("the image is neither PTX, a fatbin nor a cubin")
        raise StatusError(CUresult.CUDA_ERROR_INVALID_IMAGE)
    try:
        if ".version" not in text:
            raise ptx.PtxError("the image is not PTX: it has no .version")
        code = ptx.load_module(text, _source(text), relocatable=relocatable)
    except ptx.PtxVersionError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION) from None
    except ptx.PtxError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_INVALID_PTX) from None
    except ptx.UnsupportedError as error:
        put_report(str(error))
        raise StatusError(CUresult.CUDA_ERROR_NOT_SUPPORTED) from None
    if not runs_here(code.target):
        raise refuse_target(f"the PTX is for {code.target}")
    return code


def _source(text: str) -> ptx.SourceText | None:
    """Return the information about the source that the compiler has added to an image, or None."""
    match = _SOURCE.search(text)
    if match is None:
        return None
    compiled_in = _FOLDER.search(text)
    try:
        name, source, origin = json.loads(match[1])
        folder = json.loads(compiled_in[1]) if compiled_in else ""
    except ValueError:  # the comment is from another program
        return None
    return ptx.SourceText(str(name), str(source), str(origin), str(folder))
