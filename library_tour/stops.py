"""The stops, in the order of the tour."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

from .stop import Stop

# The stops that also the ranks of an MPI program run, together.
SEVERAL_DEVICES = ("halo", "all_reduce", "distributed_gemm", "monte_carlo_ranks")

# Each is a module of library_tour/course; its device code, where it has any, is kernels/<name>.cu.
COURSE = (
    # Foundations
    "device_query",
    "vector_add",
    "daxpy",
    "map",
    "launch_shapes",
    "occupancy",
    "errors",
    "debug_print",
    "nan_check",
    # Memory
    "copies",
    "copies_2d",
    "memset",
    "stream_ordered",
    "variables",
    "pinned_and_mapped",
    "managed",
    "peer",
    "constant_memory",
    "texture",
    "local_memory",
    "l2_persistence",
    # Coalescing, shared memory, divergence
    "coalescing",
    "stride_and_offset",
    "aliasing",
    "transpose",
    "bank_conflicts",
    "divergence",
    "synchronization",
    # Reductions and histograms
    "reduction",
    "logical_and",
    "dot_product",
    "histogram",
    # Streams and time
    "events",
    "streams",
    "graphs",
    "heat",
    "cooling",
    # Numerics and applications
    "precision",
    "matmul",
    "monte_carlo",
    "nested_monte_carlo",
    "crank_nicolson",
    # Several devices
    *SEVERAL_DEVICES,
)

# Each is a module of library_tour/libraries.
LIBRARIES = ("gemm", "fft", "sparse", "solver", "rand")


class UnknownStopError(LookupError):
    """A name that no stop has; the message offers near ones."""


def names() -> tuple[str, ...]:
    """Return every stop's name, in the tour's order."""
    return COURSE + LIBRARIES


def module_name(name: str) -> str:
    """Return the full module name of a stop; raise UnknownStopError for a name that none has."""
    if name not in names():
        near = difflib.get_close_matches(name, names(), n=3, cutoff=0.6)
        near += [stop for stop in names() if name and name in stop and stop not in near]
        hint = f"did you mean {' or '.join(near)}?" if near else "`library-tour list` names them all"
        raise UnknownStopError(f"there is no stop {name!r}: {hint}")
    return f"library_tour.{'course' if name in COURSE else 'libraries'}.{name}"


def load(name: str) -> Stop:
    """Import a stop's module; raise UnknownStopError for a name that none has."""
    return cast(Stop, importlib.import_module(module_name(name)))
