"""The path through the course: its chapters with their stops, and the routes through it for different readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["introductory", "intermediate", "advanced"]


class UnknownRouteError(LookupError):
    """A name that no route has; the message lists the names."""


@dataclass(frozen=True)
class Place:
    """A stop on the path.

    `minutes` is the time to read the lesson, run the stop and solve its exercise. `after` lists the stops that a reader
    should know first.
    """

    name: str
    level: Level
    minutes: int
    after: Sequence[str] = ()


@dataclass(frozen=True)
class Chapter:
    """Stops on one subject; `able` completes the sentence "After this chapter you can"."""

    title: str
    able: str
    places: Sequence[Place]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the chapter's stops."""
        return tuple(place.name for place in self.places)


@dataclass(frozen=True)
class Route:
    """A shorter path for some readers: its stops are in the order of the whole path, each after its prerequisites."""

    title: str
    reader: str
    names: Sequence[str]

    @property
    def minutes(self) -> int:
        """The total minutes of its stops."""
        return sum(position(name).place.minutes for name in self.names)


@dataclass(frozen=True)
class Position:
    """A stop's position on the path: its chapter, numbered from 1, and its neighbours, "" for none."""

    place: Place
    chapter: Chapter
    number: int
    previous: str
    next: str


# The chapter whose stops the ranks of an MPI program can run together.
SEVERAL_DEVICES = Chapter(
    "Several devices",
    "divide work among devices, and overlap communication with computation.",
    [
        Place("halo", "advanced", 35, ["peer", "heat"]),
        Place("all_reduce", "advanced", 35, ["peer", "reduction"]),
        Place("distributed_gemm", "advanced", 40, ["peer", "matmul"]),
        Place("monte_carlo_ranks", "advanced", 30, ["monte_carlo"]),
    ],
)
# The stops of library_tour/libraries; all others are in library_tour/course.
LIBRARIES = Chapter(
    "Libraries",
    "call cuBLAS, cuFFT, cuSPARSE, cuSOLVER and cuRAND, and say when a library is the better choice.",
    [
        Place("gemm", "intermediate", 30, ["daxpy"]),
        Place("fft", "intermediate", 30, ["vector_add"]),
        Place("sparse", "intermediate", 30, ["daxpy"]),
        Place("solver", "intermediate", 30, ["daxpy"]),
        Place("rand", "intermediate", 25, ["vector_add"]),
    ],
)
CHAPTERS: Sequence[Chapter] = (
    Chapter(
        "First kernels",
        "write a kernel, launch it with a suitable grid, and find your own mistakes.",
        [
            Place("device_query", "introductory", 15),
            Place("vector_add", "introductory", 20),
            Place("daxpy", "introductory", 20, ["vector_add"]),
            Place("map", "introductory", 30, ["vector_add"]),
            Place("launch_shapes", "introductory", 25, ["vector_add"]),
            Place("errors", "introductory", 25, ["vector_add"]),
            Place("debug_print", "introductory", 20, ["vector_add"]),
            Place("nan_check", "intermediate", 20, ["daxpy"]),
        ],
    ),
    Chapter(
        "Moving data",
        "choose the right kind of host memory and of copy, and say how long a transfer should take.",
        [
            Place("copies", "introductory", 25, ["vector_add"]),
            Place("copies_2d", "intermediate", 20, ["copies"]),
            Place("memset", "introductory", 15, ["vector_add"]),
            Place("stream_ordered", "intermediate", 25, ["copies"]),
            Place("pinned_and_mapped", "intermediate", 25, ["copies"]),
            Place("managed", "intermediate", 25, ["copies"]),
            Place("peer", "intermediate", 25, ["copies"]),
        ],
    ),
    Chapter(
        "Kinds of memory",
        "put each variable in the memory that suits it: registers, shared, constant, local or texture memory.",
        [
            Place("variables", "introductory", 25, ["vector_add"]),
            Place("constant_memory", "intermediate", 20, ["variables"]),
            Place("texture", "intermediate", 20, ["variables"]),
            Place("local_memory", "intermediate", 25, ["variables"]),
            Place("l2_persistence", "advanced", 30, ["copies"]),
        ],
    ),
    Chapter(
        "Access patterns",
        "read an index expression and say how many sectors, bank conflicts and idle lanes it costs, and compute how "
        "many warps a multiprocessor can hold.",
        [
            Place("coalescing", "introductory", 30, ["launch_shapes"]),
            Place("stride_and_offset", "introductory", 20, ["coalescing"]),
            Place("aliasing", "intermediate", 20, ["daxpy"]),
            Place("transpose", "intermediate", 35, ["variables", "coalescing"]),
            Place("bank_conflicts", "intermediate", 25, ["variables", "coalescing"]),
            Place("divergence", "introductory", 25, ["launch_shapes"]),
            Place("synchronization", "intermediate", 30, ["variables"]),
            Place("occupancy", "intermediate", 40, ["launch_shapes", "synchronization"]),
        ],
    ),
    Chapter(
        "Reductions and histograms",
        "combine the results of many threads quickly and without a race.",
        [
            Place("reduction", "intermediate", 40, ["coalescing", "synchronization"]),
            Place("logical_and", "intermediate", 25, ["reduction"]),
            Place("dot_product", "intermediate", 30, ["reduction"]),
            Place("histogram", "intermediate", 35, ["synchronization"]),
        ],
    ),
    Chapter(
        "Streams and time",
        "measure work on the device, overlap copies with kernels, and launch many kernels with one call.",
        [
            Place("events", "introductory", 20, ["copies"]),
            Place("streams", "intermediate", 35, ["pinned_and_mapped", "events"]),
            Place("graphs", "intermediate", 30, ["streams"]),
            Place("heat", "intermediate", 40, ["coalescing", "streams"]),
            Place("cooling", "advanced", 30, ["reduction"]),
        ],
    ),
    Chapter(
        "Numerics and applications",
        "bring a real computation close to the limits of the hardware, and say how large its error is.",
        [
            Place("precision", "intermediate", 30, ["daxpy"]),
            Place("matmul", "advanced", 45, ["transpose", "bank_conflicts"]),
            Place("monte_carlo", "advanced", 40, ["reduction"]),
            Place("nested_monte_carlo", "advanced", 30, ["monte_carlo"]),
            Place("crank_nicolson", "advanced", 45, ["bank_conflicts", "precision"]),
        ],
    ),
    SEVERAL_DEVICES,
    LIBRARIES,
)
ROUTES = {
    "first-day": Route(
        "First day",
        "You have never written a kernel.",
        [
            "vector_add", "daxpy", "launch_shapes", "errors", "debug_print", "copies", "variables", "coalescing",
            "divergence", "events",
        ],
    ),
    "cpp": Route(
        "C++ programmer",
        "You write C++ for CPUs, and want to write kernels that use the hardware well.",
        [
            "vector_add", "daxpy", "launch_shapes", "errors", "copies", "pinned_and_mapped", "variables",
            "local_memory", "coalescing", "aliasing", "transpose", "bank_conflicts", "divergence", "synchronization",
            "occupancy", "reduction", "histogram", "events", "streams", "graphs", "cooling", "matmul",
        ],
    ),
    "numerics": Route(
        "Numerics",
        "You do linear algebra or simulations with NumPy, and want to run them on a GPU.",
        [
            "vector_add", "daxpy", "launch_shapes", "copies", "variables", "coalescing", "transpose", "bank_conflicts",
            "synchronization", "reduction", "dot_product", "precision", "matmul", "monte_carlo", "crank_nicolson",
            "gemm", "fft", "sparse", "solver", "rand",
        ],
    ),
}  # fmt: skip  # one stop per line would be too long to read

# Advice after the last stop of a route, as in docs/course/index.md.
AFTER_A_ROUTE = (
    "Next, count the same events for your own kernels with cuda.profile(): the guide's page on profiling without a GPU "
    "shows how."
)


def names() -> tuple[str, ...]:
    """Return the names of all stops, in the order of the path."""
    return tuple(name for chapter in CHAPTERS for name in chapter.names)


def position(name: str) -> Position:
    """Return where a stop is on the path; raise KeyError for a name that is not on it."""
    for number, chapter in enumerate(CHAPTERS, 1):
        for place in chapter.places:
            if place.name == name:
                return Position(place, chapter, number, *neighbours(name))
    raise KeyError(name)


def neighbours(name: str, route: str = "") -> tuple[str, str]:
    """Return the stops before and after a stop, "" for none: on the route, or on the whole path if there is no route.

    The neighbours of a stop that is not on the route are the route's last stop before it and first stop after it.
    """
    on_the_way = ROUTES[route].names if route else names()
    around = ["", *(other for other in names() if other == name or other in on_the_way), ""]
    at = around.index(name)
    return around[at - 1], around[at + 1]


def is_on(name: str, route: str) -> bool:
    """Check whether a stop is on a route, or on the whole path if there is no route."""
    return name in (ROUTES[route].names if route else names())


def route(name: str) -> Route:
    """Return a route by its name; raise UnknownRouteError for another name."""
    if name not in ROUTES:
        raise UnknownRouteError(f"there is no route {name!r}: the routes are {', '.join(ROUTES)}")
    return ROUTES[name]


def hours(minutes: int) -> str:
    """Return a duration as text: minutes, or hours to the nearest half."""
    if minutes < 60:
        return f"{minutes} minutes"
    halves = round(minutes / 30)
    return f"{halves / 2:g} hour{'s'[: halves != 2]}"
