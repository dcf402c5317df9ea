"""Lazy modules: code that is loaded on each device at its first use there."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from .. import arguments
from ..compilation.requests import make_request
from ..context.device import Device, current_device
from .kernel import Kernel
from .loading import compile
from .module import Module


class LazyModule:
    """CUDA C++ that is compiled for and loaded on each device when it is first used there (cuLibraryLoadData).

        kernels = cuda.LazyModule(Path("saxpy.cu"))  # no driver is chosen, nothing is compiled
        kernels["saxpy"][grid, block](2.0, x, y, n)  # on the current device

    This allows a module to define kernels when it is imported. Each device has its own copy of the code and of its
    variables. The arguments are those of `compile` without `arch`, since the code is always compiled for the device.
    They are checked at once. A file is read when it is compiled, but relative paths in `source` and `include` refer to
    the working folder at the time when the LazyModule is created.

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
        self._modules: dict[Device, Module] = {}
        self._lock = threading.Lock()
        self._closed = False

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
                    module = self._modules[device] = compile(self._source, **self._options)
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
        for module in modules.values():
            module.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> str | tuple[Any, ...]:
        arguments.refuse_copy(self, "make another one from the same source; its code comes from the cache")

    def __repr__(self) -> str:
        devices = ", ".join(str(device.ordinal) for device in self.devices)
        state = "closed" if self._closed else f"loaded on device {devices}" if devices else "not loaded"
        return f"<LazyModule {self._name!r}, {state}>"
