"""Linking: modules of relocatable PTX, such as those that nvcc -rdc=true compiles, become one image."""

from __future__ import annotations

import ctypes
import re
from typing import Any

from cuda.bindings.driver import CUjitInputType, CUlinkState, CUresult

from ....compilation.linking.ptx_linking import external_names, link_ptx, strong_definitions
from ... import ptx
from ...state.arguments import number
from ...state.contexts import current
from ...state.errors import StatusError
from ...state.fault_reports import put_report
from ...state.handles import Handles
from ..entry import entry
from .images import Image, ptx_of_host_code, ptx_of_input, read_file
from .jit_options import JitOptions
from .parsing import ParsedImage, parse

_TYPE = CUjitInputType
# Code with an "a" in its target may use features of one architecture, so the result has such a target too.
_TARGET_ORDER = re.compile(r"sm_(\d+)([af]?)")


class LinkState:
    """A link: the inputs so far, the error that ends it, if any, and the linked image."""

    def __init__(self, options: JitOptions | None = None) -> None:
        self.options = JitOptions(0, (), ()) if options is None else options
        self.handle = 0
        self._texts: dict[str, str] = {}  # keyed by a name that is unique among the inputs
        self._modules: dict[str, ptx.Module] = {}
        self._error = ""
        self._result: ctypes.Array[ctypes.c_char] | None = None

    def add(self, name: str, text: str) -> None:
        """Add a PTX text; raise CUDA_ERROR_INVALID_PTX, or CUDA_ERROR_INVALID_SOURCE if it contradicts an earlier one.

        After the latter, the link cannot be completed.
        """
        module = parse(text, relocatable=True)
        for other, earlier in self._modules.items():
            self._error = self._error or _contradiction(name, (text, module), other, (self._texts[other], earlier))
        if self._error:
            raise self._refuse()
        unique = name if name not in self._texts else f"{name} ({len(self._texts)})"
        self._texts[unique] = text
        self._modules[unique] = module

    def complete(self) -> str:
        """Return the linked text, or raise CUDA_ERROR_INVALID_SOURCE if a symbol has no definition."""
        if self._error:
            raise self._refuse()
        targets = [module.target for module in self._modules.values()]
        text = link_ptx(list(self._texts.values()), max(targets, key=_order, default="sm_90"))
        undefined = ptx.undefined_names(parse(text, relocatable=True))
        if undefined:
            self._error = "\n".join(self._undefined(name) for name in undefined)
            raise self._refuse()
        return text

    def image(self) -> ctypes.Array[ctypes.c_char]:
        """Return the linked image, which the state keeps alive."""
        if self._result is None:
            self._result = ctypes.create_string_buffer(self.complete().encode())
        return self._result

    def _undefined(self, symbol: str) -> str:
        users = [name for name, module in self._modules.items() if symbol in ptx.undefined_names(module)]
        used = f", which {' and '.join(users)} {'uses' if len(users) == 1 else 'use'}" if users else ""
        return f"no input of the link defines {symbol}{used}"

    def _refuse(self) -> StatusError:
        put_report(self._error)
        return StatusError(CUresult.CUDA_ERROR_INVALID_SOURCE)


def _order(target: str) -> tuple[int, str]:
    match = _TARGET_ORDER.match(target)
    return (int(match[1]), match[2]) if match else (0, "")


def _contradiction(name: str, new: tuple[str, ptx.Module], other: str, old: tuple[str, ptx.Module]) -> str:
    """Return how two inputs, each a text and its module, contradict each other; "" if they don't."""
    (text, module), (earlier_text, earlier) = new, old
    for symbol in sorted(strong_definitions(text) & strong_definitions(earlier_text)):
        return f"{other} and {name} both define {symbol}: declare it extern in one of them"
    for symbol in sorted(external_names(text) & external_names(earlier_text)):
        if _prototype(module, symbol) != _prototype(earlier, symbol):
            return f"{other} and {name} declare the function {symbol} with different parameters or results"
        sizes = {code.variables[symbol].size for code in (module, earlier) if symbol in code.variables}
        if len(sizes - {0}) > 1:  # an array without an extent has size 0
            return f"{other} and {name} declare the variable {symbol} with different sizes"
    return ""


def _prototype(module: ptx.Module, function: str) -> list[list[int]]:
    lists = (module.function_results.get(function, ()), module.function_parameters.get(function, ()))
    return [[parameter.size for parameter in parameters] for parameters in lists]


def linked_image(image: Image) -> ParsedImage:
    """Return the parsed code of an image; the parts of an image with several are linked first."""
    texts = image.ptx()
    if len(texts) == 1:
        return ParsedImage(texts[0])
    link = LinkState()
    for place, text in enumerate(texts):
        link.add(f"part {place}", text)
    return ParsedImage(link.complete())


links: Handles[LinkState] = Handles()


@entry(values=1)
def cuLinkCreate(numOptions: Any, options: Any, optionValues: Any) -> Any:
    """Begin a link; of the options, only those for an error log have an effect (cuLinkCreate)."""
    current()
    link = LinkState(JitOptions(numOptions, options, optionValues))
    link.handle = links.add(link)
    return CUlinkState(link.handle)


@entry()
def cuLinkAddData(
    state: Any, typename: Any, data: Any, size: Any, name: Any, numOptions: Any, options: Any, optionValues: Any
) -> None:
    """Add PTX, a fatbin with PTX, or host code that contains one, to a link (cuLinkAddData)."""
    link = links.find(state)
    JitOptions(numOptions, options, optionValues)
    if data is None or number(size) <= 0:
        raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
    code = ctypes.string_at(data, number(size)) if isinstance(data, int) else bytes(memoryview(data))[: number(size)]
    _add(link, typename, code, bytes(name or b"").decode(errors="replace"))


@entry()
def cuLinkAddFile(state: Any, typename: Any, path: Any, numOptions: Any, options: Any, optionValues: Any) -> None:
    """Add a file of PTX, a fatbin with PTX, or host code that contains one, to a link (cuLinkAddFile)."""
    link = links.find(state)
    JitOptions(numOptions, options, optionValues)
    with link.options.logging():
        code = read_file(path)
    _add(link, typename, code, bytes(path).decode(errors="replace"))


def _add(link: LinkState, typename: Any, code: bytes, name: str) -> None:
    kind = number(typename)
    with link.options.logging():
        if kind in (_TYPE.CU_JIT_INPUT_OBJECT.value, _TYPE.CU_JIT_INPUT_LIBRARY.value):
            texts = ptx_of_host_code(code, may_lack_ptx=kind == _TYPE.CU_JIT_INPUT_LIBRARY.value)
        elif kind in (_TYPE.CU_JIT_INPUT_PTX.value, _TYPE.CU_JIT_INPUT_FATBINARY.value, _TYPE.CU_JIT_INPUT_CUBIN.value):
            texts = [ptx_of_input(code)]
        else:
            raise StatusError(CUresult.CUDA_ERROR_INVALID_VALUE)
        for text in texts:
            link.add(name or "an input without a name", text)


@entry(values=2)
def cuLinkComplete(state: Any) -> tuple[int, int]:
    """Link, and return the address and size of the image, which exists until cuLinkDestroy (cuLinkComplete)."""
    link = links.find(state)
    with link.options.logging():
        image = link.image()
    return ctypes.addressof(image), len(image)


@entry(frees=True)
def cuLinkDestroy(state: Any) -> None:
    """End a link (cuLinkDestroy)."""
    links.remove(links.find(state).handle)
