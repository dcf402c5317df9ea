"""Compile a kernel to machine code through LLVM, and call it."""

from __future__ import annotations

import ctypes
import threading
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from ..compiling.program import Program
from .driver import write_driver
from .flow import Flow
from .instances import Layout, lay_out
from .library.functions import add_library
from .sites import Sites

__all__ = ["Kernel", "compile_kernel"]

_lock = threading.Lock()


class Kernel:
    """A kernel in machine code: `run` takes the address of a launch's context and returns a `Status`.

    `alone` says that each warp runs to its end by itself, so that all use the state of one; `state_bytes` is its size.
    """

    def __init__(self, engine: Any, sites: Sites, layout: Layout, flow: Flow) -> None:
        # The engine owns the code.
        self._engine = engine
        self.sites = sites
        self.layout = layout
        self.state_bytes = layout.bytes
        self.alone = flow.alone
        self.spins = flow.spins
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(engine.get_function_address("run"))


@cache
def _processor() -> tuple[str, str]:
    """Return the name and the features of the processor that code is made for: this one."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        features += ",-prefer-256-bit"
    return llvm.get_host_cpu_name(), features


def _target() -> llvm.TargetMachine:
    """Return a target machine; an engine owns the one that it is made with."""
    cpu, features = _processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=2, codemodel="jitdefault", jit=True)


def build(program: Program, local_size: int) -> tuple[ir.Module, Sites, Layout, Flow]:
    """Return a kernel's module, before it is compiled."""
    layout = lay_out(program, local_size)
    module = ir.Module("kernel", context=ir.Context())
    module.triple = llvm.get_process_triple()
    sites = Sites()
    flow = Flow(module, program, layout, sites)
    flow.write()
    write_driver(module, layout, flow.alone)
    add_library(module)
    return module, sites, layout, flow


def compile_kernel(program: Program, local_size: int) -> Kernel:
    """Compile a kernel; raise NotNative for one that only the NumPy engine runs."""
    module, sites, layout, flow = build(program, local_size)
    with _lock:
        target = _target()
        parsed = llvm.parse_assembly(str(module))
        _optimise(parsed, target)
        engine = llvm.create_mcjit_compiler(parsed, target)
        engine.finalize_object()
    return Kernel(engine, sites, layout, flow)


def _optimise(module: llvm.ModuleRef, target: llvm.TargetMachine) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(target, options)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(module, builder)
