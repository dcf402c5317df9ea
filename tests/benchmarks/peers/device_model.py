"""Predicted times of halo, all_reduce and distributed_gemm on many GPUs, by the formulas in docs/many-devices.md."""

import math

from library_tour.block_cyclic import near_square
from library_tour.course.distributed_gemm import PANELS

FLOAT = 4  # bytes
# Rates of a GPU: bytes per second of its memory, its link and its network adapter, and FLOP/s in matrix products.
MEMORY, LINK, NETWORK, PRODUCTS = 4260e9, 396e9, 50e9, 51.27e12
LINK_LATENCY, NETWORK_LATENCY = 12.2e-6, 2e-6  # seconds
GPUS_OF_HOST = 8


def halo_seconds(gpus: int, rows: float, columns: int) -> dict[str, float]:
    """Return the seconds per step of a plate with `rows` rows per GPU: computing only, sequential, and overlapped."""
    computing = 2 * FLOAT * rows * columns / MEMORY
    edges = 4 * FLOAT * columns / MEMORY
    exchange = LINK_LATENCY + 2 * FLOAT * columns / LINK if gpus > 1 else 0.0
    if gpus > GPUS_OF_HOST:
        exchange = max(exchange, NETWORK_LATENCY + FLOAT * columns / NETWORK)
    overlapped = max(computing, edges + exchange) if gpus > 1 else computing
    return {"computing": computing, "sequential": computing + exchange, "overlapped": overlapped}


def all_reduce_seconds(gpus: int, nbytes: float) -> float:
    """Return the seconds of an all-reduce of `nbytes` bytes per GPU, with rings inside the hosts and between them."""
    near = min(gpus, GPUS_OF_HOST)
    hosts = -(-gpus // near)
    inside = 2 * (near - 1) * (LINK_LATENCY + nbytes / (near * LINK))
    between = 2 * (hosts - 1) * (NETWORK_LATENCY + nbytes / (near * hosts * NETWORK))
    return inside + between


def bus_bandwidth(gpus: int, nbytes: float, seconds: float) -> float:
    return 2 * (gpus - 1) / gpus * nbytes / seconds


def product_seconds(gpus: int, size: int) -> float:
    """Return the seconds of a product of square matrices on a grid of GPUs that receive panels while they compute."""
    grid, computing = near_square(gpus), 2 * size**3 / gpus / PRODUCTS
    if gpus == 1:
        return computing
    latency, link = (LINK_LATENCY, LINK) if gpus <= GPUS_OF_HOST else (NETWORK_LATENCY, NETWORK)
    panels = PANELS * math.lcm(*grid)
    received = FLOAT * size**2 * (sum(grid) - 2) / gpus
    travelling = panels * latency + received / link
    # The multiplication cannot start before the first panel has arrived.
    return max(computing, travelling) + travelling / panels
