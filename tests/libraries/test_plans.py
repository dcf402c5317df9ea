"""Plans: products and transforms that are recorded once and replayed many times."""

import gc
import inspect
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.libraries.handles import library_handle

sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed (the extra cpu)")

pytestmark = pytest.mark.needs("libraries")


@pytest.fixture
def operands(device, numbers):
    """Return a function that makes three matrices."""
    return lambda stream=None: [cuda.to_device(host, stream=stream) for host in numbers((3, 8, 8))]


def test_a_plan_queues_what_the_function_computes_of_what_the_operands_hold_by_then(device, record, numbers):
    calls = record("cublas", "gemm_ex")
    a, b, c = numbers((5, 7)), numbers((3, 7)), numbers((5, 3))
    arrays = [cuda.to_device(x) for x in (a, b, c)]
    plan = libraries.gemm.plan(arrays[0], arrays[1], out=arrays[2], alpha=2.0, beta=3.0, op_b="T")
    assert np.array_equal(arrays[2].to_host(), c)
    for _ in range(3):
        arrays[0].copy_from(a)
        assert plan() is arrays[2]
        c = 2 * a @ b.T + 3 * c
        assert np.allclose(arrays[2].to_host(), c)
        a = numbers((5, 7))
    assert len(calls) == 1


def test_planning_in_a_stream_leaves_the_handle_there(device, operands):
    with cuda.Stream(non_blocking=True) as stream:
        a, b, out = operands(stream)
        libraries.gemm(a, b, out, stream=stream)
        handle = library_handle("cublas", stream, device)
        workspace = handle.workspace
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        assert handle.bound == stream.handle
        assert handle.workspace is workspace
        a.copy_from(b, stream=stream)
        plan()
        host = b.to_host(stream=stream)
        assert np.allclose(out.to_host(stream=stream), host @ host)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_closed_operand_is_named_at_the_next_call(operands, position):
    arrays = operands()
    plan = libraries.gemm.plan(*arrays)
    plan()
    arrays[position].close()
    with pytest.raises(ValueError, match=f"argument {position} of gemm: the array is closed"):
        plan()


def test_a_plan_keeps_its_operands_and_outlives_what_release_gives_back_in_any_thread(operands):
    a, b, _ = operands()
    expected = a.to_host() @ b.to_host()
    plan = libraries.gemm.plan(a, b)
    del a, b
    gc.collect()
    libraries.release()
    with ThreadPoolExecutor(1) as threads:
        assert np.allclose(threads.submit(plan).result().to_host(), expected)


def test_a_closed_plan_lets_its_memory_go_and_is_refused(device, operands):
    libraries.release()
    device.synchronize()
    before = cuda.MemoryPool.current(device).used
    with libraries.gemm.plan(*operands()) as plan:
        plan()
    plan.close()
    assert plan.closed
    with pytest.raises(ValueError, match="this plan of gemm is closed"):
        plan()
    libraries.release()
    seen = weakref.ref(plan)
    del plan
    gc.collect()
    device.synchronize()
    assert seen() is None
    assert cuda.MemoryPool.current(device).used == before


def test_a_plan_that_is_called_in_a_capture_becomes_part_of_the_graph(operands, numbers):
    with cuda.Stream() as stream:
        a, b, out = operands(stream)
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        with stream.capture() as graph:
            plan()
        host = numbers((8, 8))
        a.copy_from(host, stream=stream)
        graph.instantiate().launch(stream)
        assert np.allclose(out.to_host(stream=stream), host @ b.to_host(stream=stream))


def test_an_access_policy_holds_in_a_planned_call(record, operands):
    """The call is recorded in a stream with the same policy, once for each policy."""
    calls = record("cublas", "gemm_ex")
    with cuda.Stream() as stream:
        a, b, out = operands(stream)
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        for _ in range(3):
            plan()
            with stream.access_policy(a, hit_ratio=0.5):
                plan()
        assert len(calls) == 2
        assert np.allclose(out.to_host(stream=stream), a.to_host(stream=stream) @ b.to_host(stream=stream))


def test_a_planned_sparse_product_finds_the_places_of_its_elements_once(device, record, rng):
    """Elements that cancel out have places too."""
    first, second = (np.where(rng.random(shape) < 0.3, rng.standard_normal(shape), 0) for shape in ((9, 7), (7, 8)))
    a, b = (libraries.SparseMatrix.from_host(sparse.csr_array(host)) for host in (first, second))
    calls = record("cusparse", "sp_gemm_reuse_nnz")
    plan = libraries.spgemm.plan(a, b, alpha=2.0)
    for factor in (1.0, -3.0):
        a.values.copy_from(factor * first[first != 0])
        found = plan()
        assert found is plan.result
        assert np.allclose(found.to_host().toarray(), 2 * factor * first @ second)
        assert found.count == np.count_nonzero((first != 0).astype(int) @ (second != 0))
    assert len(calls) == 2  # one for the sizes of the buffers
    nothing = libraries.SparseMatrix.from_host(sparse.csr_array((8, 5)))
    assert libraries.spgemm.plan(b, nothing)().to_host().nnz == 0
    a.values.close()
    with pytest.raises(ValueError, match="of spgemm: the array is closed"):
        plan()


@pytest.mark.parametrize("name", ["gemm", "fft", "ifft", "rfft", "irfft", "spgemm"])
def test_a_plan_takes_the_arguments_of_its_function(name):
    function = getattr(libraries, name)
    assert inspect.signature(function).parameters == inspect.signature(function.plan).parameters


def test_an_argument_that_the_function_does_not_have_is_refused_by_the_plan(device):
    with pytest.raises(TypeError, match=r"^fft\.plan\(\) got an unexpected keyword argument 'length'"):
        libraries.fft.plan(cuda.zeros(4, complex), length=4)
    with pytest.raises(TypeError, match=r"^gemm\.plan\(\) missing a required argument: 'b'"):
        libraries.gemm.plan(cuda.zeros((4, 4)))


@pytest.mark.parametrize(("name", "axes"), [("fft", -1), ("ifft", -1), ("rfft", (0, 1))])
def test_planned_transforms_are_the_direct_ones_of_what_the_operand_holds_by_then(device, numbers, name, axes):
    function, dtype = getattr(libraries, name), float if name == "rfft" else complex
    x = cuda.to_device(numbers((3, 9), dtype))
    plan = function.plan(x, axes=axes)
    for _ in range(2):
        x.copy_from(numbers((3, 9), dtype))
        assert plan() is plan.result
        assert np.array_equal(plan.result.to_host(), function(x, axes=axes).to_host())
    x.close()
    with pytest.raises(ValueError, match=f"argument 0 of {name}: the array is closed"):
        plan()


def test_a_planned_irfft_leaves_its_operand_alone_at_each_call(device, record, numbers):
    calls = record("cufft", "exec_z2d")
    host = np.fft.rfft2(numbers((4, 6)))
    spectrum = cuda.to_device(host)
    plan = libraries.irfft.plan(spectrum, axes=(0, 1))
    for _ in range(2):
        assert np.allclose(plan().to_host(), np.fft.irfft2(host))
    assert [source == spectrum.pointer for _, (_, source, _) in calls] == [False]


def test_direct_transforms_do_not_disturb_a_planned_one(device, numbers):
    with cuda.Stream() as stream:
        x = cuda.to_device(numbers((2, 8), complex), stream=stream)
        plan = libraries.fft.plan(x, stream=stream)
        stream.synchronize()
        libraries.fft(x)
        libraries.release()
        assert np.allclose(plan().to_host(stream=stream), np.fft.fft(x.to_host(stream=stream)))


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_a_planned_transform_takes_other_operands_of_the_same_layout(device, record, numbers, name):
    function, dtype = getattr(libraries, name), float if name == "rfft" else complex
    created = record("cufft", "create")
    x = cuda.to_device(numbers((3, 9), dtype))
    plan = function.plan(x)
    others = [cuda.to_device(numbers((3, 9), dtype)) for _ in range(2)]
    out = cuda.empty(plan.result.shape, plan.result.dtype)
    before = plan().to_host()
    assert plan(others[0], out) is out
    assert np.array_equal(plan.result.to_host(), before)
    assert plan(others[1]) is plan.result
    assert np.array_equal(plan().to_host(), before)
    assert len(created) == 1
    assert np.array_equal(out.to_host(), function(others[0]).to_host())


def test_other_operands_must_be_laid_out_as_the_plans_are(device):
    x = cuda.zeros((3, 8), complex)
    plan, in_place = libraries.fft.plan(x), libraries.fft.plan(x, x)
    y = cuda.full((3, 8), 1, complex)
    assert in_place(y) is y
    for operands, words in (
        ((cuda.zeros((3, 16), complex)[:, ::2],), r"'x' must have strides \(128, 16\), like the plan's"),
        ((cuda.zeros((3, 9), complex),), r"'x' must have shape \(3, 8\) like the plan's"),
        ((plan.result,), "'out' must not begin where 'x' does, like the plan's"),
        ((y, y), "'out' must not begin where 'x' does, like the plan's"),
    ):
        with pytest.raises(ValueError, match=rf"fft\.plan\(\): argument {words}"):
            plan(*operands)
    real = cuda.zeros(9)
    with pytest.raises(ValueError, match=r"rfft\.plan\(\): argument 'x' must begin at a multiple of 16 bytes, like"):
        libraries.rfft.plan(real[:8])(real[1:])
    with pytest.raises(ValueError, match="argument 'out' must begin where 'x' does, like the plan's"):
        in_place(x, y)
    plan.close()
    with pytest.raises(ValueError, match="this plan of fft is closed"):
        plan(y)
