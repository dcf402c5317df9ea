"""cuRAND in software: its own host generators, whose numbers go to the simulator's memory."""

from __future__ import annotations

from typing import Any

from nvmath.bindings import curand

import cudart_py as cuda
from library_tour.libraries.curand_host import host_curand


class Curand:
    """One library; a device generator is a host generator, since both make the same numbers."""

    RngType, Ordering = curand.RngType, curand.Ordering

    def __init__(self) -> None:
        self.calls: list[str] = []

    def create_generator(self, kind: int) -> int:
        self.calls.append("create_generator")
        return int(host_curand().create_generator_host(kind))

    create_generator_host = create_generator

    def get_version(self) -> int:
        return 0

    def set_stream(self, generator: int, stream: int) -> None:
        self.calls.append("set_stream")

    def __getattr__(self, name: str) -> Any:
        function = getattr(host_curand(), name)

        def call(*arguments: Any) -> Any:
            cuda.current_device().synchronize()
            self.calls.append(name)
            return function(*arguments)

        return call
