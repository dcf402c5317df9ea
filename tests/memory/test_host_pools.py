"""Pools of pinned and managed memory: arrays of both come from them, and their memory returns to them."""

import gc

import numpy as np
import pytest

import cudart_py as cuda

KINDS = ["pinned", "managed"]
MAKERS = {"pinned": cuda.pinned_empty, "managed": cuda.managed_empty}
OTHERS = [(kind, other) for kind in ("device", *KINDS) for other in ("device", *KINDS) if kind != other]


def make(pool, shape, dtype=np.float32):
    return MAKERS[pool.kind](shape, dtype, pool=pool)


@pytest.fixture(params=KINDS)
def pool(request, device):
    with cuda.MemoryPool(kind=request.param) as made:
        yield made


def test_the_host_and_kernels_share_its_arrays(pool, module, rng):
    values = rng.random((5, 7)).astype(np.float32)
    x, y = make(pool, (5, 7)), make(pool, (5, 7))
    x[...], y[...] = values, 1
    module["saxpy"][1, 64](2.0, x, y, 35)
    cuda.current_device().synchronize()
    assert np.array_equal(y, 2 * values + 1)
    assert int(cuda.device_pointer(x)) == x.ctypes.data


def test_copies_from_and_to_its_arrays_take_the_pinned_path(pool, stream, rng):
    x, back = make(pool, 1001), make(pool, 1001)
    x[:] = rng.random(1001)
    back[:] = -1
    device_array = cuda.to_device(x, stream=stream)
    device_array.to_host(back, stream=stream)
    stream.synchronize()
    assert np.array_equal(back, x)


def test_its_memory_is_counted_and_returns_with_the_last_array(pool):
    x = make(pool, 1 << 18)
    view = x[3:]
    assert pool.used >= x.nbytes
    del x
    assert pool.used
    del view
    gc.collect()
    assert pool.used == 0
    assert pool.reserved
    pool.trim()
    assert pool.reserved == 0


def test_an_array_outlives_its_pool(pool, rng):
    values = rng.random(99).astype(np.float32)
    x = make(pool, 99)
    x[:] = values
    pool.close()
    assert np.array_equal(cuda.to_device(x).to_host(), values)
    with pytest.raises(ValueError, match="argument 'pool' must be open"):
        make(pool, 3)


def test_an_array_that_is_dropped_in_a_capture_is_freed_at_its_end(pool, stream):
    x = make(pool, 1 << 18)
    with stream.capture() as graph:
        del x
    assert not graph.nodes
    assert pool.used == 0


def test_an_empty_array_takes_nothing(pool):
    assert make(pool, (0, 3)).shape == (0, 3)
    assert pool.used == 0


def test_it_says_what_it_holds(pool):
    assert repr(pool).startswith(f"<MemoryPool of {pool.kind} memory, ")
    with pytest.raises(ValueError, match=f"make_current: only a pool of device memory .* {pool.kind} memory"):
        pool.make_current()


@pytest.mark.parametrize(("kind", "other"), OTHERS)
def test_memory_of_another_kind_is_refused(device, kind, other):
    makers = {"device": cuda.empty, **MAKERS}
    with cuda.MemoryPool(kind=kind) as pool:
        rule = rf"argument 'pool' must hold {other} memory, not {kind} memory; make it with MemoryPool\(kind='{other}'"
        with pytest.raises(ValueError, match=rule):
            makers[other](3, pool=pool)


def test_managed_arrays_of_a_pool_are_prefetched(device):
    with cuda.MemoryPool(kind="managed") as pool:
        x = make(pool, 1 << 20)
        x[:] = 5
        cuda.prefetch(x, device)
        assert cuda.to_device(x).to_host()[-1] == 5
        assert cuda.pointer_attributes(x).kind == "managed"


def test_a_limit_holds_for_pinned_memory(device):
    with cuda.MemoryPool(kind="pinned", max_size=64 << 20) as pool:
        kept = make(pool, 32 << 20, np.uint8)
        with pytest.raises(cuda.OutOfMemoryError, match="67,108,864 bytes of pinned memory were requested; the pool"):
            make(pool, 64 << 20, np.uint8)
        assert kept.nbytes == 32 << 20


def test_what_a_pool_cannot_be_is_refused(device):
    with pytest.raises(
        ValueError, match="argument 'kind' must be one of 'device', 'pinned' or 'managed', not the str 'h"
    ):
        cuda.MemoryPool(kind="host")
    with pytest.raises(
        TypeError, match="argument 'kind' must be one of 'device', 'pinned' or 'managed', not the int 1"
    ):
        cuda.MemoryPool(kind=1)
    with pytest.raises(ValueError, match="argument 'max_size' must be 0 with kind='managed'"):
        cuda.MemoryPool(kind="managed", max_size=5)
    with cuda.MemoryPool(kind="pinned") as pool, pytest.raises(ValueError, match="'write_combined' must be False with"):
        cuda.pinned_empty(3, pool=pool, write_combined=True)


@pytest.mark.needs("reset")
@pytest.mark.parametrize("kind", KINDS)
def test_arrays_keep_their_contents_after_a_reset(python, kind):
    program = f"""
import numpy as np
import cudart_py as cuda

pool = cuda.MemoryPool(kind={kind!r})
x = cuda.{kind}_empty(1 << 20, np.float32, pool=pool)
x[:] = 3
cuda.reset()
print(x.sum() == 3 << 20, pool.closed)
del x
print(cuda.to_device(np.arange(3)).to_host())
"""
    assert python(program).stdout.splitlines() == ["True True", "[0 1 2]"]
