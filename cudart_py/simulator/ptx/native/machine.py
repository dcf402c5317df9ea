"""Compile a kernel to machine code through LLVM, or load the machine code from the cache, and make it callable."""

from __future__ import annotations

import ctypes
import hashlib
import platform
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

from ..compiling.program import Program
from .defects import may_be_wrong, with_hidden_shifts
from .errors import UnsupportedInstruction
from .instances import Layout, lay_out
from .launching.buffers import BufferPool
from .launching.speculation import Recorded
from .library.functions import NAMES, build_function
from .sites import Sites
from .writing.driver import write_driver
from .writing.flow import Flow

# The sources that determine the machine code of a kernel and the format of its cache entry.
_SOURCES = ("native", "compiling", "instructions", "operations", "syntax", "windows.py")

# Only one thread at a time calls LLVM.
_lock = threading.RLock()


class CodeCache(Protocol):
    """A store that keeps machine code between processes.

    `load` returns the result of calling `restore` with an entry's description and images, or None if there is no entry.
    """

    def make_key(self, parts: Iterable[str | bytes]) -> str:
        """Return the key of the entry that is identified by `parts`."""

    def load(self, key: str, restore: Callable[[Any, list[bytes]], Any]) -> Any:
        """Return the restored entry of a key, or None."""

    def store(self, key: str, description: Any, images: Sequence[bytes]) -> None:
        """Store an entry."""


class Kernel:
    """A kernel in machine code: `run` takes the address of a launch's context and returns a `Status`.

    `watch` names the events that the code records for an observer.
    """

    def __init__(
        self,
        code: bytes,
        layout: Layout,
        sites: Sites,
        watch: frozenset[str],
        store: CodeCache | None,
    ) -> None:
        self.layout = layout
        self.sites = sites
        self.state_bytes = layout.bytes
        self.watch = watch
        self.recorded = Recorded(len(sites.sites))
        self.idle = BufferPool()
        self._store = store
        # The engine owns the code.
        self._engine = _linked(code)
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(self._engine.get_function_address("run"))

    def function(self, name: str) -> int:
        """Return the address of a function of the library that a launch turns out to need."""
        with _lock:
            _need([name], self._store)
            address: int = _library[processor(), name].get_function_address(name)
        return address


class Processor(NamedTuple):
    """The processor that machine code targets, in LLVM's names, and LLVM's optimisation level (0 to 3)."""

    name: str
    features: str
    optimisation: int = 2


@cache
def host() -> Processor:
    """Return this machine's processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        features += ",-prefer-256-bit"
    return Processor(llvm.get_host_cpu_name(), features)


# Another processor than this one, for which tests compile.
_chosen: Processor | None = None


def processor() -> Processor:
    """Return the processor that machine code targets."""
    return _chosen or host()


def _target(optimisation: int | None = None) -> Any:
    """Return a target machine with an optimisation level, by default `Processor.optimisation`."""
    chosen = processor()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=chosen.name,
        features=chosen.features,
        opt=chosen.optimisation if optimisation is None else optimisation,
        reloc="pic",
        codemodel="jitdefault",
        jit=True,
    )


def build(
    program: Program, layout: Layout, local_size: int, watch: frozenset[str] = frozenset()
) -> tuple[ir.Module, Sites]:
    """Return a kernel's LLVM module, not yet compiled, with its sites.

    Raise UnsupportedInstruction for a kernel that only the NumPy engine can run.
    """
    module = _new_module()
    sites = Sites()
    flow = Flow(module, program, layout, local_size, sites, watch)
    flow.write()
    write_driver(module, flow)
    return module, sites


def compile_kernel(
    program: Program,
    local_size: int,
    store: CodeCache | None,
    watch: frozenset[str] = frozenset(),
    *,
    only_cached: bool = False,
) -> Kernel | None:
    """Return a kernel in machine code; raise UnsupportedInstruction for one that only the NumPy engine can run.

    `watch` names the events that the code records for an observer, for instance the counters. It also contains
    "clusters" for code that runs the blocks of a cluster together, and "undefined" for checked code that follows
    undefined values from loads of unwritten memory. If `only_cached` is true, nothing is compiled, and the result is
    None for a kernel that isn't in the cache.
    """
    layout = lay_out(program, local_size, "undefined" in watch)
    entry = program.entry
    with _lock:

        def restore(description: Any, images: list[bytes]) -> Kernel:
            sites = Sites.restored(layout, description)
            _need(description["functions"], store)
            return Kernel(images[0], layout, sites, watch, store)

        key = _key(store, "kernel", entry.name, entry.module.text, str(local_size), *sorted(watch))
        found = store.load(key, restore) if store is not None else None
        if found is not None or only_cached:
            return cast("Kernel | None", found)
        module, sites = build(program, layout, local_size, watch)
        functions = _called(module)
        _need(functions, store)
        code = _compiled(module)
        if store is not None:
            store.store(key, {"functions": functions, **sites.description(layout)}, [code])
        return Kernel(code, layout, sites, watch, store)


# --- the library's functions, each compiled once and shared by all kernels

_library: dict[tuple[Processor, str], Any] = {}


def _need(names: Iterable[str], store: CodeCache | None) -> None:
    """Register functions of the library as symbols for the code that is linked from now on."""
    for name in names:
        engine = _library.get((processor(), name))
        if engine is None:
            key = _key(store, "function", name)
            found = store.load(key, lambda called, images: (called, images[0])) if store is not None else None
            if found is None:
                module = _new_module()
                build_function(module, name)
                found = _called(module), _compiled(module)
                if store is not None:
                    store.store(key, found[0], [found[1]])
            _need(found[0], store)
            _library[processor(), name] = engine = _linked(found[1])
        # Registered again for each kernel, because the symbol may by now refer to code for another processor.
        llvm.add_symbol(name, engine.get_function_address(name))


def _called(module: ir.Module) -> list[str]:
    """Return the names of the library's functions that a module calls but doesn't define."""
    return [f.name for f in module.functions if not f.blocks and f.name.partition(".")[0] in NAMES]


# --- LLVM


def _key(store: CodeCache | None, *parts: str) -> str:
    """Return the cache key of machine code for this processor, this LLVM and this version of the compiler."""
    if store is None:
        return ""
    version = f"{llvmlite.__version__} {llvm.llvm_version_info} {platform.machine()}"
    return store.make_key(["native", _compiler(), version, *map(str, processor()), *parts])


@cache
def _compiler() -> str:
    """Return a digest that identifies this version of the compiler from PTX to machine code."""
    return digest_of(Path(__file__).parents[1])


def digest_of(folder: Path) -> str:
    """Return a digest of the sources in `folder`, the `ptx` package, that determine the machine code.

    Any change to them invalidates the cache's entries, so there is no version number to remember to increase. The
    digest of 600 KB takes about 3 milliseconds.
    """
    digest = hashlib.blake2b(digest_size=16)
    for name in _SOURCES:
        place = folder / name
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _new_module() -> ir.Module:
    module = ir.Module("kernel", context=ir.Context())
    module.triple = llvm.get_process_triple()
    return module


def _compiled(module: ir.Module) -> bytes:
    """Return a module's machine code as an object file.

    Code that LLVM may have miscompiled is compiled again without optimisation, because LLVM then never folds a load
    into the instruction concerned. Raise UnsupportedInstruction if that does not help.
    """
    for optimisation in (processor().optimisation, 0):
        code = _object(module, optimisation)
        if platform.machine() != "x86_64" or not may_be_wrong(code):
            return code
    raise UnsupportedInstruction("an instruction that LLVM gets wrong")


def _object(module: ir.Module, optimisation: int) -> bytes:
    target = _target(optimisation)
    found = simplified(module, target)
    text = str(found)
    if (hidden := with_hidden_shifts(text)) != text:
        found = llvm.parse_assembly(hidden)
    code: bytes = target.emit_object(found)
    return code


def simplified(module: ir.Module, target: Any) -> Any:
    """Return a parsed LLVM module after the passes that are applied to all code."""
    parsed = llvm.parse_assembly(str(module))
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.run(parsed, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1)))
    return parsed


def _linked(code: bytes) -> Any:
    """Return an MCJIT engine that owns the executable code of an object file."""
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine
