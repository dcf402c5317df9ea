"""Vectors of eight elements are loaded, moved and stored, as PTX for newer devices does."""

import numpy as np
import pytest

from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import HEAD, Kernels


@pytest.mark.parametrize(("kind", "count"), [("b32", 8), ("f32", 8), ("u8", 8), ("b64", 4)])
def test_eight_elements_at_a_time(engine, kind, count):
    size = int(kind[1:]) // 8
    one, other = (", ".join(f"{letter}{n}" for n in range(count)) for letter in "ab")
    register = {"u8": "b16"}.get(kind, kind)
    moves = f"mov.v8.{kind} {{{other}}}, {{{one}}};" if kind != "u8" else "".join(
        f"mov.b16 b{n}, a{n};" for n in range(count)
    )  # fmt: skip  # one expression
    if count == 4:
        moves = moves.replace("v8", "v4")
    text = f""".visible .entry k(.param .u64 to, .param .u64 from) {{
        .reg .{register} a<{count}>, b<{count}>; .reg .b64 out, in; .reg .b32 t;
        ld.param.u64 out, [to]; ld.param.u64 in, [from]; mov.u32 t, %tid.x;
        mad.wide.u32 out, t, {size * count}, out; mad.wide.u32 in, t, {size * count}, in;
        ld.global.v{count}.{kind} {{{one}}}, [in]; {moves} st.global.v{count}.{kind} [out], {{{other}}};
    }}"""
    kernels = Kernels(load_module(HEAD + text), engine=engine)
    given = np.random.default_rng().integers(0, 256, 40 * size * count, np.uint8)
    out = kernels.zeros(len(given), np.uint8)
    kernels.launch("k", 1, 40, out, kernels.put(given))
    np.testing.assert_array_equal(kernels.get(out, len(given), np.uint8), given)
    assert engine == "numpy" or kernels.ran_natively("k")
