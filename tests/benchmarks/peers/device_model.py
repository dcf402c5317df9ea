"""What halo, all_reduce and distributed_gemm should take on many GPUs, by the formulas of docs/many-devices.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

from library_tour.block_cyclic import near_square
from library_tour.course.distributed_gemm import PANELS

FLOAT = 4  # bytes


@dataclass(frozen=True)
class Rates:
    """What a GPU does in a second: bytes of its memory, its links and its network adapter, and products' operations.

    Latencies are in seconds.
    """

    memory: float = 4260e9
    products: float = 51.27e12
    link: float = 396e9
    link_latency: float = 12.2e-6
    network: float = 50e9
    network_latency: float = 2e-6
    gpus_of_host: int = 8


def halo_seconds(gpus: int, rows: float, columns: int, rates: Rates | None = None) -> dict[str, float]:
    """Return the seconds of a step of a plate with so many rows on each GPU, by what a step consists of."""
    known = rates or Rates()
    computing = 2 * FLOAT * rows * columns / known.memory
    edges = 4 * FLOAT * columns / known.memory
    exchange = 0.0
    if gpus > 1:
        exchange = known.link_latency + 2 * FLOAT * columns / known.link
    if gpus > known.gpus_of_host:
        exchange = max(exchange, known.network_latency + FLOAT * columns / known.network)
    overlapped = max(computing, edges + exchange) if gpus > 1 else computing
    return {"computing": computing, "in turn": computing + exchange, "overlapped": overlapped}


def all_reduce_seconds(gpus: int, nbytes: float, rates: Rates | None = None) -> float:
    """Return the seconds of adding the arrays of `nbytes` on each GPU, by rings in the hosts and between them."""
    known = rates or Rates()
    near = min(gpus, known.gpus_of_host)
    hosts = -(-gpus // near)
    inside = 2 * (near - 1) * (known.link_latency + nbytes / (near * known.link))
    between = 2 * (hosts - 1) * (known.network_latency + nbytes / (near * hosts * known.network))
    return inside + between


def bus_bandwidth(gpus: int, nbytes: float, seconds: float) -> float:
    return 2 * (gpus - 1) / gpus * nbytes / seconds


def product_seconds(gpus: int, size: int, rates: Rates | None = None) -> float:
    """Return the seconds of a product of square matrices on a grid of GPUs, to which panels travel meanwhile."""
    known, grid = rates or Rates(), near_square(gpus)
    computing = 2 * size**3 / gpus / known.products
    if gpus == 1:
        return computing
    near = gpus <= known.gpus_of_host
    latency, link = (known.link_latency, known.link) if near else (known.network_latency, known.network)
    panels = PANELS * math.lcm(*grid)
    received = FLOAT * size**2 * (sum(grid) - 2) / gpus
    travelling = panels * latency + received / link
    # Nothing is multiplied before the first panel has come.
    return max(computing, travelling) + travelling / panels
