"""Price put options with finite differences: one tridiagonal system per time step, solved in six ways and by cuSPARSE.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run crank_nicolson
    crank_nicolson: Tridiagonal systems: put options by Crank-Nicolson
    size 3: time steps
    counters: measured over 5 systems of 216 cells and 3 steps
                           instructions  wavefronts  conflicts  check
    ─────────────────────────────────────────────────────────────────
    one thread per system        21,388       7,716          0  right
    cyclic reduction             37,085      13,530      9,165  right
    parallel reduction           54,820      14,175          0  right
    parallel, permuted           44,600      19,650      3,690  right
    cuSPARSE, batched                                           right
    one warp, eliminating         6,675         900        405  right
    one warp, factored            5,015         620        375  right
    A step is a chain of dependent operations, so latency is the limit. A single
    thread has the longest chain. A block reduces its system level by level. A level
    is short, but it ends with barriers. A warp needs no barriers: each lane
    eliminates seven of its eight unknowns in registers, and five levels of shuffles
    solve for the remaining ones. If the matrix stays the same, the multiples of the
    rows can be kept, and a step only applies them to the right-hand side.
    Cyclic reduction leaves rows at strides of 2, 4, 8 and so on. These strides
    cause bank conflicts in shared memory. The permuted form moves the even and the
    odd rows to separate halves, and those moves cause conflicts too. The lectures
    give no times.
    With exact boundary values, volatility 0.5 and 256 cells, the largest error in a
    price is 1.3e-04 in fp64 and 3.7e-03 in fp32, where rounding errors accumulate
    from step to step. The lectures' boundary values leave an error of 1.43 to 2.38
    on any grid (the strike K is 50). At S = K / 2, u is about K - S e^(r (T - t)),
    not the payoff K - S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

import cudart_py as cuda
from cudart_py import libraries

from .. import timing
from ..black_scholes import put_price
from ..device_code import blocks_for, load
from ..limits import latency_limit
from ..stop import Check, Curve, Result, Size
from ..variants import Variant, measure

TITLE = "Tridiagonal systems: put options by Crank-Nicolson"
SIZE = Size("time steps", full=10_000, small=3)
STRIKE, RATE, YEARS = 50.0, 0.1, 1.0
# Timed: one system per volatility.
VOLATILITIES, CELLS = np.linspace(0.1, 0.5, 64), 256
# Checked: sizes that fill neither a warp nor a block.
CHECKED_SYSTEMS, CHECKED_CELLS, CHECKED_STEPS = 5, 216, 3
# Volatilities whose errors are plotted, and the numbers of cells if steps are timed and if not.
SHOWN, SHOWN_CELLS, FEWER_CELLS = np.array([0.1, 0.3, 0.5]), (16, 32, 64, 128, 256), (16, 64, 256)
EDGE_CELLS = 64
GRAPH_STEPS = 100  # steps of cuSPARSE in one graph
BLOCK = 128  # for the kernel between the calls of cuSPARSE
# The longest chain of dependent instructions in a step of warp_factored.
OPERATIONS, SHUFFLES = 24, 7
EXPLAINED_BY = ("instructions", "wavefronts", "conflicts")

Array = NDArray[Any]


class Way(NamedTuple):
    """A kernel, the threads that share a system, and the number of arrays of rows in shared memory."""

    kernel: str
    threads: Literal["one", "warp", "block"]
    arrays: int = 0

    def shape(self, systems: int, cells: int) -> tuple[int, int, int]:
        """Return the blocks, the threads per block, and the elements in shared memory."""
        match self.threads:
            case "one":
                return blocks_for(systems, 32), 32, 32 * self.arrays * (cells + 1)
            case "warp":
                return systems, 32, 0
            case "block":
                return systems, 32 * blocks_for(cells - 1, 32), self.arrays * (cells - 1)


FACTORED = Way("warp_factored", "warp")
WAYS = {
    "one thread per system": Way("thomas", "one", 3),
    "cyclic reduction": Way("cyclic_reduction", "block", 4),
    "parallel reduction": Way("parallel_reduction", "block", 4),
    "parallel, permuted": Way("permuted_reduction", "block", 5),
    "one warp, eliminating": Way("warp_eliminating", "warp"),
    "one warp, factored": FACTORED,
}
LIBRARY, LIBRARY_ROW = "cuSPARSE, batched", 4
WHY = [
    "A step is a chain of dependent operations, so latency is the limit. A single thread has the longest chain. A "
    "block reduces its system level by level. A level is short, but it ends with barriers. A warp needs no barriers: "
    "each lane eliminates seven of its eight unknowns in registers, and five levels of shuffles solve for the "
    "remaining ones. If the matrix stays the same, the multiples of the rows can be kept, and a step only applies them "
    "to the right-hand side.",
    "Cyclic reduction leaves rows at strides of 2, 4, 8 and so on. These strides cause bank conflicts in shared "
    "memory. The permuted form moves the even and the odd rows to separate halves, and those moves cause conflicts "
    "too. The lectures give no times.",
]


class Scheme(NamedTuple):
    """The constants of the Crank-Nicolson scheme for each system: s = sigma^2 dt / 4 dx^2 and m = mu dt / 4 dx."""

    s: Array
    m: Array

    @property
    def rows(self) -> Array:
        """The coefficients of a row: of the node before, the node itself and the node after, shape (systems, 3)."""
        return np.stack([self.m - self.s, 1 + 2 * self.s, -self.m - self.s], axis=1)


def scheme(volatilities: Array, cells: int, steps: int) -> Scheme:
    """Return the scheme for a grid from half the strike to twice the strike."""
    dx, dt = 2 * math.log(2) / cells, YEARS / steps
    return Scheme(volatilities**2 * dt / (4 * dx**2), (RATE - volatilities**2 / 2) * dt / (4 * dx))


def reference(start: Array, scheme: Scheme, edges: Array) -> Array:
    """Return the values of the nodes after the steps, in double precision, with the scheme as the lectures write it.

    q_d u[j - 1] + q_m u[j] + q_u u[j + 1] of a new step equals p_d u[j - 1] + p_m u[j] + p_u u[j + 1] of the old one.
    """
    s, m = (number[:, None] for number in scheme)
    now = start.astype(np.float64)
    unknowns = now.shape[1] - 2
    ones = (np.eye(unknowns, k=k) for k in (-1, 0, 1))
    inverse = np.linalg.inv(sum(scheme.rows[:, k, None, None] * one for k, one in enumerate(ones)))
    for step in range(edges.shape[2]):
        new = 2 * edges[:, :, step] - now[:, [0, -1]]
        right = (s - m) * now[:, :-2] + (1 - 2 * s) * now[:, 1:-1] + (s + m) * now[:, 2:]
        right[:, 0] += scheme.s * new[:, 0] - scheme.m * new[:, 0]
        right[:, -1] += scheme.s * new[:, 1] + scheme.m * new[:, 1]
        inside = np.einsum("sij,sj->si", inverse, right)
        now = np.concatenate([new[:, :1], inside, new[:, 1:]], axis=1)
    return now


class Systems:
    """Systems on the device in one precision: first and last values of the nodes, matrices, boundary values.

    `edges` are the boundary values in the middle of the steps, shape (systems, 2, steps) or (systems, 2, 1).
    """

    def __init__(self, start: Array, scheme: Scheme, edges: Array, steps: int, dtype: DTypeLike = np.float32) -> None:
        self.start, self.matrices, self.edges = (
            cuda.to_device(array.astype(dtype)) for array in (start, scheme.rows, edges)
        )
        self.end = cuda.empty_like(self.start)
        self.count, self.cells, self.steps = start.shape[0], start.shape[1] - 1, steps

    @property
    def amount(self) -> float:
        """The number of cells times the number of steps."""
        return float(self.count * self.cells * self.steps)

    def launch(self, module: cuda.Module, way: Way) -> Callable[[], object]:
        """Return a launch that does all steps."""
        kernel = module[f"{way.kernel}<{'float' if self.start.dtype == np.float32 else 'double'}>"]
        blocks, threads, numbers = way.shape(self.count, self.cells)
        edges = (self.edges, self.edges.shape[2])
        return kernel[blocks, threads, numbers * self.start.itemsize].bind(
            self.start, self.end, self.matrices, *edges, self.count, self.cells, self.steps
        )


class Library:
    """The steps with cuSPARSE's solver, which takes matrices as three diagonals: one call and one launch per step."""

    def __init__(self, module: cuda.Module, systems: Systems) -> None:
        self.systems, self.kernel = systems, module["advance<float>"]
        self.graph: cuda.graphs.ExecutableGraph | None = None
        rows, unknowns = systems.matrices.to_host(), systems.cells - 1
        lower, middle, upper = (np.repeat(rows[:, k, None], unknowns, axis=1) for k in range(3))
        lower[:, 0] = upper[:, -1] = 0
        self.lower, self.middle, self.upper = (cuda.to_device(diagonal) for diagonal in (lower, middle, upper))
        self.v = cuda.empty((systems.count, unknowns), np.float32)

    def launch(self) -> None:
        """Queue all steps, from the start."""
        self.begin()
        self.take_steps(self.systems.steps, cuda.legacy_default)

    def launch_graphs(self) -> None:
        """Queue all steps as launches of one graph, because the calls would take longer than the work."""
        count = min(GRAPH_STEPS, self.systems.steps)
        if self.graph is None:
            self.begin()
            stream = cuda.Stream()
            self.take_steps(1, stream)  # the first call in a stream allocates, which cannot be captured
            self.begin()
            with stream.capture() as captured:
                self.take_steps(count, stream)
            self.graph = captured.instantiate()
        for _ in range(self.systems.steps // count):
            self.graph.launch(cuda.legacy_default)

    def begin(self) -> None:
        """Queue the first right-hand side."""
        cuda.memcpy(self.systems.end, self.systems.start, stream=cuda.legacy_default)
        self.advance(0, cuda.legacy_default)

    def take_steps(self, count: int, stream: cuda.Stream) -> None:
        """Queue the first `count` steps."""
        for step in range(count):
            libraries.solve_tridiagonal(self.lower, self.middle, self.upper, self.v, self.v, stream=stream)
            self.advance(step + 1, stream)

    def advance(self, steps: int, stream: cuda.Stream) -> None:
        """Queue the end of step `steps`: the values of the nodes, and the next right-hand side."""
        systems = self.systems
        grid = (blocks_for(systems.cells + 1, BLOCK), systems.count)
        edges = (systems.edges, systems.edges.shape[2])
        self.kernel[grid, BLOCK, 0, stream](systems.end, self.v, systems.matrices, *edges, systems.cells, steps)


def run(device: cuda.Device, size: int) -> Result:
    """Check every method on a few steps from random values, time all steps of the option, and measure its errors."""
    names = [f"{way.kernel}<float>" for way in WAYS.values()]
    module = load("crank_nicolson", names=[*names, f"{FACTORED.kernel}<double>", "advance<float>"])
    limit = latency_limit(device, OPERATIONS, SHUFFLES, VOLATILITIES.size * CELLS, "Gcells/s")
    library, *ours = make_variants(module, size)
    rows = measure(ours, limit, EXPLAINED_BY)
    # The counters of the library's row would include only our own kernel.
    rows[LIBRARY_ROW:LIBRARY_ROW] = [replace(row, metrics={}) for row in measure([library], limit)]
    curves, checks, notes = look_at_errors(module, size)
    return Result(
        rows,
        limit,
        checks,
        curves,
        [*WHY, *notes],
        counted=f"{CHECKED_SYSTEMS} systems of {CHECKED_CELLS} cells and {min(size, CHECKED_STEPS)} steps",
    )


def make_variants(module: cuda.Module, steps: int) -> list[Variant]:
    """Return the variants, the library's first.

    They are checked with boundary values that change in each step, and timed with those of the lectures.
    """
    random = np.random.default_rng()
    few = min(steps, CHECKED_STEPS)
    start = STRIKE * random.random((CHECKED_SYSTEMS, CHECKED_CELLS + 1))
    edges = STRIKE * random.random((CHECKED_SYSTEMS, 2, few))
    numbers = scheme(random.uniform(0.1, 0.5, CHECKED_SYSTEMS), CHECKED_CELLS, SIZE.full)
    expected = reference(start, numbers, edges).astype(np.float32)
    checked = Systems(start, numbers, edges, few)
    timed = option(VOLATILITIES, CELLS, steps, exact=False)

    launches: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        LIBRARY: (Library(module, checked).launch, Library(module, timed).launch_graphs)
    }
    launches |= {name: (checked.launch(module, way), timed.launch(module, way)) for name, way in WAYS.items()}
    return [
        Variant(
            name=name,
            launch=launch,
            output=checked.end,
            expected=expected,
            tolerance=1e-5 * STRIKE,
            timed=timed_launch,
            amount=timed.count * timed.cells * timed.steps,
        )
        for name, (launch, timed_launch) in launches.items()
    ]


def option(volatilities: Array, cells: int, steps: int, *, exact: bool, dtype: DTypeLike = np.float32) -> Systems:
    """Return the systems of the put option, u = e^(r (T - t)) F, starting from the payoff at T.

    With `exact`, the boundary values are those of the closed form; otherwise those of the lectures, the payoff.
    """
    payoff = np.maximum(STRIKE - shares(cells), 0)
    edges = np.empty((volatilities.size, 2, steps if exact else 1))
    edges[:] = payoff[[0, -1], None]
    if exact:
        left = np.linspace(0, YEARS, steps + 1)  # years left at the ends of the steps
        for system, sigma in enumerate(volatilities):
            for side in (0, 1):
                values = np.exp(RATE * left) * put_price(shares(1)[side], STRIKE, RATE, float(sigma), left)
                edges[system, side] = (values[:-1] + values[1:]) / 2
    start = np.tile(payoff, (volatilities.size, 1))
    return Systems(start, scheme(volatilities, cells, steps), edges, steps, dtype)


def shares(cells: int) -> Array:
    """Return the price of the share at each node, from half the strike to twice the strike."""
    return STRIKE / 2 * np.exp(np.linspace(0, 2 * math.log(2), cells + 1))


def errors_of(module: cuda.Module, systems: Systems) -> Array:
    """Return the absolute errors of today's prices for the volatilities SHOWN, shape (systems, nodes)."""
    systems.launch(module, FACTORED)()
    prices = math.exp(-RATE * YEARS) * systems.end.to_host().astype(np.float64)
    exact = [put_price(shares(systems.cells), STRIKE, RATE, float(sigma), YEARS) for sigma in SHOWN]
    return np.asarray(np.abs(prices - exact))


def look_at_errors(module: cuda.Module, steps: int) -> tuple[list[Curve], list[Check], list[str]]:
    """Return curves of the errors with exact boundary values and with those of the lectures, checks and notes.

    The convergence is for the largest volatility, with as many steps as cells. If times are measured, the
    single-precision solutions take all steps.
    """
    all_cells = SHOWN_CELLS if timing.available() else FEWER_CELLS
    many = steps if timing.available() else 0

    def errors(cells: int, dtype: DTypeLike = np.float64, steps: int = 0, *, exact: bool = True) -> Array:
        return errors_of(module, option(SHOWN, cells, steps or cells, exact=exact, dtype=dtype))

    double = {cells: float(errors(cells)[-1].max()) for cells in all_cells}
    single = {cells: float(errors(cells, np.float32, many)[-1].max()) for cells in all_cells}
    course, exact = errors(EDGE_CELLS, exact=False), errors(EDGE_CELLS)
    few, most = all_cells[-2:]
    order = math.log(double[few] / double[most]) / math.log(most / few)
    low, *_, high = sorted(float(of_one.max()) for of_one in course)

    lines = {
        "the lectures' boundary values": [(cells, float(course[-1].max())) for cells in all_cells],
        "exact ones, fp32" + (f", {many:,} steps" if many else ""): list(single.items()),
        "exact ones, fp64": list(double.items()),
        # Half as high, so that it does not cover the other line.
        "slope -2": [(cells, double[most] / 2 * (most / cells) ** 2) for cells in all_cells],
    }
    nodes = shares(EDGE_CELLS).tolist()
    at_edge = {
        f"the lectures' boundary, volatility {sigma:g}": list(zip(nodes, of_one.tolist(), strict=True))
        for sigma, of_one in zip(SHOWN, course, strict=True)
    }
    at_edge["exact boundary, all three"] = list(zip(nodes, exact.max(axis=0).tolist(), strict=True))
    curves = [
        Curve("convergence", "cells", "largest error in a price", lines, logarithmic="xy"),
        Curve("edge", "share price", "error in the option price", at_edge),
    ]
    checks = [
        Check("the error has order 2", 1.8 < order < 2.2, f"Its order is {order:.3g}."),
        Check("the lectures' boundary values leave an error of 1.4 to 2.4", 1.4 < low < high < 2.4, f"{low}, {high}"),
    ]
    notes = [
        f"With exact boundary values, volatility {SHOWN[-1]:g} and {most} cells, the largest error in a price is "
        f"{double[most]:.1e} in fp64 and {single[most]:.1e} in fp32, where rounding errors accumulate from step to "
        f"step. The lectures' boundary values leave an error of {low:.2f} to {high:.2f} on any grid (the strike K is "
        f"{STRIKE:g}). At S = K / 2, u is about K - S e^(r (T - t)), not the payoff K - S.",
    ]
    return curves, checks, notes
