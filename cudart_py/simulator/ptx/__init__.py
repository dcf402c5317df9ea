"""Parse PTX and execute it with NumPy, or in machine code."""

from __future__ import annotations

from .compiling.checking import load_module, undefined_names
from .compiling.unsupported import refuse_unsupported
from .engines import MachineCode, has_llvmlite, native_engine
from .faults import Fault, PtxError, PtxVersionError, UnsupportedError
from .operations.textures import Texture
from .running.clock import Clock
from .running.device_runtime.runtime import DeviceRuntime
from .running.launch import Launch
from .running.observer import Observer
from .running.runs import run
from .syntax.parser import Entry, Module
from .syntax.places import SourceText

__all__ = [
    "Clock",
    "DeviceRuntime",
    "Entry",
    "Fault",
    "Launch",
    "MachineCode",
    "Module",
    "Observer",
    "PtxError",
    "PtxVersionError",
    "SourceText",
    "Texture",
    "UnsupportedError",
    "has_llvmlite",
    "load_module",
    "native_engine",
    "refuse_unsupported",
    "run",
    "undefined_names",
]
