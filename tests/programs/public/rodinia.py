"""Programs of Rodinia."""

import numpy as np
from scipy import ndimage, sparse

import cudart_py as cuda

from .program import Array, Build, ceil_div, check_close, check_equal, listed

program = listed("Rodinia", "cuda/{name}")


@program("bfs", "kernel.cu kernel2.cu")
def bfs(build: Build) -> None:
    """Many threads store the same value: find the distances from a vertex, with two launches per level."""
    module = build(before="#define MAX_THREADS_PER_BLOCK 512\nstruct Node { int starting; int no_of_edges; };")
    count = 3001
    degrees = build.random.integers(0, 5, count)
    edges = build.random.integers(0, count, int(degrees.sum())).astype(np.int32)
    nodes = np.zeros(count, np.dtype([("starting", np.int32), ("edges", np.int32)]))
    nodes["starting"], nodes["edges"] = np.cumsum(degrees) - degrees, degrees
    first = np.arange(count) == 7
    mask, visited, updating = cuda.to_device(first), cuda.to_device(first), cuda.zeros(count, np.bool_)
    cost = cuda.to_device(np.where(first, 0, -1).astype(np.int32))
    graph, targets, over = cuda.to_device(nodes), cuda.to_device(edges), cuda.zeros(1, np.bool_)
    blocks = ceil_div(count, 512)
    for _ in range(count):
        over.copy_from(np.zeros(1, np.bool_))
        module["Kernel"][blocks, 512](graph, targets, mask, updating, visited, cost, count)
        module["Kernel2"][blocks, 512](mask, updating, visited, over, count)
        if not over.to_host()[0]:
            break
    matrix = sparse.csr_array((np.ones(edges.size), edges, np.append(nodes["starting"], edges.size)), (count, count))
    wanted = sparse.csgraph.dijkstra(matrix, indices=7, unweighted=True)
    check_equal(cost.to_host(), np.where(np.isinf(wanted), -1, wanted))


@program("pathfinder", "pathfinder.cu")
def pathfinder(build: Build) -> None:
    """A pyramid of steps in shared memory: find the cheapest paths down a grid, several rows per launch."""
    module = build()
    rows, columns, height, block = 43, 1013, 8, 256
    wall = build.random.integers(0, 10, (rows, columns)).astype(np.int32)
    data = cuda.to_device(wall[1:].ravel())
    source, target = cuda.to_device(wall[0]), cuda.empty(columns, np.int32)
    blocks = ceil_div(columns, block - 2 * height)
    for start in range(0, rows - 1, height):
        steps = min(height, rows - 1 - start)
        module["dynproc_kernel"][blocks, block](steps, data, source, target, columns, rows, start, height)
        source, target = target, source
    wanted = wall[0].astype(np.int64)
    for row in wall[1:]:
        wanted = row + ndimage.minimum_filter1d(wanted, 3, mode="nearest")
    check_equal(source.to_host(), wanted)


@program("hotspot", "hotspot.cu")
def hotspot(build: Build) -> None:
    """The same in two dimensions: let heat spread over a chip, two steps per launch."""
    module = build()
    rows, columns, height, block = 67, 83, 2, 16
    temperature, power = build.floats(rows, columns, low=320, high=340), build.floats(rows, columns, low=0, high=1e-3)
    chip, thick = 0.016, 0.0005
    high, wide = chip / rows, chip / columns
    capacity = 0.5 * 1.75e6 * thick * wide * high
    rx, ry, rz = wide / (200 * thick * high), high / (200 * thick * wide), thick / (100 * high * wide)
    step = 0.001 / (3.0e6 / (0.5 * thick * 1.75e6))
    source, target = cuda.to_device(temperature.ravel()), cuda.empty(rows * columns, np.float32)
    heat = cuda.to_device(power.ravel())
    grid = ceil_div(columns, block - 2 * height), ceil_div(rows, block - 2 * height)
    constants = [float(np.float32(value)) for value in (capacity, rx, ry, rz, step, 0.001)]
    for _ in range(3):
        arguments = height, heat, source, target, columns, rows, height, height, *constants
        module["calculate_temp"][grid, (block, block)](*arguments)
        source, target = target, source
    wanted = temperature.astype(np.float64)
    for _ in range(3 * height):
        bend = [ndimage.correlate1d(wanted, [1, -2, 1], axis, mode="nearest") / constants[2 - axis] for axis in (0, 1)]
        wanted = wanted + constants[4] / constants[0] * (power + sum(bend) + (80 - wanted) / constants[3])
    check_close(source.to_host().reshape(rows, columns), wanted, 1e-5)


@program("nw", "needle.h needle_kernel.cu")
def needleman_wunsch(build: Build) -> None:
    """Diagonals of a tile between barriers: align two sequences, one diagonal of blocks per launch."""
    module = build()
    block, tiles, penalty = 16, 5, 10
    size = block * tiles
    scores = np.zeros((size + 1, size + 1), np.int32)
    scores[1:, 1:] = build.random.integers(-5, 12, (size, size))
    table = np.zeros_like(scores)
    table[0], table[:, 0] = -penalty * np.arange(size + 1), -penalty * np.arange(size + 1)
    reference, matrix = cuda.to_device(scores.ravel()), cuda.to_device(table.ravel())
    for i in range(1, tiles + 1):
        module["needle_cuda_shared_1"][i, block](reference, matrix, size + 1, penalty, i, tiles)
    for i in range(tiles - 1, 0, -1):
        module["needle_cuda_shared_2"][i, block](reference, matrix, size + 1, penalty, i, tiles)
    for row in range(1, size + 1):
        for column in range(1, size + 1):
            skip = max(table[row, column - 1], table[row - 1, column]) - penalty
            table[row, column] = max(table[row - 1, column - 1] + scores[row, column], skip)
    check_equal(matrix.to_host().reshape(table.shape), table)


@program("lud", "cuda/lud_kernel.cu")
def lud(build: Build) -> None:
    """The two halves of a block do different work: factor a matrix in place, tile by tile."""
    module = build()
    block, tiles = 16, 4
    size = block * tiles
    matrix = build.floats(size, size) + 4 * np.eye(size, dtype=np.float32)
    data = cuda.to_device(matrix.ravel())
    for offset in range(0, size, block):
        module["lud_diagonal"][1, block](data, size, offset)
        rest = (size - offset) // block - 1
        if rest:
            module["lud_perimeter"][rest, 2 * block](data, size, offset)
            module["lud_internal"][(rest, rest), (block, block)](data, size, offset)
    factors = data.to_host().reshape(size, size).astype(np.float64)
    check_close((np.tril(factors, -1) + np.eye(size)) @ np.triu(factors), matrix, 1e-4, 1e-5)


@program(
    "srad",
    "srad_v2/srad.h srad_v2/srad_kernel.cu",
    why="its kernels read beyond the image, so the host allocates memory there",
)
def srad(build: Build) -> None:
    """Nine code paths through one kernel: remove speckles from an image, with extra memory before and after it."""
    module = build()
    block, rows, columns = 16, 48, 80
    image = np.exp(build.floats(rows, columns, low=0, high=1))
    margin = (block + 1) * columns
    image_device, coefficient = (cuda.zeros(rows * columns + 2 * margin, np.float32) for _ in range(2))
    inside, c = (one[margin : margin + rows * columns] for one in (image_device, coefficient))
    inside.copy_from(image.ravel())
    sides = [cuda.empty(rows * columns, np.float32) for _ in range(4)]
    grid, threads, step = (columns // block, rows // block), (block, block), 0.5
    wanted = image.astype(np.float64)
    for _ in range(2):
        q0 = float(np.float32(wanted.var() / wanted.mean() ** 2))
        module["srad_cuda_1"][grid, threads](*sides, inside, c, columns, rows, q0)
        module["srad_cuda_2"][grid, threads](*sides, inside, c, columns, rows, step, q0)
        wanted = _diffused(wanted, q0, step)
    check_close(inside.to_host().reshape(rows, columns), wanted, 1e-4)


def _diffused(image: Array, q0: float, step: float) -> Array:
    """Return an image after one step of the diffusion, in double precision."""
    edges = np.pad(image, 1, mode="edge")
    north, south = edges[:-2, 1:-1] - image, edges[2:, 1:-1] - image
    west, east = edges[1:-1, :-2] - image, edges[1:-1, 2:] - image
    squares = (north**2 + south**2 + west**2 + east**2) / image**2
    sums = (north + south + west + east) / image
    q = (0.5 * squares - sums**2 / 16) / (1 + 0.25 * sums) ** 2
    c = np.clip(1 / (1 + (q - q0) / (q0 * (1 + q0))), 0, 1)
    around = np.pad(c, 1, mode="edge")
    total = c * north + around[2:, 1:-1] * south + c * west + around[1:-1, 2:] * east
    return image + 0.25 * step * total


@program("backprop", "backprop.h backprop_cuda_kernel.cu")
def backprop(build: Build) -> None:
    """The result of `__powf` as an index: pass one layer forward, then adjust its weights."""
    module = build()
    hidden, blocks = 16, 9
    inputs = 16 * blocks
    values, weights = build.floats(inputs + 1), build.floats(inputs + 1, hidden + 1)
    delta, old = build.floats(hidden + 1), build.floats(inputs + 1, hidden + 1)
    layer, matrix, sums = cuda.to_device(values), cuda.to_device(weights.ravel()), cuda.empty(blocks * 16, np.float32)
    arguments = layer, cuda.zeros(hidden + 1, np.float32), matrix, sums, inputs, hidden
    module["bpnn_layerforward_CUDA"][(1, blocks), (16, 16)](*arguments)
    products = weights[1:, 1:].astype(np.float64) * values[1:, None]
    check_close(sums.to_host().reshape(blocks, hidden).sum(axis=0, dtype=np.float64), products.sum(axis=0), 1e-4, 1e-5)

    matrix, older = cuda.to_device(weights.ravel()), cuda.to_device(old.ravel())
    values[0] = 1
    layer.copy_from(values)
    adjust = module["bpnn_adjust_weights_cuda"][(1, blocks), (16, 16)]
    adjust(cuda.to_device(delta), hidden, layer, inputs, matrix, older)
    change = 0.3 * delta[None, :].astype(np.float64) * values[:, None] + 0.3 * old
    change[:, 0] = 0
    check_close(matrix.to_host().reshape(weights.shape), weights + change, 1e-5, 1e-6)
    check_close(older.to_host().reshape(old.shape)[:, 1:], change[:, 1:], 1e-5, 1e-6)


@program("gaussian", "gaussian.cu")
def gaussian(build: Build) -> None:
    """Elimination, two launches per column: solve a linear system by Gaussian elimination."""
    module = build(omit=["timeval"])
    size = 37
    matrix = (build.floats(size, size) + 6 * np.eye(size, dtype=np.float32)).astype(np.float32)
    right = build.floats(size)
    factors = cuda.zeros(size * size, np.float32)
    a, b = cuda.to_device(matrix.ravel()), cuda.to_device(right)
    for t in range(size - 1):
        module["Fan1"][1, 512](factors, a, size, t)
        tiles = ceil_div(size, 4)
        module["Fan2"][(tiles, tiles), (4, 4)](factors, a, b, size, size - t, t)
    upper = np.triu(a.to_host().reshape(size, size).astype(np.float64))
    wanted = np.linalg.solve(matrix.astype(np.float64), right)
    check_close(np.linalg.solve(upper, b.to_host()), wanted, 1e-3, 1e-4)


@program("hotspot3D", "opt1.cu")
def hotspot_3d(build: Build) -> None:
    """A stencil through layers: let heat spread through a stack of layers."""
    module = build()
    nx, ny, nz = 96, 20, 5
    temperature, power = build.floats(nz, ny, nx, low=50, high=90), build.floats(nz, ny, nx, low=0, high=1)
    factors = [float(np.float32(value)) for value in (0.01, 0.5, 0.06, 0.07, 0.08, 0.09, 0.1, 0.11, 0.4)]
    scale, ce, cw, cn, cs, ct, cb, cc = factors[0], *factors[2:]
    target = cuda.empty(temperature.size, np.float32)
    arguments = cuda.to_device(power.ravel()), cuda.to_device(temperature.ravel()), target
    module["hotspotOpt1"][(nx // 32, ny // 4), (32, 4)](*arguments, scale, nx, ny, nz, ce, cw, cn, cs, ct, cb, cc)
    old = np.pad(temperature.astype(np.float64), 1, mode="edge")
    middle = old[1:-1, 1:-1, 1:-1]
    wanted = cc * middle + scale * power + ct * 80
    wanted += cw * old[1:-1, 1:-1, :-2] + ce * old[1:-1, 1:-1, 2:]
    wanted += cn * old[1:-1, :-2, 1:-1] + cs * old[1:-1, 2:, 1:-1]
    wanted += cb * old[:-2, 1:-1, 1:-1] + ct * old[2:, 1:-1, 1:-1]
    check_close(target.to_host().reshape(temperature.shape), wanted, 1e-5)


@program("lavaMD", "main.h kernel/kernel_gpu_cuda.cu")
def lava_md(build: Build) -> None:
    """Structures passed by value, double precision: sum forces between the particles of neighbouring boxes."""
    module = build()
    side, each, alpha = 2, 100, 0.5
    boxes = side**3
    place = [("at", np.int32, 3), ("number", np.int32), ("offset", np.int64)]
    neighbour = np.dtype(place, align=True)
    box = np.dtype([*place, ("nn", np.int32), ("nei", neighbour, 26)], align=True)
    table = np.zeros(boxes, box)
    table["offset"] = np.arange(boxes) * each
    table["nn"] = boxes - 1  # with two boxes per side, all boxes are neighbours
    for number in range(boxes):
        table["nei"]["number"][number, : boxes - 1] = [other for other in range(boxes) if other != number]
    positions, charges = build.random.uniform(0.1, 1, (boxes * each, 4)), build.random.uniform(0.1, 1, boxes * each)
    forces = cuda.zeros((boxes * each, 4), np.float64)
    sizes = np.zeros((), np.dtype([("args", np.int32, 4), ("boxes", np.int64), ("memory", np.int64, 4)], align=True))
    sizes["boxes"] = boxes
    parameter = np.array((alpha,), np.dtype([("alpha", np.float64)]))
    arguments = cuda.to_device(table), cuda.to_device(positions), cuda.to_device(charges), forces
    module["kernel_gpu_cuda"][boxes, 128](parameter[()], sizes[()], *arguments)
    dot = positions[:, 1:] @ positions[:, 1:].T
    near = np.exp(-2 * alpha**2 * (positions[:, :1] + positions[:, 0] - dot)) * charges
    wanted = np.empty((boxes * each, 4))
    wanted[:, 0] = near.sum(axis=1)
    wanted[:, 1:] = 2 * (near.sum(axis=1)[:, None] * positions[:, 1:] - near @ positions[:, 1:])
    check_close(forces.to_host(), wanted, 1e-9, 1e-11)
