"""Lazy modules: code that is loaded on each device at its first use there."""

from __future__ import annotations

import copyreg
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from ..base import arguments
from ..compilation.images import CompiledImage
from ..compilation.requests import make_request
from ..context.device import Device, current_device
from .kernel import Kernel
from .launch import Launch
from .library import Library
from .loading import code_of, compile, read_image
from .module import Module, image_bytes


class LazyModule:
    """CUDA C++ that is compiled and loaded on each device when it is first used there.

        kernels = cuda.LazyModule(Path("saxpy.cu"))  # no driver is chosen, nothing is compiled
        kernels["saxpy"][grid, block](2.0, x, y, n)  # on the current device

    This allows a module to define kernels when it is imported. Each device has its own copy of the code and of its
    variables. The arguments are those of `compile` without `arch`, since the code is always compiled for the device.
    They are checked at once. A file is read when it is compiled, but relative paths in `source` and `include` refer to
    the working folder at the time when the LazyModule is created. `LazyModule.from_image` does the same for code that
    has been compiled before. A LazyModule can be pickled, but its copy is not yet loaded on any device.

    Raises TypeError or ValueError for invalid arguments. The first use on a device may raise any error of `compile`.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        names: Sequence[str] = (),
        std: str | None = None,
        fast_math: bool = False,
        include: Sequence[str | Path] = (),
        headers: Mapping[str, str] | None = None,
        define: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        cache: bool = True,
        name: str | None = None,
    ) -> None:
        call = "LazyModule"
        request = make_request(
            call,
            source,
            names=names,
            arch=None,
            std=std,
            fast_math=fast_math,
            include=include,
            headers=headers,
            define=define,
            options=options,
            name=name,
        )
        folders = [include] if isinstance(include, str | os.PathLike) else include
        self._name = request.name
        self._source = source if isinstance(source, str) else Path(source).absolute()
        self._options: dict[str, Any] = {
            "names": tuple(names),
            "std": std,
            "fast_math": fast_math,
            "include": tuple(Path(folder).absolute() for folder in folders),
            "headers": None if headers is None else dict(headers),
            "define": None if define is None else dict(define),
            "options": tuple(options),
            "cache": arguments.flag(call, "cache", cache),
            "name": name,
        }
        self._image: bytes | CompiledImage | None = None
        self._begin()

    def _begin(self) -> None:
        self._modules: dict[Device, Module] = {}
        self._libraries: dict[bytes, Library] = {}
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def from_image(cls, image: bytes | bytearray | memoryview | Path | CompiledImage) -> LazyModule:
        """Return a LazyModule of code that has been compiled before; `image` is as for `load` (cuLibraryLoadData).

            kernels = cuda.LazyModule.from_image(Path("kernels.cubin"))

        The image is loaded once for all devices, at the first use on any of them, without a context. A device that
        needs PTX, while another one runs the machine code, loads the PTX.
        """
        result = cls.__new__(cls)
        result._image = read_image("LazyModule.from_image", image)
        result._name = result._image.name if isinstance(result._image, CompiledImage) else "an image"
        result._begin()
        return result

    def _load(self) -> Module:
        """Return a new module on the current device."""
        if self._image is None:
            return compile(self._source, **self._options)
        image = self._image
        code = code_of("LazyModule", image) if isinstance(image, CompiledImage) else image
        library = self._libraries.get(code)
        if library is None or library.closed:
            library = self._libraries[code] = Library(image_bytes("LazyModule", code))
        return Module._of_library(library, image)

    @property
    def module(self) -> Module:
        """The module on the current device, compiled and loaded first if necessary.

        Raises ValueError when closed.
        """
        device = current_device()
        module = self._modules.get(device)
        if module is None or module.closed:
            with self._lock:  # two threads must not load it twice
                if self._closed:
                    raise ValueError(f"this LazyModule of {self._name!r} is closed")
                module = self._modules.get(device)
                if module is None or module.closed:
                    module = self._modules[device] = self._load()
        return module

    def __getitem__(self, name: str) -> Kernel:
        return self.module[arguments.text("LazyModule", "name", name)]

    def _ipython_key_completions_(self) -> tuple[str, ...]:
        """Return the names that IPython and Jupyter offer after `module["`; none before the code is compiled."""
        loaded = self._loaded()
        return () if loaded is None else loaded.kernels

    if not TYPE_CHECKING:  # as in Module

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, which explains how to get a kernel.

            Attribute access does not compile anything, so before the first use the names of the kernels are not known.
            """
            if not name.startswith("_"):
                loaded = self._loaded()
                if loaded is None:
                    raise AttributeError(
                        f"a LazyModule has no attribute {name!r}; if it is a kernel, write module[{name!r}]"
                    )
                loaded._refuse_kernel(name)
            return self.__getattribute__(name)

    def _loaded(self) -> Module | None:
        """Return the module on any device on which it is loaded, or None."""
        return next((module for module in self._modules.copy().values() if not module.closed), None)

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices on which the code is loaded, sorted by ordinal."""
        loaded = [device for device, module in self._modules.copy().items() if not module.closed]
        return tuple(sorted(loaded, key=lambda device: device.ordinal))

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._closed

    def close(self) -> None:
        """Unload the code from all devices; a second call does nothing."""
        with self._lock:
            self._closed = True
            modules, self._modules = self._modules, {}
            libraries, self._libraries = self._libraries, {}
        for thing in (*modules.values(), *libraries.values()):
            thing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._closed:
            raise ValueError(f"this LazyModule of {self._name!r} is closed")
        if self._image is not None:
            return LazyModule.from_image, (self._image,)
        return _from_source, (self._source, self._options)

    def __repr__(self) -> str:
        devices = ", ".join(str(device.ordinal) for device in self.devices)
        state = "closed" if self._closed else f"loaded on device {devices}" if devices else "not loaded"
        return f"<LazyModule {self._name!r}, {state}>"


def _from_source(source: str | Path, options: Mapping[str, Any]) -> LazyModule:
    return LazyModule(source, **options)


class LazyKernel:
    """A kernel from a pickle: it has all the methods and attributes of `Kernel`, on the current device.

    The image of its module is loaded when the kernel is first used.
    """

    __slots__ = ("_entry", "_module")

    def __init__(self, module: LazyModule, entry: str) -> None:
        self._module = module
        self._entry = entry

    def __getitem__(self, key: tuple[Any, ...]) -> Launch:
        return self._module[self._entry][key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python looks up special methods, which must not load anything
            raise AttributeError(name)
        return getattr(self._module[self._entry], name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in LazyKernel.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._module[self._entry], name, value)

    def __call__(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError, since a launch needs its shape in brackets."""
        self._module[self._entry](*arguments, **options)

    def __reduce__(self) -> str | tuple[Any, ...]:
        return LazyKernel, (self._module, self._entry)

    def __repr__(self) -> str:
        return f"<LazyKernel {self._entry} of {self._module!r}>"


def _reduced_module(module: Module) -> tuple[Any, ...]:
    """Pickle a module as its image, which the receiving process loads when it is first used."""
    module.handle  # noqa: B018  # raises when closed
    return LazyModule.from_image, (module._image,)


def _reduced_kernel(kernel: Kernel) -> tuple[Any, ...]:
    """Pickle a kernel as its module and its name in the image."""
    kernel.handle  # noqa: B018  # raises when the module is closed
    return LazyKernel, (kernel.module, kernel.signature.entry)


# Here and not in methods, because modules and kernels know nothing of their lazy forms.
copyreg.pickle(Module, _reduced_module)
copyreg.pickle(Kernel, _reduced_kernel)
