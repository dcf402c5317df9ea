"""Keep an array in the L2 cache while a longer one passes through it, with an access policy on the stream.

On the simulator, which checks results and counts operations but does not measure time:

    $ library-tour run l2_persistence
    l2_persistence: Data that persists in the L2 cache
    size 8,197: groups of four values to weigh
                           L2 hit rate  check
    ─────────────────────────────────────────
    no policy                    0.0 %  right
    __ldcs for the values      100.0 %  right
    policy: streaming            0.0 %  right
    policy: persisting         100.0 %  right
    large: no policy             0.0 %  right
    large: persisting            0.0 %  right
    large: tuned ratio          60.0 %  right
    Another array, read over and over after the weights
                            L2 hit rate  check
    ──────────────────────────────────────────
    nothing persists            100.0 %  right
    the weights persist           0.0 %  right
    weights read as normal      100.0 %  right
    after a reset               100.0 %  right
    'L2 hit rate' is the share of reads of the weights, or of the other array, that
    hit in a model of L2. The model always replaces the least recently used line. A
    real L2 cache replaces lines differently, and the measured rates in GB/s vary
    less than these shares.
    The array of weights is 0.9 times as large as the part that can be set aside,
    and the large array 1.5 times as large. The weights are read again and again,
    and each value only once. Without a policy, the values displace the weights.
    With a persisting policy, the weights stay in the part of L2 that is set aside.
    The limit is the memory bandwidth, so a rate above it shows how much L2 saves. A
    streaming policy does the opposite: the weights are replaced first. With __ldcs
    in the kernel, the values are replaced first, so the weights stay without any
    policy.
    If the weights are larger than the part set aside, they displace one another
    there. Divide the size of that part by the size of the weights. With a hit ratio
    a little below the quotient, that share of the weights persists, and the rest is
    replaced first.
    Lines continue to persist after the kernel ends, until they are read as normal
    lines or reset. Until then, less of L2 is available to other data.
    An H200 behaves only partly like the model. __ldcs raises its rate by a quarter,
    and a streaming policy lowers it. Weights that fit are read as fast without a
    policy as with a persisting one. Large weights gain a little from a persisting
    policy, and less from the tuned ratio. Another array, half as large as L2, is
    read just as fast alongside persisting lines.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import cudart_py as cuda

from .. import timing
from ..device_code import blocks_for, load
from ..inputs import INPUT_BLOCK, repeated
from ..limits import read_limit
from ..stop import Curve, Limit, Result, Row, Size
from ..variants import Variant, measure, points

TITLE = "Data that persists in the L2 cache"
SIZE = Size("groups of four values to weigh", full=2**27, small=2**13 + 5)
BLOCK = 256
CHECKED_BLOCKS, CHECKED_WEIGHTS = 3, 601
# Sizes as fractions of the part set aside: one that fits, and one that does not.
FITS, EXCEEDS = 0.9, 1.5
WINDOWS = (0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 1.75, 2.0)
ANOTHER = 0.5  # the size of the other array, as a fraction of L2
MODEL_LINE = 2**18  # bytes: much longer than a line of the real cache, to make the model fast
MODEL_ROUNDS = 4
HITS = "L2 hit rate"

NOTES = [
    "'L2 hit rate' is the share of reads of the weights, or of the other array, that hit in a model of L2. The model "
    "always replaces the least recently used line. A real L2 cache replaces lines differently, and the measured rates "
    "in GB/s vary less than these shares.",
    f"The array of weights is {FITS} times as large as the part that can be set aside, and the large array {EXCEEDS} "
    "times as large. The weights are read again and again, and each value only once. Without a policy, the values "
    "displace the weights. With a persisting policy, the weights stay in the part of L2 that is set aside. The limit "
    "is the memory bandwidth, so a rate above it shows how much L2 saves. A streaming policy does the opposite: the "
    "weights are replaced first. With __ldcs in the kernel, the values are replaced first, so the weights stay without "
    "any policy.",
    "If the weights are larger than the part set aside, they displace one another there. Divide the size of that part "
    "by the size of the weights. With a hit ratio a little below the quotient, that share of the weights persists, and "
    "the rest is replaced first.",
    "Lines continue to persist after the kernel ends, until they are read as normal lines or reset. Until then, less "
    "of L2 is available to other data.",
    "An H200 behaves only partly like the model. __ldcs raises its rate by a quarter, and a streaming policy lowers "
    "it. Weights that fit are read as fast without a policy as with a persisting one. Large weights gain a little from "
    "a persisting policy, and less from the tuned ratio. Another array, half as large as L2, is read just as fast "
    "alongside persisting lines.",
]

Words = NDArray[np.uint32]
Launch = Callable[[], object]


class Way(NamedTuple):
    """The size of the weights, as a fraction of the part set aside, and the policy of the stream, if any."""

    size: float
    hit: Literal["", "normal", "streaming", "persisting"] = ""
    ratio: float = 1.0
    evict_first: bool = False  # whether the kernel reads the values with __ldcs


WAYS = {
    "no policy": Way(FITS),
    "__ldcs for the values": Way(FITS, evict_first=True),
    "policy: streaming": Way(FITS, "streaming"),
    "policy: persisting": Way(FITS, "persisting"),
    "large: no policy": Way(EXCEEDS),
    "large: persisting": Way(EXCEEDS, "persisting"),
    "large: tuned ratio": Way(EXCEEDS, "persisting", FITS / EXCEEDS),
}
LINES: dict[str, Callable[[float], Way]] = {
    "no policy": Way,
    "persisting, hit ratio 1": lambda size: Way(size, "persisting"),
    "persisting, tuned hit ratio": lambda size: Way(size, "persisting", min(1.0, FITS / size)),
}


def reference(values: Words, weights: Words, threads: int) -> Words:
    """Return each thread's sum of the values times the weights, modulo 2^32; both in groups of four."""
    products = (values * weights[np.arange(len(values)) % len(weights)]).sum(axis=1, dtype=np.uint32)
    return by_thread(products, threads)


def by_thread(values: Words, threads: int) -> Words:
    """Return the sums of the values by thread, modulo 2^32; thread t has values t, t + threads, and so on."""
    padded = np.zeros(-(-values.size // threads) * threads, np.uint32)
    padded[: values.size] = values
    return np.asarray(padded.reshape(-1, threads).sum(axis=0, dtype=np.uint32))


class Model:
    """A cache of `nbytes` bytes, a part of which is set aside; it replaces the least recently used line."""

    def __init__(self, nbytes: float, set_aside: float) -> None:
        self._lines, self._set_aside = round(nbytes / MODEL_LINE), round(set_aside / MODEL_LINE)
        self._persisting: OrderedDict[tuple[str, int], None] = OrderedDict()
        self._others: OrderedDict[tuple[str, int], None] = OrderedDict()

    def read(self, line: tuple[str, int], kind: str = "") -> bool:
        """Return whether a line was cached; cache it with the property `kind`, or with the one that it has."""
        hit = line in self._persisting or line in self._others
        if kind == "persisting" or (not kind and line in self._persisting):
            self._others.pop(line, None)
            self._persisting[line] = None
            self._persisting.move_to_end(line)
            if len(self._persisting) > self._set_aside:
                self._persisting.popitem(last=False)
        else:
            self._persisting.pop(line, None)
            self._others[line] = None
            # The line at the end is replaced last. Streaming lines are replaced first.
            self._others.move_to_end(line, last=kind != "streaming")
        while len(self._persisting) + len(self._others) > self._lines:
            self._others.popitem(last=False)
        return hit

    def weigh(self, nbytes: float, way: Way) -> float:
        """Return the share of the reads of weights that hit in the last round, with one value read before each."""
        count = round(nbytes / MODEL_LINE)
        hits: list[bool] = []
        for step in range(MODEL_ROUNDS * count):
            self.read(("values", step), "streaming" if way.evict_first else "")
            index = step % count
            # CUDA does not say which lines get the property. Here they are spread evenly.
            chosen = index * 0.618034 % 1 < way.ratio
            hits.append(self.read(("weights", index), "streaming" if way.hit and not chosen else way.hit))
        return sum(hits[-count:]) / count

    def add_up(self, nbytes: float) -> float:
        """Return the share of the reads of another array that hit in the last round."""
        count = round(nbytes / MODEL_LINE)
        hits = [self.read(("another", step % count)) for step in range(MODEL_ROUNDS * count)]
        return sum(hits[-count:]) / count


class Weighing:
    """The values, the weights and the launches that read them, small ones to be checked and large ones to be timed."""

    def __init__(self, device: cuda.Device, groups: int, set_aside: int) -> None:
        self._module = load("l2_persistence", names=["weigh<false>", "weigh<true>"])
        self._stream = cuda.Stream()
        self._set_aside, self._l2_bytes = set_aside, device.properties.l2_cache_size
        # One wave of blocks, but no more than the groups require.
        most = device.sm_count * (device.properties.max_threads_per_sm // BLOCK)
        self._blocks = min(most, max(CHECKED_BLOCKS, blocks_for(groups, BLOCK)))
        random = np.random.default_rng()
        block = random.integers(0, 2**32, (min(groups, INPUT_BLOCK // 4), 4), np.uint32)
        self._few = block[: SIZE.small], random.integers(0, 2**32, (CHECKED_WEIGHTS, 4), np.uint32)
        self._checked = cuda.to_device(self._few[0]), cuda.to_device(self._few[1])
        self._sums = cuda.empty(self._blocks * BLOCK, np.uint32)
        self._timed = self._checked
        if timing.available():
            rest = int(max(WINDOWS) * set_aside + ANOTHER * self._l2_bytes) // 16 * 4
            self._timed = repeated(block.ravel(), 4 * groups), repeated(block.ravel(), rest)

    def _launch(self, way: Way, values: cuda.DeviceArray, weights: cuda.DeviceArray, blocks: int) -> Launch:
        """Return the launch that weighs the values, under the policy of `way` for the weights."""
        kernel = self._module[f"weigh<{str(way.evict_first).lower()}>"]
        sums = self._sums[: blocks * BLOCK]
        bound = kernel[blocks, BLOCK, 0, self._stream].bind(values, weights, sums, values.size // 4, weights.size // 4)
        hit = way.hit
        if not hit:
            return bound

        def with_policy() -> None:
            with self._stream.access_policy(weights, hit_ratio=way.ratio, hit=hit):
                bound()

        return with_policy

    def variant(self, name: str, way: Way) -> Variant:
        """Return the weighing as a variant, with the share of hits in the model."""
        threads = CHECKED_BLOCKS * BLOCK
        return Variant(
            name=name,
            launch=self._launch(way, *self._checked, CHECKED_BLOCKS),
            output=self._sums[:threads],
            expected=reference(*self._few, threads),
            timed=self.whole(way),
            amount=2 * self._timed[0].nbytes,
            columns={HITS: Model(self._l2_bytes, self._set_aside).weigh(way.size * self._set_aside, way)},
        )

    def whole(self, way: Way) -> Launch:
        """Return the launch that weighs all values, with weights of the size of `way`."""
        values, weights = self._timed
        if timing.available():
            weights = weights[: int(way.size * self._set_aside) // 16 * 4]
        return self._launch(way, values, weights, self._blocks)

    def another(self, name: str, before: Sequence[Way]) -> Variant:
        """Return the variant that reads another array over and over; `before` has the weighings before it."""
        model = Model(self._l2_bytes, self._set_aside)
        for way in before:
            model.weigh(way.size * self._set_aside, way)
        nbytes = ANOTHER * self._l2_bytes
        _, weights = self._checked
        values, array = self._timed
        reads, few = values.size // 4, self._few[1].sum(axis=1, dtype=np.uint32)
        threads, kernel = CHECKED_BLOCKS * BLOCK, self._module["add_up"]
        if timing.available():
            array = array[-(int(nbytes) // 16 * 4) :]
        return Variant(
            name=name,
            launch=kernel[CHECKED_BLOCKS, BLOCK].bind(weights, self._sums, SIZE.small, CHECKED_WEIGHTS),
            output=self._sums[:threads],
            expected=by_thread(np.resize(few, SIZE.small), threads),
            timed=kernel[self._blocks, BLOCK].bind(array, self._sums, reads, array.size // 4),
            amount=16 * reads,
            columns={HITS: model.add_up(nbytes)},
        )


def run(device: cuda.Device, size: int) -> Result:
    """Check every policy on a few values, time it on many, and draw curves over the size of the weights."""
    limit = read_limit(device)
    notes = list(NOTES)
    with set_aside(device) as reserved:
        whole = reserved or device.properties.l2_cache_size // 2
        weighing = Weighing(device, size, whole)

        def rows(ways: Mapping[str, Way], *, quick: bool = False) -> list[Row]:
            """Measure ways one by one, since persisting lines would take space from the next one."""
            measured: list[Row] = []
            for name, way in ways.items():
                if reserved or not way.hit:
                    measured += measure([weighing.variant(name, way)], limit, quick=quick)
                    device.reset_persisting_l2()
            return measured

        weighed = rows(WAYS)
        tables = (
            {"Another array, read over and over after the weights": read_after(device, weighing, limit)}
            if reserved
            else {}
        )
        curves = {
            line: rows({f"{line} {size}": way(size) for size in WINDOWS}, quick=True) for line, way in LINES.items()
        }
    if not reserved:
        notes.append("This device sets nothing aside in L2, so nothing can persist. An H200 can set aside 37.5 MiB.")
    megabytes = [size * whole / 2**20 for size in WINDOWS]

    def curve(name: str, column: str, y: str, limit: Limit | None = None) -> Curve:
        lines = {line: points(megabytes, measured, column) for line, measured in curves.items() if measured}
        return Curve(name, "MiB of weights", y, lines, line=limit)

    pictures = [curve("model", HITS, "share of reads that hit, in a model")]
    if timing.available():
        pictures.append(curve("window", limit.unit, limit.unit, limit))
    return Result(weighed, limit, pictures=pictures, notes=notes, tables=tables)


def read_after(device: cuda.Device, weighing: Weighing, limit: Limit) -> list[Row]:
    """Return rows for another array, read while nothing persists, while the weights persist, and afterwards."""
    persisting, normal = WAYS["policy: persisting"], Way(FITS, "normal")
    befores = {
        "nothing persists": [],
        "the weights persist": [persisting],
        "weights read as normal": [persisting, normal],
        "after a reset": [],
    }
    rows = []
    for name, before in befores.items():
        if not before:
            device.reset_persisting_l2()
        for way in before:
            weighing.whole(way)()
        device.synchronize()
        rows += measure([weighing.another(name, before)], limit)
    return rows


@contextmanager
def set_aside(device: cuda.Device) -> Iterator[int]:
    """Set aside as much of L2 as the device allows, yield its size in bytes, and restore the old size at the end."""
    before = device.limits.persisting_l2_cache_size
    device.limits.persisting_l2_cache_size = device.properties.max_persisting_l2_cache_size
    try:
        yield device.limits.persisting_l2_cache_size
    finally:
        device.reset_persisting_l2()
        device.limits.persisting_l2_cache_size = before
