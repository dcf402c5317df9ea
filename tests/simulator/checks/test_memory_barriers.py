"""An mbarrier orders the accesses before its own arrivals, and not accesses before another mbarrier's arrivals.

Mistakes with the bulk copies that arrive at an mbarrier are found too. Atomics with block scope are atomic only among
the threads of one block.
"""

import re
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx import Fault, load_module
from tests.planted.cases import compiled
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found, watched
from tests.simulator.ptx.machine import HEAD, Kernels

pytestmark = WRONG_ON_PURPOSE

SOURCE = FOLDER / "synchronisation.cu"
UNWAITED = r"fills by cp.async.bulk at .*, and no wait at the copy's barrier at 0x\w+ \(0 bytes into \w+::bar\)"
UNREAD = r"from which cp.async.bulk reads for block \(0, 0, 0\), thread \(0, 0, 0\)"
UNFENCED = r"which block \(0, 0, 0\), thread \(\d+, 0, 0\) wrote at .*, with no fence.proxy.async"
UNORDERED = "and nothing orders the two accesses"
READ, WRITTEN = (f"race: it {verb} 4 bytes of shared memory" for verb in ("reads", "writes"))
# The launch configuration of each kernel, and the report for each value of its parameter that makes a mistake.
KERNELS = {
    "ring": ((1, 128), {1: WRITTEN, 2: WRITTEN, 3: WRITTEN}),
    "next_phase": ((1, 64), {1: WRITTEN}),
    "chain": ((1, 128), {1: READ}),
    "named_between": ((1, 128), {}),
    "flag_between": ((1, 128), {}),
    "other_blocks": ((3, 64), {}),
    "fetched": ((1, 64), {1: UNWAITED, 2: UNWAITED}),
    "waited_by_one": ((1, 64), {1: UNWAITED}),
    "waited_elsewhere": ((1, 64), {1: UNWAITED}),
    "waited_by_one_warp": ((1, 64), {1: UNWAITED}),
    "refilled": ((1, 64), {1: UNORDERED}),
    "stored": ((1, 64), {1: UNFENCED, 2: UNORDERED, 4: UNREAD, 8: "and nothing orders that thread's wait"}),
    "fenced_by_the_copier": ((1, 64), {1: UNFENCED}),
    "fenced_by_a_third": ((1, 64), {1: UNFENCED, 2: UNFENCED}),
    "fenced_by_one_of_a_warp": ((1, 64), {1: UNFENCED}),
    "fenced_behind_a_wait": ((1, 64), {1: UNFENCED}),
    "fenced_for_the_cluster": ((1, 64), {1: UNFENCED}),
    "announced": ((1, 64), {1: UNORDERED}),
    "alternating": ((1, 64), {1: UNREAD}),
    "through": ((1, 64), {1: UNWAITED}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_put_in_order_is_no_mistake_and_all_else_is(name):
    shape, mistakes = KERNELS[name]
    given = cuda.to_device(np.arange(1, 1025, dtype=np.int32))
    launch = compiled(SOURCE)[name][shape]
    assert found(launch, cuda.zeros(1024, np.int32), given, 0) == []
    for wrong, text in mistakes.items():
        texts = found(launch, cuda.zeros(1024, np.int32), given, wrong)
        assert any(re.search(text, one) for one in texts), (wrong, texts)


WILD = """.visible .entry wild(.param .u64 address) {{
    .reg .b64 %rd<3>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [address];
    {instruction};
    ret;
}}
"""


@pytest.mark.parametrize(
    "instruction",
    [
        "mbarrier.init.shared.b64 [%rd1], 1",
        "mbarrier.init.b64 [%rd1], 1",
        "mbarrier.arrive.shared.b64 %rd2, [%rd1]",
        "cp.async.mbarrier.arrive.shared.b64 [%rd1]",
    ],
)
def test_a_barrier_at_a_wild_address_is_a_fault(instruction):
    kernels = Kernels(load_module(HEAD + WILD.format(instruction=instruction)))
    for address in (512, 0xFFF8, (1 << 31) - 8, (1 << 47) + (1 << 30), (1 << 63) - 8):
        with pytest.raises(Fault):
            watched(kernels, "numpy", "wild", 1, 32, address)


BLOCKS, THREADS = 4, 64
# The kernels with a mistake, and the correct ones.
WRONG, RIGHT = (
    re.findall(r"KERNEL\((\w+)\) \{", half)
    for half in (FOLDER / "scopes.cuh").read_text().split("// The same where it is right.")
)


def launches(kernel: Any, blocks: int = BLOCKS, times: int = 1) -> list[str]:
    x, y = cuda.zeros(64, np.int32), cuda.zeros(BLOCKS * THREADS, np.int32)
    return found(lambda: [kernel[blocks, THREADS](x, y) for _ in range(times)])


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_meet_in_a_block_scoped_atomic_race(name: str) -> None:
    texts = launches(compiled(SOURCE)[name])
    assert texts
    assert all("race: " in text and "block scope" in text for text in texts), texts
    # A single block does not race, and consecutive launches in a stream are ordered.
    assert launches(compiled(SOURCE)[name], blocks=1, times=2) == []


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("name", RIGHT)
def test_wider_scopes_and_words_of_one_block_are_no_race(name: str) -> None:
    assert launches(compiled(SOURCE)[name]) == []


@pytest.mark.usefixtures("engine")
def test_launches_of_two_streams_race_at_a_block_scoped_atomic() -> None:
    x, y = cuda.zeros(64, np.int32), cuda.zeros(THREADS, np.int32)
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]

    def launch(ordered: bool) -> None:
        for stream in streams:
            compiled(SOURCE)["own_words"][1, THREADS, 0, stream](x, y)
            if ordered:
                streams[1].wait(streams[0])

    cuda.current_device().synchronize()
    assert found(launch, True) == []
    (text,) = found(launch, False)
    assert "block scope" in text
    assert "in another stream" in text
