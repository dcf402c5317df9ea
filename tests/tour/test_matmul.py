import numpy as np
import pytest

import cudart_py as cuda
from library_tour import timing
from library_tour.course import matmul
from library_tour.device_code import load
from library_tour.stop import Limit
from tests.tour.outcomes import counted


@counted
def test_tiles_reduce_loads_from_global_memory_by_their_width_and_registers_reduce_wavefronts(rows):
    values = {name: row.values for name, row in rows.items()}
    for width in (8, 16):
        loads = values["one thread per element"]["loads"] / values[f"tiles of {width} x {width}"]["loads"]
        assert loads == pytest.approx(width, rel=0.05)
    wavefronts = [values[name]["wavefronts"] for name in ("tiles of 16 x 16", "4 x 4 per thread", "8 x 16, pipelined")]
    assert wavefronts[0] > 3 * wavefronts[1] > 6 * wavefronts[2]
    # Blocks that do not use their block index all do the same work.
    assert values["4 blocks, same elements"]["instructions"] == 4 * values["one block"]["instructions"]


@counted
@pytest.mark.usefixtures("numpy_engine")
def test_neighbouring_lanes_of_the_pipelined_kernel_share_each_address():
    """Six 16-byte loads per step take two wavefronts each, and the pipeline reads one step more than it uses."""
    operands = (cuda.zeros(shape, np.float32) for shape in ((128, 16), (16, 256), (128, 256)))
    with cuda.profile() as profiled:
        matmul.by_kernel(load("matmul"), matmul.WAYS["8 x 16, pipelined"])(*operands)()
        cuda.current_device().synchronize()
    metrics = profiled.launches[0].metrics
    # NVRTC's code varies slightly with the path of the source: it may load some elements twice.
    assert metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == pytest.approx(8 * 6 * 2 * 17, rel=0.05)
    assert metrics["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 0


@pytest.mark.usefixtures("numpy_engine")
@pytest.mark.parametrize("shape", [(129, 4, 17), (1, 516, 40), (300, 260, 1)])
def test_the_pipelined_kernel_takes_any_rows_and_inner_size(shape):
    rows, columns, inner = shape
    a, b = matmul.random_pair(rows, columns, inner)
    c = cuda.full((rows, columns), np.nan, np.float32)
    multiply = matmul.by_kernel(load("matmul"), matmul.WAYS["8 x 16, pipelined"])
    multiply(cuda.to_device(a), cuda.to_device(b), c)()
    np.testing.assert_allclose(c.to_host(), matmul.reference(a, b), rtol=0, atol=matmul.error_bound(a, b))


@pytest.mark.needs("sm_90a")  # which has wgmma
@pytest.mark.parametrize("shape", [(1, 8, 8), (129, 264, 72), (200, 256, 600)])
def test_the_kernel_for_tensor_cores_takes_any_rows_and_multiples_of_eight(device, shape):
    rows, columns, inner = shape
    a, b = (x.astype(np.float16) for x in matmul.random_pair(rows, columns, inner))
    c = cuda.full((rows, columns), np.nan, np.float32)
    matmul.by_hopper(cuda.to_device(a), cuda.to_device(b), c)()
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    allowed = 2 * matmul.error_bound(wide_a, wide_b)
    np.testing.assert_allclose(c.to_host(), matmul.reference(wide_a, wide_b), rtol=0, atol=allowed)


def test_a_slow_variant_is_left_out_of_the_largest_products(monkeypatch):
    for ms, sizes in ((10.0, [256, 512]), (20.0, [256])):
        monkeypatch.setattr(timing, "median_ms", lambda work, quick, ms=ms: ms)
        curve = matmul.rates({"a variant": lambda a, b, c: lambda: None}, 256, cuda.Device(0), Limit("none", "TFLOP/s"))
        assert [side for side, _ in curve.lines["a variant"]] == sizes
        assert list(matmul.last_rate(curve, "a variant")) == ["512 TFLOP/s"][: len(sizes) - 1]
