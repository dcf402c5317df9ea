"""NVRTC for those who want its options, its log and its images themselves."""

from __future__ import annotations

from ..compilation.programs import NvrtcProgram
from ..compilation.requests import architecture_option, spell_architecture
from ..context.device import current_device


class Program(NvrtcProgram):
    """One CUDA C++ source given to NVRTC: nvrtcCreateProgram.

    `names` are name expressions (`reduce<float, 256>`, `&z::table`) of templates to instantiate and of
    symbols whose lowered names are wanted. `arch` is a real architecture ("sm_90", 90 or (9, 0)), by default the
    current device's at `compile()`; a virtual one is an option, `--gpu-architecture=compute_90`, beside which `arch`
    is left out. `options` go to the compiler as they are, at `compile()`. `name` is what messages and line information
    call the source; quotes in `#include "x.h"` are looked up in its folder.

        with cuda.images.Program(source, names=["reduce<float, 256>"], arch="sm_90") as program:
            program.compile()
            program.cubin, program.lowered_names["reduce<float, 256>"]

    `close()` or the end of the `with` block frees it: nvrtcDestroyProgram.
    """

    def _architecture_options(self) -> tuple[str, ...]:
        named = super()._architecture_options()
        if named or architecture_option(self.options) is not None:
            return named
        return (f"--gpu-architecture={spell_architecture('Program', current_device().compute_capability)}",)
