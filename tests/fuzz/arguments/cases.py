"""The argument fuzzer: every public call with one or two bad arguments, and the outcomes that are allowed.

A call with a bad argument may succeed if the argument's annotation or `ACCEPTED` says so. Otherwise it raises a
TypeError or a ValueError, whose text begins with the call and names the argument, or an error that `MAY_RAISE` lists.
After a call that raises, arrays keep their contents. In any case nothing leaks, and the next kernel runs. Values that
could be addresses are never passed to parameters that are dereferenced (`ADDRESSES`).
"""

import contextlib
import gc
import random
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.benchmark import measure
from cudart_py.context.lifetimes import Handle
from cudart_py.libraries.device_code import kernel_of
from cudart_py.memory.array import DeviceArray

from .bad_values import BAD, NastyError
from .good_values import GOOD, OBJECTS, QUICK
from .rules import MISSING, accepts, judge
from .targets import Target, find_targets, keys_of
from .world import World

# Calls that raise even with good arguments: they need something that the fuzzer does not set up, or a second device.
PREMATURE = {
    "Device.enable_peer", "ExecutableGraph.is_enabled", "ExecutableGraph.set_enabled", "ExecutableGraph.set_node",
    "Graph.add_edge", "Graph.remove", "Graph.remove_edge", "Graph.set_node",
    "NodeAllocation.array", "NodeAllocation.free",
    "Stream.add_graph", "Stream.condition", "Stream.if_else", "Stream.if_then", "Stream.switch", "Stream.while_loop",
    "Timer.milliseconds", "graphs.empty",
}  # fmt: skip  # a list of words
# Calls that take either `size` or `out`, not both.
FILLING = ("uniform", "normal", "log_normal", "exponential", "poisson")
# Measuring the ceilings takes a GPU seconds and most of its memory. A reset closes the objects of all others.
NOT_CALLED = {"ceilings", "reset"}
# Parameters that the callee dereferences, and the values that could pass for an address.
ADDRESSES = {"Stream.borrow.stream", "MemoryPool.borrow.handle"}
LIKE_ADDRESSES = {"1", "2**40", "2**63", "int8", "0-d int array", "foreign stream (0, 'a')"}


@dataclass(frozen=True)
class Finding:
    """A call that misbehaved; `kind` is "inscrutable", "accepted", "changed", "leaked", "lost", "crash" or "hang"."""

    kind: str
    call: str
    text: str = ""


def good_arguments(target: Target, world: World) -> dict[str, Any]:
    """Make good arguments for a call, leaving out parameters that only have a default.

    Raises LookupError naming a parameter that has no good value.
    """
    made = {}
    for parameter in target.parameters:
        make = next((GOOD[key] for key in keys_of(target.name, parameter.name) if key in GOOD), None)
        if make is not None:
            made[parameter.name] = make(world)
        elif parameter.default is parameter.empty:
            raise LookupError(
                f"give the parameter {parameter.name!r} of {target.name} a good value in GOOD of good_values.py, or "
                "name a class that only calls return in RETURNED of targets.py"
            )
    return made


def good_object(target: Target, world: World) -> list[Any]:
    """Return a list with the object that a method is called on, or without any for a function.

    Raises KeyError for a class that has no good object.
    """
    return [OBJECTS[target.owner](world)] if target.owner else []


def invoke(target: Target, thing: Sequence[Any], arguments: Mapping[str, Any]) -> None:
    """Make a call; enter and leave its result if that is a context manager, and close it if it can be closed."""
    positional, keywords = [*thing], dict(arguments)
    for parameter in target.parameters:
        if parameter.name in arguments and parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            value = keywords.pop(parameter.name)
            several = parameter.kind is parameter.VAR_POSITIONAL and isinstance(value, tuple)
            positional += value if several else [value]
    result = target.call(*positional, **keywords)
    if hasattr(type(result), "__enter__") and not isinstance(result, DeviceArray | Handle | cuda.Device):
        with result:
            pass


def prepare(target: Target, world: World, random_: random.Random) -> tuple[list[Any], dict[str, Any]] | None:
    """Make the object and good arguments for a call, or return None if this driver lacks something for them.

    Every argument that has a default is left out with a probability of one half.
    """
    try:
        good = good_arguments(target, world)
        thing = good_object(target, world)
    except MISSING:
        world.written.clear()
        return None
    for parameter in target.parameters:
        is_needed = target.name in FILLING and parameter.name == "size"
        if parameter.default is not parameter.empty and not is_needed and random_.random() < 0.5:
            good.pop(parameter.name, None)
    return thing, good


def spelled(target: Target, chosen: Mapping[str, str]) -> str:
    return f"{target.name}({', '.join(f'{slot}={label}' for slot, label in chosen.items())})"


def attempt(
    target: Target, world: World, chosen: Mapping[str, str], thing: Sequence[Any], good: Mapping[str, Any]
) -> Generator[Finding, None, str]:
    """Make a call with bad values in place of good ones, yield the findings, and return the error that refused it.

    The error is "" if the call was not refused. `chosen` has the labels of the bad values, keyed by place.
    """
    arguments = dict(good)
    for slot, label in chosen.items():
        if slot == "self":
            world.closed(thing[0])
        else:
            arguments[slot] = BAD[label](world)
    try:
        # NumPy then raises errors in the program, and must not do so in the package's own computations.
        with np.errstate(all="raise"):
            invoke(target, thing, arguments)
    except (NastyError, *MISSING):
        return ""
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if kind := judge(target, chosen, error):
            yield Finding(kind, spelled(target, chosen), text)
        return text
    finally:
        cuda.MemoryPool.default(world.device).make_current()
    if not all(accepts(target, slot, label) for slot, label in chosen.items()):
        yield Finding("accepted", spelled(target, chosen))
    return ""


def call_once(target: Target, world: World, chosen: Mapping[str, str], random_: random.Random) -> Iterator[Finding]:
    """Make a call with the bad values in `chosen`, keyed by place, and yield the findings."""
    if prepared := prepare(target, world, random_):
        text = yield from attempt(target, world, chosen, *prepared)
        if text and not world.unchanged():
            yield Finding("changed", spelled(target, chosen), text)
        world.written.clear()


def call_with_each(
    target: Target, world: World, slot: str, labels: Collection[str], random_: random.Random
) -> Iterator[Finding]:
    """Make a call with each of several bad values in one place, and yield the findings.

    The calls that must be refused share their other arguments, whose contents are compared after the last of them.
    Making and comparing arguments for each call would take most of the time.
    """
    refused = [label for label in labels if not accepts(target, slot, label)]
    if prepared := prepare(target, world, random_):
        for label in refused:
            yield from attempt(target, world, {slot: label}, *prepared)
        if not world.unchanged():
            yield Finding("changed", spelled(target, {slot: " or ".join(refused)}))
    for label in labels:
        if label not in refused:
            yield from call_once(target, world, {slot: label}, random_)


def labels_for(target: Target, slot: str) -> list[str]:
    """List the bad values for a place in a call, without those that it would dereference or must not call."""
    if slot == "self":
        return ["closed"]
    without: set[str] = set()
    if f"{target.name}.{slot}" in ADDRESSES:
        without = LIKE_ADDRESSES
    elif slot in ("fn", "function"):
        # A host function must not make a CUDA call, and calling a class would make one.
        without = {label for label in BAD if label.startswith("class ")}
    elif f"{target.name}.{slot}" == "Kernel.suggested_block.shared_bytes":
        # These are callables that take no argument, and the call would raise their own error.
        without = {label for label in BAD if label.startswith(("lambda", "class"))}
    elif target.name == "ceilings":
        without = {"None", "device", "last device"}
    return [label for label in BAD if label not in without]


def places() -> list[tuple[Target, str]]:
    """List all places for bad values in the calls that this driver can make."""
    return [(target, slot) for target in targets_here() for slot in target.slots]


def targets_here() -> list[Target]:
    """List every public call that this driver can make."""
    missing = () if "interop" in cuda.capabilities() else ("from_dlpack",)
    return [target for name, target in find_targets().items() if name not in missing]


def every_call() -> list[tuple[Target, dict[str, str]]]:
    """List each bad value in each place of every call."""
    return [(target, {slot: label}) for target, slot in places() for label in labels_for(target, slot)]


def call_all() -> None:
    """Make every public call that this driver supports, with good values; let failures propagate."""
    world = World()
    for target in targets_here():
        if target.name not in NOT_CALLED | PREMATURE:
            with contextlib.suppress(*MISSING):  # a library, a device or a tool
                invoke(target, good_object(target, world), good_arguments(target, world))
            cuda.MemoryPool.default(world.device).make_current()


def fuzz(seed: int | None, begin: int, end: int, note: Callable[[str], object]) -> Iterator[Finding]:
    """Make the calls of a seed, or of `every_call` without one, from `begin` to `end`, and yield the findings."""
    world = World()
    turns, every = places(), every_call() if seed is None else []
    # Kernels that block a stream and compare streams are compiled once and kept, before memory is counted.
    measure(lambda: world.kernel[1, 1](1.0, None, None, 0), options=QUICK)
    measure(lambda stream: world.kernel[1, 1, 0, stream](1.0, None, None, 0), streams=2, options=QUICK)
    before = _alive(world)
    for number in range(begin, end):
        random_ = random.Random(f"{seed} {number}")
        if seed is None:
            target, chosen = every[number]
        else:
            target = random_.choice(turns)[0]  # weighted by its number of places
            slots = random_.sample(target.slots, min(len(target.slots), random_.choice((1, 1, 1, 2))))
            chosen = {slot: random_.choice(labels_for(target, slot)) for slot in slots}
        note(f"{number}: {target.name} {chosen}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns about values that it converts
            yield from call_once(target, world, chosen, random_)
        if (number % 100 == 99 or number == end - 1) and not world.works():
            yield Finding("lost", f"before call {number}", "the next kernel computed something else")
    after = _alive(world)
    if after != before:
        yield Finding("leaked", f"calls {begin} to {end}", f"handles, arrays and bytes were {before} and are {after}")


def _alive(world: World) -> tuple[int, int, int]:
    gc.collect()
    world.device.synchronize()
    # What the libraries keep for the next call is not a leak, and neither are their kernels.
    libraries.release()
    kernel_of.cache_clear()
    gc.collect()
    world.device.synchronize()
    things = gc.get_objects()
    return (
        sum(isinstance(thing, Handle) and thing._value is not None for thing in things),
        sum(isinstance(thing, DeviceArray) and not thing.closed for thing in things),
        cuda.MemoryPool.current(world.device).used,
    )
