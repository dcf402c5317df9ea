"""Modules: compiled code loaded on a device, with its kernels and variables."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from .. import errors
from ..base import arguments
from ..base.shapes import Shape
from ..compilation.exports import lookup_table, simplified
from ..compilation.images import CompiledImage, normalised
from ..compilation.names.demangling import declared_name, demangle
from ..compilation.names.signatures import Parameter, Signature
from ..context.current import activated
from ..context.device import Device, current_device
from ..context.lifetimes import Handle
from ..driver import calls, enums
from ..driver.calls import api
from ..driver.unwrap import failure
from ..hints import hinted
from ..memory.array import DeviceArray
from .kernel import Kernel
from .library import Library

# All parameters of a kernel begin at a multiple of this many bytes.
_PARAMETER_ALIGNMENT = 16
_SHARED = "a module is not changed by its use, so share it; pickle.dumps makes a pickle of its image"


@hinted
class Module(Handle):
    """Code loaded on a device (cuModuleLoadData). `module["name"]` is a kernel.

    `name` is the C++ name of the kernel, a name expression from `compile(names=...)`, or the name in the image. The
    module is unloaded when it is closed, or when neither it nor any of its kernels is referenced any longer.

    `image` is a cubin, PTX or a fatbin as bytes; `compiled` is the result of compiling its source.
    """

    __slots__ = ("_compiled", "_device", "_entries", "_foreign_names", "_image", "_kernels", "_library", "_symbols")

    def __init__(self, image: bytes | bytearray | memoryview, compiled: CompiledImage | None = None) -> None:
        # Set first: if loading fails, the finalizer must find nothing to unload.
        self._value = None
        data = image_bytes("Module", image)
        if compiled is not None:
            arguments.instance("Module", "compiled", compiled, CompiledImage, "a CompiledImage or None")
        self._owned = True
        self._read(data if compiled is None else compiled, None, lambda: api.cuModuleLoadData(data))

    @classmethod
    def _of_library(cls, library: Library, image: bytes | CompiledImage) -> Module:
        """Return the module of a library on the current device; the library, which has this image, is kept alive."""
        result = cls.__new__(cls)
        result._value = None
        result._owned = False  # the library unloads it
        result._read(image, library, lambda: api.cuLibraryGetModule(library.handle))
        return result

    def _read(self, image: bytes | CompiledImage, library: Library | None, load: Callable[[], Any]) -> None:
        """Load the module on the current device, and read its names."""
        self._image = image  # pickles of the module contain it
        self._library = library
        self._device = current_device()
        self._compiled = image if isinstance(image, CompiledImage) else None
        self._kernels: dict[str, Kernel] = {}
        self._symbols: weakref.WeakSet[DeviceArray] = weakref.WeakSet()
        self._value = int(load())
        try:
            self._entries = frozenset(self._entry_names())
            # Kernels of loaded or linked machine code: their mangled names are the only declarations that exist.
            foreign = sorted(self._entries - self._signatures.keys())
            self._foreign_names = lookup_table((entry, _cpp_name(entry)) for entry in foreign)
        except BaseException:
            self.close()
            raise

    def _entry_names(self) -> Iterator[str]:
        count = api.cuModuleGetFunctionCount(self._value)
        for function in api.cuModuleEnumerateFunctions(count, self._value) if count else ():
            yield api.cuFuncGetName(function).decode()

    @property
    def _signatures(self) -> Mapping[str, Signature]:
        return self._compiled.signatures if self._compiled is not None else {}

    @property
    def device(self) -> Device:
        """The device on which the module is loaded."""
        return self._device

    @property
    def image(self) -> CompiledImage:
        """The result of compiling or linking: the code, signatures, variables and names.

        Raises ValueError for a module that was loaded from an image, since the image is not kept.
        """
        return self._made("image")

    @property
    def ptx(self) -> bytes:
        """The compiled or linked PTX, as bytes; empty if the linker produced only machine code.

        Raises ValueError for a module that was loaded from an image, since the image is not kept.
        """
        return self._made("ptx").ptx

    @property
    def cubin(self) -> bytes:
        """The compiled or linked machine code; raises ValueError for a module that was loaded from an image."""
        return self._made("cubin").cubin

    def _made(self, what: str) -> CompiledImage:
        if self._compiled is None:
            raise ValueError(f"Module.{what}: this module was loaded from an image, which is not kept")
        return self._compiled

    @property
    def log(self) -> str:
        """The warnings of the compiler; empty if there were none."""
        return self._compiled.log if self._compiled is not None else ""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The C++ names of the module's kernels, sorted."""
        known = self._signatures
        return tuple(sorted(known[entry].name if entry in known else _cpp_name(entry) for entry in self._entries))

    def __iter__(self) -> Iterator[str]:
        return iter(self.kernels)

    def _ipython_key_completions_(self) -> tuple[str, ...]:
        """Return the names that IPython and Jupyter offer after `module["`."""
        return self.kernels

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self._candidates(name))

    if not TYPE_CHECKING:  # otherwise a type checker would accept any attribute name

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with the expression that returns the kernel of this or a similar name."""
            self._refuse_kernel(name)
            return self.__getattribute__(name)

    def _refuse_kernel(self, name: str) -> None:
        """Raise AttributeError if the attribute's name is, or resembles, the name of a kernel."""
        if name.startswith("_"):
            return
        if name in self:
            raise AttributeError(f"a module's kernels are not attributes: write module[{name!r}]")
        near = arguments.nearest(name, self.kernels)
        if near is not None:
            raise AttributeError(f"a module has no attribute {name!r}; did you mean the kernel module[{near!r}]?")

    def __getitem__(self, name: str) -> Kernel:
        self.handle  # noqa: B018  # raises when closed
        try:
            kernel = self._kernels.get(name)
        except TypeError:  # unhashable, so not a str; the check below reports it
            kernel = None
        if kernel is None:
            arguments.text("Module", "name", name)
            candidates = self._candidates(name)
            if len(candidates) != 1:
                raise errors.NotFoundError(self._not_found(name, candidates))
            entry = candidates[0]
            kernel = self._kernels.get(entry) or self._make_kernel(entry)
            self._kernels[entry] = self._kernels[name] = kernel
        return kernel

    def _make_kernel(self, entry: str) -> Kernel:
        with activated(self._device):
            # Unlike enumeration, this call loads the kernel's code, which attributes and launches need.
            handle = int(api.cuModuleGetFunction(self.handle, entry.encode()))
        known = self._signatures.get(entry)
        signature = _foreign_signature(entry, handle) if known is None else _as_placed(known, handle)
        compiled = self._compiled.attributes.get(entry) if self._compiled is not None else None
        return Kernel(self, signature.name, handle, signature, compiled)

    def _candidates(self, name: str) -> Sequence[str]:
        if name in self._entries:
            return (name,)
        told = self._compiled.entries(name) if self._compiled is not None else ()
        return (*told, *self._foreign_names.get(normalised(name), ()))

    def _not_found(self, name: str, candidates: Sequence[str]) -> str:
        if candidates:
            known = self._signatures
            names = [known[entry].name if entry in known else _cpp_name(entry) for entry in candidates]
            if len(set(names)) == len(names):
                return (
                    f"the kernel name {name!r} is ambiguous: write {' or '.join(f'module[{one!r}]' for one in names)}"
                )
            spelled = ((known[entry] if entry in known else demangle(entry) or entry, entry) for entry in candidates)
            listing = ", ".join(f"{declaration} is {entry!r}" for declaration, entry in spelled)
            return f"the kernel name {name!r} is ambiguous: {listing}"
        if self._compiled is not None and self._compiled.symbols(name):
            return f"{name!r} is a variable, not a kernel: write module.symbol({name!r})"
        listing = ", ".join(self.kernels) or "none"
        remedy = ""
        if "<" in name or not self.kernels:
            remedy = ". Instances of templates must be listed in names=[...] of cudart_py.compile"
        return f"no kernel is named {name!r}{_suggestion(name, self.kernels)} Kernels of this module: {listing}{remedy}"

    def symbol(self, name: str, dtype: DTypeLike | None = None, shape: Shape | None = None) -> DeviceArray:
        """Return a variable of the module as an array over its memory (cuModuleGetGlobal).

        `dtype` and `shape` default to those of the declaration, or to an array of bytes if the declaration is not
        known. If only `dtype` is given, the array has one dimension. Raises NotFoundError if the module has no variable
        with this name, and ValueError if the size does not match that of the variable.
        """
        handle = self.handle
        arguments.text("Module.symbol", "name", name)
        kind = None if dtype is None else arguments.dtype("Module.symbol", "dtype", dtype)
        given = None if shape is None else arguments.shape("Module.symbol", "shape", shape)
        symbols = self._compiled.symbols(name) if self._compiled is not None else (name,)
        if len(symbols) != 1:
            raise errors.NotFoundError(self._no_symbol(name, symbols))
        with activated(self._device):
            result = calls.raw.cuModuleGetGlobal(handle, symbols[0].encode())
        if result[0]:
            if result[0].name == "CUDA_ERROR_NOT_FOUND":
                raise errors.NotFoundError(self._no_symbol(name, ()), status=result[0], call="cuModuleGetGlobal")
            raise failure(result[0], "cuModuleGetGlobal")
        pointer, nbytes = int(result[1]), int(result[2])
        known = self._compiled.variables[symbols[0]] if self._compiled is not None else None
        if kind is None:
            kind = np.dtype(np.uint8 if known is None or known.dtype is None else known.dtype)
            given = known.shape if known is not None and given is None else given
        sizes = (nbytes // kind.itemsize,) if given is None else given
        if math.prod(sizes) * kind.itemsize != nbytes:
            rule = f"have {nbytes} bytes with 'dtype', like {name}"
            raise arguments.unusable("Module.symbol", "shape", rule, f"{sizes} of {kind}")
        array = DeviceArray.borrow(pointer, sizes, kind, owner=self, device=self._device)
        self._symbols.add(array)
        return array

    def _no_symbol(self, name: str, symbols: Sequence[str]) -> str:
        if symbols:
            return f"the variable name {name!r} is ambiguous: {', '.join(symbols)}"
        if self._compiled is None:
            return f"no variable is named {name!r}. The names of a loaded image's variables are not known"
        if name in self.kernels:
            return f"{name!r} is a kernel, not a variable: write module[{name!r}]"
        known = [variable.name for variable in self._compiled.variables.values()]
        hint = _suggestion(name, known)
        return (
            f"no variable is named {name!r}{hint} Variables of this module: {', '.join(known) or 'none'}. The compiler "
            "omits variables that no kernel uses"
        )

    def _release(self, value: Any) -> None:
        with activated(self._device):
            api.cuModuleUnload(value)

    def close(self) -> None:
        """Unload the code; its kernels and variables can no longer be used. A second call does nothing."""
        self._kernels.clear()
        for array in tuple(self._symbols):
            array.close()
        super().close()

    def __copy__(self) -> NoReturn:
        arguments.refuse_copy(self, _SHARED)

    def __deepcopy__(self, memo: object) -> NoReturn:
        arguments.refuse_copy(self, _SHARED)

    def __repr__(self) -> str:
        return f"<Module {'closed' if self.closed else ', '.join(self.kernels)}>"


def _suggestion(name: str, known: Sequence[str]) -> str:
    """Return the end of the sentence about an unknown name, with a similar known name if there is one."""
    in_namespace = (other for other in known if other.rpartition("::")[2] == name)
    near = next(in_namespace, None) or arguments.nearest(name, known)
    return "." if near is None else f"; did you mean {near!r}?"


def image_bytes(call: str, image: Any, wanted: str = "bytes") -> bytes:
    """Return an image as bytes that end with a NUL, because PTX is text, which the driver reads up to a NUL."""
    # A str is refused because it could be PTX or a path, and an int because it would be taken for an address.
    data = bytes(arguments.instance(call, "image", image, (bytes, bytearray, memoryview), wanted))
    if not data:
        raise arguments.wrong_value(call, "image", "an image of at least one byte", data)
    return data if data.endswith(b"\0") else data + b"\0"


def _cpp_name(entry: str) -> str:
    """Return the C++ name of a kernel from its (mangled) name in the image."""
    declaration = demangle(entry)
    return simplified(declared_name(declaration)) if declaration else entry


def _as_placed(signature: Signature, handle: int) -> Signature:
    """Return a signature with the offsets at which the driver places parameters.

    They are those of PTX, unless a parameter is aligned to more bytes than the start of all parameters. On an H200, a
    tensor map that is the first parameter has the offset 48.
    """
    if all(parameter.alignment <= _PARAMETER_ALIGNMENT for parameter in signature.parameters):
        return signature
    placed = []
    for number, parameter in enumerate(signature.parameters):
        offset, _ = api.cuFuncGetParamInfo(handle, number)
        placed.append(replace(parameter, offset=int(offset)))
    return replace(signature, parameters=tuple(placed))


def _foreign_signature(entry: str, handle: int) -> Signature:
    """Return the signature of a kernel in an image without declarations: the driver knows only parameter sizes."""
    parameters: list[Parameter] = []
    while True:
        status, offset, size = calls.raw.cuFuncGetParamInfo(handle, len(parameters))
        if status == enums.CUresult.CUDA_ERROR_INVALID_VALUE:  # after the last parameter
            return Signature(entry, _cpp_name(entry), tuple(parameters))
        if status:
            raise failure(status, "cuFuncGetParamInfo")
        parameters.append(Parameter("", "unknown", int(size), 1, int(offset)))
