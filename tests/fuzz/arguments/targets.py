"""Everything public that can be called: functions, classes, their methods, properties and setters."""

import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import cudart_py as cuda
import cudart_py.benchmark
from cudart_py import green_contexts, libraries
from cudart_py.context.limits import Limits
from cudart_py.hints.tables import ASSIGNMENTS

from .good_values import OBJECTS

# Functions of submodules whose names say too little without the module.
_WITH_MODULE = ("discard", "empty", "handle", "memcpy", "memory_operations", "prefetch")
_SUBMODULES = (
    cuda.batches,
    cuda.errors,
    cuda.graphs,
    green_contexts,
    cuda.images,
    cuda.ipc,
    cuda.profiling,
    cuda.tensor_maps,
    cuda.textures,
    cuda.virtual,
)
MODULES: tuple[ModuleType, ...] = (cuda, *_SUBMODULES, cudart_py.benchmark, libraries)
# Records that calls return, and objects that other objects create. Users never call these classes.
RETURNED = {
    "ArrayHandle", "CacheInfo", "Ceilings", "CompiledImage", "Condition", "DeviceArray", "DeviceProperties",
    "Diagram", "EventHandle", "GraphNode", "Kernel", "KernelAttributes", "Launch", "LaunchProfile", "LineProfile",
    "LuFactors", "ManagedAttributes", "Measurement", "MemoryInfo", "Multiprocessors", "Occupancy", "OpenedPool",
    "Parameter", "Plan", "PointerAttributes", "PoolHandle", "Signature", "TextureOptions", "TransformPlan",
    "Variable", "WarpAccess", "WarpRecord", "WarpShuffle", "WarpStep",
}  # fmt: skip  # a list of words
WITHOUT_OBJECTS = RETURNED - {"DeviceArray", *OBJECTS}
DUNDERS = ("__getitem__", "__setitem__", "__contains__", "__sub__", "__call__")
# The first two refuse every argument. The library wrappers call the others to get a sparse matrix's descriptor.
INTERNAL = {
    "DeviceArray.__contains__", "Kernel.__call__", "SparseMatrix.describe", "SparseMatrix.describe_once",
}  # fmt: skip  # a list of words


@dataclass(frozen=True)
class Target:
    """A public call: its name, the class that it belongs to, if any, and its parameters."""

    name: str
    call: Callable[..., Any]
    owner: str = ""
    parameters: tuple[inspect.Parameter, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """The places for a bad value: the parameters, and "self" if the object can be closed."""
        kinds = (getattr(module, self.owner, None) for module in MODULES)
        closes = any(callable(getattr(kind, "close", None)) for kind in kinds)
        return (*["self"] * closes, *(parameter.name for parameter in self.parameters))


def keys_of(target: str, parameter: str) -> tuple[str, ...]:
    """Return the keys of a parameter in the tables: for this call, for any method of its name, and for any call.

    A function's `plan` takes the same parameters as the function.
    """
    target = target.removesuffix(".plan")
    short = target.removesuffix(" =").rpartition(".")[2]
    return f"{target}.{parameter}", f"{short}.{parameter}", short if short in DUNDERS else "", parameter


def find_targets() -> dict[str, Target]:
    """Return every public call by its name."""
    found = []
    for module, name in ((each, name) for each in MODULES for name in each.__all__):
        thing = getattr(module, name)
        if not inspect.isclass(thing):
            # The full name is the one that error messages use.
            qualified = name in _WITH_MODULE and module is not cuda
            full = f"{module.__name__.rpartition('.')[2]}.{name}" if qualified else name
            found += [_target(full, thing)] if callable(thing) else []
            found += [_target(f"{name}.plan", thing.plan)] if hasattr(thing, "plan") else []
        elif not issubclass(thing, BaseException):
            found += _of_class(name, thing)
    limits = (name for name in vars(Limits) if not name.startswith("_"))
    found += (_target(f"Limits.{name} =", _limit_setter(name), "Device") for name in limits)
    return {target.name: target for target in found}


def _target(name: str, call: Callable[..., Any], owner: str = "", member: Callable[..., Any] | None = None) -> Target:
    """Return a call with the parameters of `member`, a function of the class, or of `call` without one."""
    parameters = inspect.signature(member or call).parameters.values()
    # Parameters of type Never only catch arguments of other packages.
    taken = tuple(parameter for parameter in parameters if parameter.annotation != "Never")
    return Target(name, call, owner, taken[bool(owner) :])


def _of_class(name: str, kind: type) -> Iterator[Target]:
    if name not in RETURNED:
        yield _target(name, kind)
    for attribute in dir(kind) if name not in WITHOUT_OBJECTS else ():
        full = f"{name}.{attribute}"
        member = inspect.getattr_static(kind, attribute)
        if (attribute.startswith("_") and attribute not in DUNDERS) or full in INTERNAL:
            continue
        if isinstance(member, staticmethod | classmethod):
            yield _target(full, getattr(kind, attribute))
        elif isinstance(member, property):
            yield Target(full, operator.attrgetter(attribute), name)
            if member.fset is not None and attribute not in ASSIGNMENTS.get(name, ()):  # those are always refused
                yield _target(f"{full} =", member.fset, name)
        elif full in _WRITTEN:
            yield _target(full, _WRITTEN[full], name)
        elif inspect.isfunction(member) and member.__module__ != "contextlib":
            yield _target(full, _method(attribute), name, member)


def _limit_setter(name: str) -> Callable[[Any, Any], None]:
    def set_limit(device: cuda.Device, value: int) -> None:
        before = getattr(device.limits, name)
        try:
            setattr(device.limits, name, value)
        finally:
            setattr(device.limits, name, before)

    return set_limit


def _method(attribute: str) -> Callable[..., Any]:
    """Return a function that calls a method on an object, whose class may override the public class's method."""
    return lambda thing, *arguments, **keywords: getattr(thing, attribute)(*arguments, **keywords)


# Calls whose signature is a kernel's, or which are written as operators.
_WRITTEN: Mapping[str, Callable[..., Any]] = {
    "DeviceArray.item": lambda array: array[0, 0].item(),
    "Event.__sub__": lambda end, start: end - start,
    "Kernel.__getitem__": lambda kernel, grid, block, shared_bytes, stream: kernel[grid, block, shared_bytes, stream],
    "Kernel.launch": lambda kernel, grid, block, a, x, y, n, shared_bytes, stream: kernel.launch(
        grid, block, a, x, y, n, shared_bytes=shared_bytes, stream=stream
    ),
    "Launch.__call__": lambda launch, a, x, y, n: launch(a, x, y, n),
    "Launch.bind": lambda launch, a, x, y, n: launch.bind(a, x, y, n),
}
