"""The diagrams of all stops: which launches they are drawn from, and which steps they belong to.

Each function runs a stop's kernels on a few elements and yields the diagrams of its steps. The functions choose an
access by its operation and its memory space, so that a kernel may move within its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

import cudart_py as cuda
from cudart_py.profiling import LaunchProfile, access_diagram, divergence_diagram

from .. import recorded
from ..course import local_memory, texture
from ..device_code import load
from ..printing import printed
from ..stop import Timeline
from .drawn import StepDiagram
from .halos import footprint, halo_diagram
from .shuffles import shuffle_diagram
from .tiles import tile_diagram
from .timelines import timeline_diagram
from .trees import shared, shuffled, tree_diagram

_FEW = 4096


def record(launch: Callable[[], object], warp: int = 0) -> LaunchProfile:
    """Run a launch; return its profile with the record of one warp."""
    with cuda.profile(record_warp=warp) as profile:
        launch()
    return profile.launches[0]


def _floats(count: int = _FEW) -> cuda.DeviceArray:
    return cuda.zeros(count, np.float32)


def _words(count: int = _FEW) -> cuda.DeviceArray:
    return cuda.zeros(count, np.uint32)


def coalescing() -> Iterator[StepDiagram]:
    """Draw the loads of copies and of sums over a matrix."""
    each = 8
    names = [f"copy_{kind}<{each}>" for kind in ("contiguous", "block_strided", "groups")]
    module = load("coalescing", names=names)
    for step, kernel, says in (
        ("neighbours", "copy_neighbours", "Each sector serves eight lanes, and every byte is used."),
        ("neighbours, any order", "copy_any_order", "The lines cross, but the four sectors are the same."),
        ("8 elements, contiguous", f"copy_contiguous<{each}>", "Each lane needs a sector of its own."),
        (
            "8 elements, block stride",
            f"copy_block_strided<{each}>",
            "In each iteration, the lanes load adjacent elements again.",
        ),
        ("8 elements, vector loads", f"copy_groups<{each}>", "Two lanes share each sector, and every byte is used."),
    ):
        launch = record(module[kernel][2, 256].bind(_words(), _words(), 2048))
        yield StepDiagram.of(step, says, launch.kernel, access_diagram(launch, operation="load", space="global"))
    for step, kernel, says in (
        ("one thread per column", "sum_columns", "Lanes that walk down adjacent columns share sectors."),
        ("one thread per row", "sum_rows", "Lanes that are a row apart share no sectors. This matrix has 64 columns."),
        ("one warp per row", "sum_rows_by_warps", "When a warp walks along a row, its lanes share sectors again."),
    ):
        launch = record(module[kernel][1, 64].bind(_words(), _words(), 64, 64, 64))
        yield StepDiagram.of(step, says, launch.kernel, access_diagram(launch, operation="load", space="global"))


def launch_shapes() -> Iterator[StepDiagram]:
    """Draw the loads of a warp whose block spans one row, two rows and many rows of a matrix."""
    side = 64
    kernel = load("launch_shapes")["matrix_add"]
    for block, says in (
        ((32, 8), "The warp is one row of the block, and loads 32 adjacent elements."),
        ((16, 16), "The warp is two rows of the block, and loads 16 adjacent elements from each of two rows."),
        ((1, 256), "The warp is a column of the block, and each lane loads from a different row."),
    ):
        grid = (side // block[0], -(-side // block[1]))
        launch = record(kernel[grid, block].bind(_floats(), _floats(), _floats(), side, side))
        yield StepDiagram.of("matrix, 32 x 8", says, launch.kernel, access_diagram(launch, operation="load"))


def stride_and_offset() -> Iterator[StepDiagram]:
    """Draw the loads of a copy with a stride, and of one with an offset."""
    module = load("stride_and_offset")
    for kind, amount, says in (
        ("stride", 1, "32 adjacent elements fill four sectors."),
        ("stride", 2, "Every other word of the eight sectors is moved but not used."),
        ("stride", 8, "Each element lies in a sector of its own. A larger stride does not cost more sectors."),
        ("offset", 1, "The warp's elements start inside a sector, and end in a fifth one."),
        ("offset", 8, "An offset of a whole sector costs nothing."),
    ):
        launch = record(module[f"copy_{kind}"][2, 64].bind(_floats(), _floats(), 128, amount))
        yield StepDiagram.of(f"{kind} {amount}", says, launch.kernel, access_diagram(launch, operation="load"))


def transpose() -> Iterator[StepDiagram]:
    """Draw the stores of the transposes, and the tile that is read by columns."""
    tiles = ["transpose_tile<0>", "transpose_tile<1>"]
    module = load("transpose", names=tiles)

    def run(kernel: str, block: tuple[int, int] = (32, 8)) -> LaunchProfile:
        side = 64
        return record(module[kernel][(2, 2), block].bind(_floats(), _floats(), side, side))

    launch = run("copy_plain")
    yield StepDiagram.of(
        "plain copy",
        "Adjacent lanes write adjacent elements of an output row.",
        launch.kernel,
        access_diagram(launch, operation="store"),
    )
    launch = run("transpose_naive")
    yield StepDiagram.of(
        "naive",
        "Each lane writes to a different row, and so to a different sector.",
        launch.kernel,
        access_diagram(launch, operation="store"),
    )
    for step, kernel, padding, says in (
        ("tile", tiles[0], 0, "The whole column that a warp reads lies in one bank."),
        ("tile, padded by one", tiles[1], 1, "With rows one word longer, the column is spread over all 32 banks."),
    ):
        launch = run(kernel)
        title = f"The tile of {kernel} and the column that a warp loads"
        yield StepDiagram.of(step, says, launch.kernel, tile_diagram(launch, 32, 32 + padding, 32, title))
        yield StepDiagram.of(
            step,
            "One bank serves the words one after another."
            if padding == 0
            else "Each bank serves one word, all at the same time.",
            launch.kernel,
            access_diagram(launch, operation="load", space="shared"),
        )


def bank_conflicts() -> Iterator[StepDiagram]:
    """Draw the shared-memory loads with the strides of the stop."""
    kernel = load("bank_conflicts")["read_stride"]
    for step, stride, says in (
        ("stride 1", 1, "Each lane reads from a bank of its own."),
        ("number of ways", 2, "Two lanes share each even bank, so there are two wavefronts."),
        ("number of ways", 3, "A stride of 3 has no factor in common with 32: every bank serves one lane."),
        ("number of ways", 32, "All lanes need different words from the same bank."),
        ("number of ways", 0, "All lanes read the same word at once: a broadcast is not a conflict."),
    ):
        launch = record(kernel[1, 1024].bind(_words(), stride, 8))
        yield StepDiagram.of(step, says, launch.kernel, access_diagram(launch, operation="load", space="shared"))


def divergence() -> Iterator[StepDiagram]:
    """Draw which lanes are active in each function and on both sides of a branch."""
    instances = ["choose<ByLane>", "choose<ByWarp>", "sides<Even>", "select<Even>"]
    module = load("divergence", names=instances)
    for step, kernel, says in (
        (
            "8 functions, by lane",
            instances[0],
            "The warp executes eight functions, with four lanes each. In this short run, a function has 32 "
            "multiply-adds instead of 512, so the instructions around them raise the average.",
        ),
        ("8 functions, by warp", instances[1], "The warp agrees on one function, and all lanes execute it."),
        (
            "conditions of an if",
            instances[2],
            "The two sides run one after the other, each with half of the lanes active.",
        ),
    ):
        launch = record(module[kernel][1, 256].bind(_floats(), _floats(), 256, 32))
        yield StepDiagram.of(step, says, launch.kernel, divergence_diagram(launch))
    launch = record(module[instances[3]][1, 256].bind(_floats(), _floats(), 256))
    yield StepDiagram.of(
        "x % 2, selected",
        "Each lane selects its factor, and the lanes stay together.",
        launch.kernel,
        divergence_diagram(launch),
    )


def reduction() -> Iterator[StepDiagram]:
    """Draw the atomics at one address, and the tree of shuffles."""
    module = load("reduction")
    launch = record(module["sum_atomic"][1, 256].bind(_floats(), _floats(1), 256))
    yield StepDiagram.of(
        "one atomic per element",
        "All lanes add to the same four bytes, so the additions are performed one after another.",
        launch.kernel,
        access_diagram(launch, operation="atomic"),
    )
    launch = record(module["sum_block"][1, 256].bind(_floats(), _floats(1), 256))
    yield StepDiagram.of(
        "one atomic per block",
        "After five shuffles, lane 0 holds the sum of the warp.",
        launch.kernel,
        tree_diagram(shuffled(launch), "The tree of shuffles in one warp of sum_block", "shuffle"),
    )


def dot_product() -> Iterator[StepDiagram]:
    """Draw the tree in shared memory and the tree of shuffles."""
    module = load("dot_product")
    launch = record(module["dot_tree"][1, 32].bind(_floats(), _floats(), _floats(1), 32))
    yield StepDiagram.of(
        "tree in shared memory",
        "A barrier separates the steps. Of the threads that add in one step, half are idle in the next.",
        launch.kernel,
        tree_diagram(
            shared(launch), "The tree of dot_tree in a block of 32 threads, with a barrier after each step", "step"
        ),
    )
    launch = record(module["dot_warps"][1, 256].bind(_floats(), _floats(), _floats(1), 256))
    yield StepDiagram.of(
        "shuffles, atomic per warp",
        "The same tree without shared memory: a shuffle reads another lane's register.",
        launch.kernel,
        tree_diagram(shuffled(launch), "The tree of shuffles of dot_warps", "shuffle"),
    )


def histogram() -> Iterator[StepDiagram]:
    """Draw the atomics on counters in global and in shared memory."""
    module = load("histogram", names=["histogram_atomic<10>", "histogram_shared<10>"])
    values = cuda.to_device(np.random.default_rng(3).random(256, np.float32))
    for step, kernel, space, says in (
        (
            "global atomics",
            "histogram_atomic<10>",
            "global",
            "The ten counters lie in two sectors, so many lanes add to the same word.",
        ),
        (
            "shared memory",
            "histogram_shared<10>",
            "shared",
            "Lanes that add to the same counter take turns at its bank.",
        ),
    ):
        launch = record(module[kernel][1, 256].bind(values, _words(11), None, 256))
        yield StepDiagram.of(step, says, launch.kernel, access_diagram(launch, operation="atomic", space=space))


def matmul() -> Iterator[StepDiagram]:
    """Draw the loads of the matrices a and b."""
    module = load("matmul", names=["matmul_tile<16>"])
    a, b, c = (_floats() for _ in range(3))
    launch = record(module["matmul_elements"][(4, 4), (16, 16)].bind(a, b, c, 64, 64, 64))
    loads = [access_diagram(launch, operation="load", occurrence=at) for at in range(2)]
    for diagram in sorted(loads, key=lambda diagram: diagram.caption):
        says = (
            "The lanes of a row need the same element of a. The warp's two rows use one word in each of two sectors."
            if diagram.caption.startswith("2 sectors, 8 of 64 bytes")
            else "The elements of b are adjacent, and both rows of the warp need the same ones."
        )
        yield StepDiagram.of("one thread per element", says, launch.kernel, diagram)
    launch = record(module["matmul_tile<16>"][(4, 4), (16, 16)].bind(a, b, c, 64, 64, 64))
    yield StepDiagram.of(
        "tiles of 16 x 16",
        "A warp loads two rows of a tile, and uses every byte of the sectors.",
        launch.kernel,
        access_diagram(launch, operation="load", space="global"),
    )


def constant_memory() -> Iterator[StepDiagram]:
    """Draw look-ups in a table in constant memory and in shared memory."""
    module = load("constant_memory", names=["polynomial_global<4>"])
    launch = record(module["polynomial_global<4>"][1, 256].bind(_floats(), _floats(4), _floats(), 256))
    yield StepDiagram.of(
        "global memory",
        "All lanes load the same coefficient: 4 of the 32 bytes that are moved.",
        launch.kernel,
        access_diagram(launch, operation="load", occurrence=1),
    )
    launch = record(module["look_up_constant"][1, 256].bind(_words(), 32, 1))
    yield StepDiagram.of(
        "constant table, 32 words",
        "The lanes read 32 different words. The constant cache serves one address at a time: this takes 32 requests.",
        launch.kernel,
        access_diagram(launch, operation="load", space="const"),
    )
    launch = record(module["look_up_shared"][1, 256].bind(_words(), _words(), 32, 1))
    yield StepDiagram.of(
        "shared table, 32 words",
        "The same 32 words lie in 32 banks, which serve them all at the same time.",
        launch.kernel,
        access_diagram(launch, operation="load", space="shared"),
    )


def textures() -> Iterator[StepDiagram]:
    """Draw the loads of a rotated row of pixels, and of a rotated patch."""
    image = texture.Image(load("texture"), np.zeros((64, 64), np.float32), 64)
    for step, says in (
        ("plain loads", "A warp of 32 x 1 pixels reads along a slanted line, across many rows of the image."),
        ("plain, 8 x 4 warps", "A patch of 8 x 4 pixels is more compact, and touches fewer sectors."),
    ):
        launch = record(image.launch(texture.WAYS[step], texture.SHOWN_ANGLE), 10)
        yield StepDiagram.of(step, says, launch.kernel, access_diagram(launch, operation="load"))


def heat() -> Iterator[StepDiagram]:
    """Draw the cells that a block reads and computes."""
    rows, columns = 32, 96
    plates = [cuda.zeros((rows, columns), np.float32) for _ in range(2)]
    launch = load("heat")["heat_tiled"][(3, 4), (32, 8)].bind(*plates, rows, columns, 0.1)
    # The block in the middle of the second row of blocks.
    block, warps = 1 * 3 + 1, 8
    loaded, stored = footprint(launch, range(block * warps, (block + 1) * warps), *plates)
    yield StepDiagram.of(
        "shared-memory tile",
        "The block loads its tile and a halo one cell wide, which its neighbours compute.",
        "heat_tiled",
        halo_diagram(loaded, stored, "The cells that one block of heat_tiled reads and computes", "The block"),
    )
    yield from _timelines(
        "heat",
        {
            "overlap": (
                "film: overlapped",
                "Copying and writing frames overlaps with the time steps.",
                "Time steps, copies of frames and writes to the file",
            )
        },
    )


def debug_print() -> Iterator[StepDiagram]:
    """Draw which lane each lane reads from in shuffles of a whole warp and of its halves."""
    widths = {
        32: "The last two lanes have no lane above them to read from.",
        16: "Each half of the warp is a separate group.",
    }
    module = load("debug_print", names=[f"shuffle_down<{width}>" for width in widths])
    for width, says in widths.items():
        with cuda.profile(record_warp=0) as profile:
            printed(module[f"shuffle_down<{width}>"][1, 32].bind(cuda.zeros(32, np.int32)))
        [launch] = profile.launches
        assert launch.warp is not None
        title = f"__shfl_down_sync by 2 lanes, with a width of {width}"
        yield StepDiagram.of(
            f"shuffle, width {width}", says, launch.kernel, shuffle_diagram(launch.warp.shuffles[0], width, title)
        )


def managed() -> Iterator[StepDiagram]:
    """Draw a prefetch beside a kernel."""
    yield from _timelines(
        "managed",
        {
            "overlap": (
                "prefetch during long kernel",
                "From the second piece on, each prefetch overlaps with the kernel that works on the previous piece.",
                "A prefetch and a long-running kernel in two streams",
            )
        },
    )


def halo() -> Iterator[StepDiagram]:
    """Draw the rows of a strip, and when the halo travels."""
    rows, columns = 8, 64
    plates = [cuda.zeros((rows, columns), np.float32) for _ in range(2)]
    launch = load("halo")["heat_strip"][(1, 1), (32, 8)].bind(*plates, rows, columns, 0.1)
    loaded, stored = footprint(launch, range(8), *plates)
    yield StepDiagram.of(
        "one strip",
        "The first and last rows come from the neighbouring strips.",
        "heat_strip",
        halo_diagram(loaded, stored, "The cells that heat_strip reads and computes in a strip of 8 rows", "The device"),
    )
    yield from _timelines(
        "halo",
        {
            "overlap": (
                "overlapped",
                "The halo rows are copied while the interior is computed.",
                "Kernels and copies of one strip",
            )
        },
    )


def local() -> Iterator[StepDiagram]:
    """Draw stores to local memory, with indices that are the same and that differ between lanes."""
    module = load("local_memory")
    groups = 256
    random = np.random.default_rng(3).integers(0, local_memory.COUNTERS, 4 * groups, np.uint32)
    for index, says in (
        (np.zeros_like(random), "All lanes have the same index, so their words are adjacent in memory."),
        (random, "Lanes with different indices touch different sectors."),
    ):
        values = cuda.to_device(index)
        launch = record(module["count_by_value"][1, 256].bind(values, _words(256 * local_memory.COUNTERS), groups))
        loads = access_diagram(launch, operation="load", space="local")
        yield StepDiagram.of("value as the index", says, launch.kernel, loads)


def streams() -> Iterator[StepDiagram]:
    """Draw the copies and kernels of the recorded run."""
    yield from _timelines(
        "streams",
        {
            "2-streams": (
                "2 streams, depth-first",
                "Copies in both directions overlap with kernels, whatever the order of the calls.",
                "Two streams on a device with one copy engine per direction",
            ),
            "model-one-engine": (
                "a model of the device",
                "With a single copy engine, the order of the calls determines what overlaps.",
                "Four streams in the model of a device with a single copy engine",
            ),
        },
    )


def _timelines(stop: str, steps: Mapping[str, tuple[str, str, str]]) -> Iterator[StepDiagram]:
    """Yield recorded timelines of a stop; `steps` maps a timeline's name to its step, its sentence and its title."""
    known = recorded.stop(stop)
    for picture in recorded.result(known).pictures if known else ():
        if isinstance(picture, Timeline) and picture.name in steps:
            step, says, title = steps[picture.name]
            if picture.unit == "ms":
                says += f" The times were recorded with events: {recorded.machine()}."
            yield StepDiagram.of(step, says, "", timeline_diagram(picture, title))


DIAGRAMS: Mapping[str, Callable[[], Iterator[StepDiagram]]] = {
    "launch_shapes": launch_shapes,
    "coalescing": coalescing,
    "stride_and_offset": stride_and_offset,
    "transpose": transpose,
    "bank_conflicts": bank_conflicts,
    "divergence": divergence,
    "reduction": reduction,
    "dot_product": dot_product,
    "histogram": histogram,
    "matmul": matmul,
    "constant_memory": constant_memory,
    "texture": textures,
    "heat": heat,
    "halo": halo,
    "local_memory": local,
    "managed": managed,
    "debug_print": debug_print,
    "streams": streams,
}
