"""The fuzz of arguments: every public call, with one or two bad arguments, and what may become of it.

A call with a bad argument may succeed where the argument's annotation or
`ACCEPTED` says so. Otherwise it raises a TypeError, a ValueError or what `MAY_RAISE` lists, whose text names the
argument. Whichever it does, arrays keep what they held, nothing is leaked, and the next kernel runs. No value that
could be an address reaches anything that follows it.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import operator
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import cudart_py as cuda
import cudart_py.benchmark
from cudart_py import libraries
from cudart_py.context.lifetimes import Handle
from cudart_py.context.limits import Limits
from cudart_py.memory.array import DeviceArray

from .bad_values import BAD, NastyError
from .good_values import GOOD, OBJECTS, QUICK
from .rules import ACCEPTED, ADDRESSES, INTEGERS, LIKE_ADDRESSES, MAY_RAISE, MISSING, NUMBERS, WORDS
from .world import World

__all__ = [
    "Finding",
    "Target",
    "call_once",
    "every_call",
    "find_targets",
    "fuzz",
    "good_arguments",
    "good_object",
    "invoke",
]

MODULES: tuple[ModuleType, ...] = (cuda, cudart_py.benchmark, libraries)
# Records that calls return, and objects that other objects make: nobody calls these classes.
RETURNED = {
    "ArrayPreview",
    "CacheInfo",
    "Ceilings",
    "CompiledImage",
    "Condition",
    "DeviceArray",
    "DeviceProperties",
    "GraphNode",
    "IpcArrayHandle",
    "IpcEventHandle",
    "Kernel",
    "KernelAttributes",
    "Launch",
    "LaunchProfile",
    "LineProfile",
    "ManagedAttributes",
    "Measurement",
    "MemoryInfo",
    "Occupancy",
    "Parameter",
    "Plan",
    "PointerAttributes",
    "Resources",
    "Signature",
    "TextureOptions",
    "Variable",
}
# Their methods need the library itself, which is not everywhere.
WITHOUT_OBJECTS = RETURNED - set(OBJECTS) | {"Generator"}
DUNDERS = ("__getitem__", "__contains__", "__sub__", "__call__")
# By these a sparse matrix describes itself to a library's call, and host memory to a launch.
INTERNAL = {
    "DeviceArray.__contains__",  # it refuses every argument
    "Kernel.__call__",  # so does this
    "RegisteredMemory.device_address",
    "SparseMatrix.check_open",
    "SparseMatrix.describe",
    "SparseMatrix.describe_once",
}
# What raises with good arguments: it asks for what is not there yet, or not on a machine with one device.
PREMATURE = {
    "Device.enable_peer",
    "ExecutableGraph.is_enabled",
    "ExecutableGraph.set_enabled",
    "ExecutableGraph.set_node",
    "Program.cubin",
    "Program.lowered_names",
    "Program.ltoir",
    "Program.ptx",
    "Stream.add_graph",
    "Stream.condition",
    "Stream.if_else",
    "Stream.if_then",
    "Stream.switch",
    "Stream.while_loop",
    "Timer.milliseconds",
    "graph_empty",
}
# Of two arguments only one is given.
INSTEAD = {f"{name}.out" for name in ("uniform", "normal", "log_normal", "poisson")}
# What closes the objects of everybody else in the process.
ENDING = {"reset"}
NEEDS = {"from_dlpack": "interop"}

# A GPU takes seconds and most of its memory for these.
SLOW = {"ceilings"}


@dataclass(frozen=True)
class Target:
    """A public call: what it is called on, and its parameters as `inspect` knows them."""

    name: str
    call: Callable[..., Any]
    owner: str = ""
    parameters: tuple[inspect.Parameter, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """What a bad value may stand for: a parameter, or the object in its closed state."""
        own = ("self",) if self.owner and callable(getattr(_class(self.owner), "close", None)) else ()
        return (*own, *(parameter.name for parameter in self.parameters))


@dataclass(frozen=True)
class Finding:
    """A call that did what it must not: `kind` is "inscrutable", "accepted", "changed", "leaked" or "lost"."""

    kind: str
    call: str
    text: str


def _class(name: str) -> type:
    return next(getattr(module, name) for module in MODULES if name in module.__all__)


def find_targets() -> dict[str, Target]:
    """Return every public call by its name: functions, classes, their methods, properties and setters."""
    found: dict[str, Target] = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                if not issubclass(thing, BaseException | Warning):
                    found |= {target.name: target for target in _of_class(name, thing)}
            elif callable(thing):
                found[name] = Target(name, thing, parameters=_parameters(thing))
    for name in vars(Limits):
        if not name.startswith("_"):
            found[f"Limits.{name} ="] = _setter("Device", f"Limits.{name} =", _limit_setter(name))
    return found


def _of_class(name: str, kind: type) -> Iterator[Target]:
    if name not in RETURNED:
        yield Target(name, kind, parameters=_parameters(kind))
    if name in WITHOUT_OBJECTS and name != "DeviceArray":
        return
    for attribute in dir(kind):
        full = f"{name}.{attribute}"
        member = inspect.getattr_static(kind, attribute)
        if (attribute.startswith("_") and attribute not in DUNDERS) or full in INTERNAL:
            continue
        if isinstance(member, staticmethod | classmethod):
            function = getattr(kind, attribute)
            yield Target(full, function, parameters=_parameters(function))
        elif isinstance(member, property):
            yield Target(full, operator.attrgetter(attribute), owner=name)
            if member.fset is not None:
                yield _setter(name, f"{full} =", member.fset)
        elif full in _LAUNCHES:
            yield Target(full, _LAUNCHES[full], owner=name, parameters=_parameters(_LAUNCHES[full])[1:])
        elif inspect.isfunction(member) and member.__module__ != "contextlib":
            function = _subtract if attribute == "__sub__" else _method(attribute)
            yield Target(full, function, owner=name, parameters=_parameters(member)[1:])


def _parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def _subtract(end: cuda.Event, start: cuda.Event) -> float:
    return end - start


def _setter(owner: str, name: str, function: Callable[[Any, Any], None]) -> Target:
    return Target(name, function, owner=owner, parameters=_parameters(function)[1:])


def _limit_setter(name: str) -> Callable[[Any, Any], None]:
    def set_limit(device: cuda.Device, value: int) -> None:
        before = getattr(device.limits, name)
        try:
            setattr(device.limits, name, value)
        finally:
            setattr(device.limits, name, before)

    return set_limit


def _method(attribute: str) -> Callable[..., Any]:
    """Return a function that calls the method of an object's own class, which may be another than the public one."""
    return lambda thing, *arguments, **keywords: getattr(thing, attribute)(*arguments, **keywords)


def _launch_in_shape(kernel: cuda.Kernel, grid: Any, block: Any, shared_bytes: Any, stream: Any) -> Any:
    return kernel[grid, block, shared_bytes, stream]


def _launch(launch: cuda.Launch, a: float, x: Any, y: Any, n: int) -> None:
    launch(a, x, y, n)


def _bind(launch: cuda.Launch, a: float, x: Any, y: Any, n: int) -> Any:
    return launch.bind(a, x, y, n)


# Calls whose signature is a kernel's, or which take their arguments as an index.
_LAUNCHES: Mapping[str, Callable[..., Any]] = {
    "Kernel.__getitem__": _launch_in_shape,
    "Launch.__call__": _launch,
    "Launch.bind": _bind,
}


def _looked_up(table: Mapping[str, Any], target: str, parameter: str) -> Any:
    """Look up what a table has for a parameter of a call, of a method of that name, or of any call."""
    short = target.removesuffix(" =").rpartition(".")[2]
    for key in (f"{target}.{parameter}", f"{short}.{parameter}", short if short in DUNDERS else "", parameter):
        if key in table:
            return table[key]
    return None


def good_arguments(target: Target, world: World) -> dict[str, Any]:
    """Make good arguments for a call. Raises LookupError naming a parameter that has no good value."""
    made = {}
    for parameter in target.parameters:
        if f"{target.name}.{parameter.name}" in INSTEAD:
            continue
        make = _looked_up(GOOD, target.name, parameter.name)
        if make is None:
            raise LookupError(
                f"the fuzz has no good value for the parameter {parameter.name!r} of {target.name}: give it one in "
                "GOOD of tests/fuzz/arguments/good_values.py, or name a class that only calls return in RETURNED of "
                "tests/fuzz/arguments/cases.py"
            )
        made[parameter.name] = make(world)
    return made


def good_object(target: Target, world: World) -> Any:
    """Make the object that a method is called on, None for a function. Raises LookupError for a class that has none."""
    if not target.owner:
        return None
    if target.owner not in OBJECTS:
        raise LookupError(
            f"the fuzz has no object to call {target.name} on: give it one in OBJECTS of "
            f"tests/fuzz/arguments/good_values.py, or name {target.owner} in RETURNED of tests/fuzz/arguments/cases.py "
            "if only calls return it"
        )
    return OBJECTS[target.owner](world)


def invoke(target: Target, thing: Any, arguments: Mapping[str, Any]) -> None:
    """Call, enter and leave what is a context manager, and close what was made."""
    positional = [] if not target.owner else [thing]
    keywords = {}
    for parameter in target.parameters:
        if parameter.name not in arguments:
            continue
        value = arguments[parameter.name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value if isinstance(value, tuple) else [value]
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            keywords[parameter.name] = value
    result = target.call(*positional, **keywords)
    if hasattr(type(result), "__enter__") and not isinstance(result, DeviceArray | Handle | cuda.Device):
        with result:
            pass


def accepts(target: Target, slot: str, label: str) -> bool:
    """Tell whether a call may succeed with this value in this place."""
    if slot == "self" or target.name == "DeviceArray.close":  # a second close does nothing
        return True
    listed = _looked_up(ACCEPTED, target.name, slot)
    if listed is not None and label in listed:
        return True
    annotation = next(str(p.annotation) for p in target.parameters if p.name == slot)
    if label == "None":
        return "None" in annotation or "Any" in annotation.split("[")[0] or "object" in annotation
    if label in ("True", "np.True_"):
        return "bool" in annotation
    if label in NUMBERS and "float" in annotation:
        return True
    if label in INTEGERS and re.search(r"\bint\b", annotation):
        return True
    return label in (*NUMBERS, "1+2j") and "Scalar" in annotation


def names(target: Target, slot: str, text: str) -> bool:
    """Tell whether an error's text names an argument."""
    # A single letter is also a word.
    pattern = (
        rf"(?<!\w){slot}(?!\w)"
        if len(slot) > 1
        else rf"'{slot}'|(?<!\w){slot}(?:\.| (?:is|has|must|and|of|overlaps|makes|\d+) )"
    )
    if re.search(pattern, text, re.IGNORECASE if len(slot) > 1 else 0):
        return True
    if target.name in ("Launch.__call__", "Launch.bind"):
        return bool(re.search(WORDS["argument"], text))
    words = WORDS.get(slot)
    name = target.name.removesuffix(" =").rpartition(".")[2]
    return bool(words and re.search(words, text)) or (target.name.endswith("=") and name in text)


def call_once(target: Target, world: World, chosen: Mapping[str, str], random_: random.Random) -> list[Finding]:
    """Call with the bad values that are chosen for some of the places, and return what is wrong then.

    Of the other arguments about half of those that have defaults are left out.
    """
    said = f"{target.name}({', '.join(f'{slot}={label}' for slot, label in chosen.items())})"
    try:
        arguments = good_arguments(target, world)
        thing = good_object(target, world)
    except MISSING:
        world.written.clear()
        return []
    for parameter in target.parameters:
        is_needed = f"{target.name}.out" in INSTEAD and parameter.name == "shape"
        if parameter.default is not parameter.empty and not is_needed and random_.random() < 0.5:
            arguments.pop(parameter.name, None)
    for slot, label in chosen.items():
        if slot == "self":
            thing = world.closed(thing)
        else:
            arguments[slot] = BAD[label](world)
    try:
        invoke(target, thing, arguments)
    except (NastyError, *MISSING):
        return []
    except Exception as error:
        found = list(_judged(target, chosen, said, error))
        return found if world.unchanged() else [*found, Finding("changed", said, str(error))]
    finally:
        world.written.clear()
        if target.name == "Device.memory_pool =":
            world.device.memory_pool = None
    wanted = all(accepts(target, slot, label) for slot, label in chosen.items())
    return [] if wanted else [Finding("accepted", said, "")]


def _judged(target: Target, chosen: Mapping[str, str], said: str, error: Exception) -> Iterator[Finding]:
    """Yield what is wrong with an error."""
    text = f"{type(error).__name__}: {error}"
    allowed = [kind for slot in chosen for kind in _looked_up(MAY_RAISE, target.name, slot) or ()]
    plain = isinstance(error, TypeError | ValueError | cuda.CudaError) and type(error) is not cuda.CudaError
    if isinstance(error, cuda.KernelFaultError):
        yield Finding("lost", said, text)
    elif not isinstance(error, tuple(allowed)) and not (plain and any(names(target, slot, text) for slot in chosen)):
        yield Finding("inscrutable", said, text)


def labels_for(target: Target, slot: str) -> list[str]:
    """List the bad values for a place in a call, without what it would follow or call where it must not."""
    if slot == "self":
        return ["closed"]
    labels = list(BAD)
    if f"{target.name}.{slot}" in ADDRESSES:
        labels = [label for label in labels if label not in LIKE_ADDRESSES]
    if slot in ("fn", "function"):
        # A host function makes no CUDA call.
        labels = [label for label in labels if not label.startswith("class ")]
    if target.name == "Kernel.suggested_block" and slot == "shared_bytes":
        # What a function raises that takes no argument is its own.
        labels = [label for label in labels if label != "lambda" and not label.startswith("class")]
    if target.name in SLOW:
        labels = [label for label in labels if label not in ("None", "device", "last device")]
    return labels


def choose(target: Target, random_: random.Random) -> dict[str, str]:
    """Choose one bad argument, or sometimes two."""
    slots = random_.sample(target.slots, min(len(target.slots), random_.choice((1, 1, 1, 2))))
    return {slot: random_.choice(labels_for(target, slot)) for slot in slots}


def every_call() -> list[tuple[Target, dict[str, str]]]:
    """List each bad value in each place of every call."""
    return [
        (target, {slot: label})
        for target in _targets_here()
        for slot in target.slots
        for label in labels_for(target, slot)
    ]


def _targets_here() -> list[Target]:
    missing = {name for name, capability in NEEDS.items() if capability not in cuda.capabilities()}
    return [target for target in find_targets().values() if target.slots and target.name not in missing]


def call_all() -> None:
    """Call everything public that this driver can do with good values; what fails raises."""
    world = World()
    lacking = {name for name, capability in NEEDS.items() if capability not in cuda.capabilities()}
    for name, target in find_targets().items():
        if name in ENDING | PREMATURE | SLOW | lacking:
            continue
        try:
            arguments = good_arguments(target, world)
            invoke(target, good_object(target, world), arguments)
        except MISSING:
            continue
        finally:
            world.device.memory_pool = None


def fuzz(seed: int | None, begin: int, end: int, note: Callable[[str], object] = lambda _: None) -> Iterator[Finding]:
    """Make the calls of a seed, or of `every_call`, from one number to another, and yield what is wrong with them."""
    world = World()
    # A call has as many turns as places for bad values.
    turns = [target for target in _targets_here() for _ in target.slots]
    every = every_call() if seed is None else []
    # The kernels that hold a stream, that judge streams and that cut triangles are compiled once and kept.
    cudart_py.benchmark.measure(lambda: world.kernel[1, 1](1.0, None, None, 0), options=QUICK)
    cudart_py.benchmark.measure(
        lambda stream: world.kernel[1, 1, 0, stream](1.0, None, None, 0), streams=2, options=QUICK
    )
    with contextlib.suppress(*MISSING):  # a machine may lack the libraries, and then keeps no kernel of theirs
        libraries.qr(cuda.zeros((3, 2), "float32"))
    before = _alive(world)
    for number in range(begin, end):
        random_ = random.Random(f"{seed} {number}")
        if seed is None:
            target, chosen = every[number]
        else:
            target = random_.choice(turns)
            chosen = choose(target, random_)
        note(f"{number}: {target.name} {chosen}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy's about values that it converts
            found = call_once(target, world, chosen, random_)
        yield from found
        if number % 100 == 99 and not world.works():
            yield Finding("lost", f"before call {number}", "the next kernel computed something else")
    if not world.works():
        yield Finding("lost", f"calls {begin} to {end}", "the next kernel computed something else")
    after = _alive(world)
    if after != before:
        yield Finding("leaked", f"calls {begin} to {end}", f"handles, arrays and bytes were {before} and are {after}")


def _alive(world: World) -> tuple[int, int, int]:
    gc.collect()
    world.device.synchronize()
    libraries.release()  # what they keep for the next call is not lost
    world.device.synchronize()
    things = gc.get_objects()
    return (
        sum(isinstance(thing, Handle) and thing._value is not None for thing in things),
        sum(isinstance(thing, DeviceArray) and not thing.closed for thing in things),
        world.device.memory_pool.used,
    )
