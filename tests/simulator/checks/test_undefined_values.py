"""Machine code follows undefined values: it reports the same uses as NumPy, and runs kernels that ignore the values."""

from typing import Any

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.program import program_of
from cudart_py.simulator.ptx.windows import RESERVED_SHARED
from cudart_py.simulator.state.memory.records.shadow import ShadowMemory
from tests.simulator.checks.reports import of_both, watched
from tests.simulator.ptx.machine import HEAD, Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

# Lanes 0 to 15 have the predicate %low. In the other lanes, %x has no value when {body} begins.
KERNEL = """.visible .entry k(.param .u64 out, .param .u64 in) {{
    .reg .b32 %x, %y, %z, %lane; .reg .b64 %o, %i, %a; .reg .pred %low, %q;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %o, [out];
    ld.param.u64 %i, [in];
    mov.u32 %lane, %tid.x;
    setp.lt.u32 %low, %lane, 16;
    mul.wide.u32 %a, %lane, 4;
    add.u64 %o, %o, %a;
    add.u64 %i, %i, %a;
    mov.u32 %y, s;
    mad.lo.u32 %z, %lane, 4, %y;
    {source}
    {body}
    ret;
}}
"""
# Each gives %x a value in the lower lanes only: the others never write it, load what nothing has written, or shuffle
# from lanes that have ended.
SOURCES = {
    "register": "@!%low bra NOWHERE; add.u32 %x, %lane, 7; NOWHERE:",
    "global": "ld.global.u32 %x, [%i];",
    "shared": "@%low st.shared.u32 [%z], %z; ld.shared.u32 %x, [%z];",
    "shuffle": "setp.ge.u32 %q, %lane, 24; @%q exit; shfl.sync.down.b32 %x, %lane, 8, 31, 0xffffffff;",
}
# Nothing depends on the value of the upper lanes.
IGNORED = {
    "moved": "mov.u32 %y, %x; @%low st.global.u32 [%o], %y;",
    "added": "add.u32 %y, %x, %lane; mul.lo.u32 %y, %y, 3; @%low st.global.u32 [%o], %y;",
    "selected": "selp.u32 %y, %x, %lane, %low; st.global.u32 [%o], %y;",
    "replaced": "@!%low mov.u32 %x, 5; st.global.u32 [%o], %x;",
    "kept in shared memory": "st.shared.u32 [%z+128], %x; ld.shared.u32 %y, [%z+128]; @%low st.global.u32 [%o], %y;",
    "shuffled": "shfl.sync.down.b32 %y, %x, 16, 31, 0xffffffff; @%low st.global.u32 [%o], %lane;",
}
# No lane writes the register.
NOWHERE = SOURCES | {"register": ""}
USED = {
    "stored": ("mov.u32 %y, %x; st.global.u32 [%o], %y;", "a store"),
    "stored twice": ("st.shared.u32 [%z+128], %x; ld.shared.u32 %y, [%z+128]; st.global.u32 [%o], %y;", "a store"),
    "compared": ("setp.gt.u32 %q, %x, 3; @%q st.global.u32 [%o], %lane;", "a branch"),
    "an address": ("mul.wide.u32 %a, %x, 0; add.u64 %a, %o, %a; st.global.u32 [%a], %lane;", "an address"),
    "added atomically": ("red.global.add.u32 [%o], %x;", "an atomic operation"),
}


def kernels_for(source: str, body: str) -> tuple[Kernels, int]:
    """Return the kernel, and an array of 32 elements of which the first 16 are written."""
    kernels = Kernels(load_module(HEAD + KERNEL.format(source=source, body=body)))
    words = kernels.put(np.random.default_rng().integers(1, 100, 32, np.uint32))
    shadow = kernels.memory.shadows[words] = ShadowMemory(words, 128, False)
    shadow.fill(words, 64)
    return kernels, words


def doubts(kernels: Kernels) -> list[int]:
    """Return how many launches each form of the kernel has left to NumPy."""
    known: dict[Any, Any] = program_of(kernels.module.entries["k"]).native
    return [kernel.recorded.doubts for kernel in known.values()]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", IGNORED)
def test_a_kernel_that_ignores_undefined_values_runs_in_machine_code(source, how):
    kernels, words = kernels_for(SOURCES[source], IGNORED[how])
    assert of_both(kernels, "k", 1, 32, np.zeros(32, np.uint32), words) == []
    assert not any(doubts(kernels))
    before = len(doubts(kernels))
    assert watched(kernels, "native", "k", 1, 32, kernels.zeros(32), words) == []
    assert len(doubts(kernels)) == before == (1 if source == "register" and how != "kept in shared memory" else 2)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", USED)
def test_both_engines_report_the_use_of_an_undefined_value_alike(source, how):
    body, use = USED[how]
    kernels, words = kernels_for(NOWHERE[source], body)
    (text,) = of_both(kernels, "k", 1, 32, np.zeros(32, np.uint32), words)
    assert f"uninitialised value reaches {use}" in text
    assert any(doubts(kernels))


SIDES = """
    setp.lt.u32 %q, %lane, {limit};
    @%q bra LEFT;
    shfl.sync.bfly.b32 %y, %lane, 5, 31, 0xffffffff;
    bra END;
    LEFT: shfl.sync.bfly.b32 %y, %z, 5, 31, 0xffffffff;
    END: st.global.u32 [%o], %y;
"""


@pytest.mark.parametrize("limit", [0, 16, 32])
def test_a_shuffle_on_both_sides_of_a_branch_is_left_to_numpy_only_if_lanes_diverge(limit):
    kernels, words = kernels_for("", SIDES.format(limit=limit))
    out = kernels.zeros(32)
    assert watched(kernels, "native", "k", 1, 32, out, words) == []
    lanes = np.arange(32, dtype=np.uint32)
    expected = np.where(lanes < limit, RESERVED_SHARED + 4 * lanes, lanes)[lanes ^ 5]
    np.testing.assert_array_equal(kernels.get(out, 32, np.uint32), expected)
    assert doubts(kernels) == [limit == 16]
