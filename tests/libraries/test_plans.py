"""Plans: products that are recorded once and queued again and again."""

from __future__ import annotations

import gc
import inspect
import threading
import weakref

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py import libraries
from cudart_py.libraries.handles import library_handle

pytestmark = pytest.mark.needs("libraries")


def operands(rng, stream=None):
    return [cuda.to_device(rng.standard_normal((8, 8)), stream=stream) for _ in range(3)]


def test_a_plan_computes_what_the_function_computes(device, rng):
    a, b, c = (rng.standard_normal(shape) for shape in ((5, 7), (3, 7), (5, 3)))
    arrays = [cuda.to_device(x) for x in (a, b, c)]
    plan = libraries.gemm.plan(arrays[0], arrays[1], out=arrays[2], alpha=2.0, beta=3.0, op_b="T")
    assert plan() is arrays[2]
    assert np.allclose(arrays[2].to_host(), 2 * a @ b.T + 3 * c)


def test_making_a_plan_queues_nothing(device, rng):
    a, b, out = operands(rng)
    before = out.to_host()
    libraries.gemm.plan(a, b, out)
    assert np.array_equal(out.to_host(), before)


def test_each_call_uses_what_the_operands_hold_by_then(device, rng):
    a, b, out = operands(rng)
    plan = libraries.gemm.plan(a, b, out)
    for factor in (1, 2, 3):
        host = factor * rng.standard_normal((8, 8))
        a.copy_from(host)
        assert np.allclose(plan().to_host(), host @ b.to_host())


def test_only_the_plan_calls_the_library(device, record, rng):
    calls = record("cublas", "gemm_ex")
    a, b, out = operands(rng)
    plan = libraries.gemm.plan(a, b, out)
    for _ in range(5):
        plan()
    assert len(calls) == 1


def test_a_product_that_comes_again_is_no_graph_by_itself(device, record, rng):
    calls = record("cublas", "gemm_ex")
    a, b, out = operands(rng)
    for _ in range(20):
        libraries.gemm(a, b, out)
    assert len(calls) == 20


def test_without_out_the_plan_makes_the_result(device, rng):
    a, b, _ = operands(rng)
    plan = libraries.gemm.plan(a, b)
    assert plan() is plan.result
    assert np.allclose(plan.result.to_host(), a.to_host() @ b.to_host())


def test_a_plan_is_queued_in_its_stream(device, rng):
    with cuda.Stream(non_blocking=True) as stream:
        a, b, out = operands(rng, stream)
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        stream.synchronize()
        plan()
        plan()
        assert np.allclose(out.to_host(stream=stream), a.to_host(stream=stream) @ b.to_host(stream=stream))


def test_planning_leaves_the_handle_in_its_stream(device, rng):
    with cuda.Stream() as stream:
        a, b, out = operands(rng, stream)
        libraries.gemm(a, b, out, stream=stream)
        handle = library_handle("cublas", stream, cuda.Device(0))
        workspace = handle.workspace
        libraries.gemm.plan(a, b, out, stream=stream)
        assert handle.bound == stream.handle
        assert handle.workspace is workspace
        stream.synchronize()


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_closed_operand_is_named_at_the_next_call(device, rng, position):
    arrays = operands(rng)
    plan = libraries.gemm.plan(*arrays)
    plan()
    arrays[position].close()
    with pytest.raises(ValueError, match=f"argument {position} of gemm: the array is closed"):
        plan()


def test_a_plan_keeps_its_operands_alive(device, rng):
    a, b, out = operands(rng)
    expected = a.to_host() @ b.to_host()
    plan = libraries.gemm.plan(a, b, out)
    del a, b, out
    gc.collect()
    assert np.allclose(plan().to_host(), expected)


def test_a_closed_plan_lets_its_memory_go(device, rng):
    libraries.release()
    device.synchronize()
    before = device.memory_pool.used
    with libraries.gemm.plan(*operands(rng)) as plan:
        plan()
    libraries.release()
    seen = weakref.ref(plan)
    del plan
    gc.collect()
    device.synchronize()
    assert seen() is None
    assert device.memory_pool.used == before


def test_a_closed_plan_is_refused(device, rng):
    plan = libraries.gemm.plan(*operands(rng))
    plan.close()
    plan.close()
    assert plan.closed
    with pytest.raises(ValueError, match="this plan of gemm is closed"):
        plan()


def test_a_plan_outlives_what_release_gives_back(device, rng):
    a, b, out = operands(rng)
    plan = libraries.gemm.plan(a, b, out)
    libraries.release()
    assert np.allclose(plan().to_host(), a.to_host() @ b.to_host())


def test_a_plan_is_called_from_any_thread(device, rng):
    a, b, out = operands(rng)
    plan = libraries.gemm.plan(a, b, out)
    thread = threading.Thread(target=plan)
    thread.start()
    thread.join()
    assert np.allclose(out.to_host(), a.to_host() @ b.to_host())


def test_a_plan_that_is_called_in_a_capture_becomes_part_of_the_graph(device, rng):
    with cuda.Stream() as stream:
        a, b, out = operands(rng, stream)
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        with stream.capture() as graph:
            plan()
        host = rng.standard_normal((8, 8))
        a.copy_from(host, stream=stream)
        graph.instantiate().launch(stream)
        assert np.allclose(out.to_host(stream=stream), host @ b.to_host(stream=stream))


def test_an_access_policy_holds_in_a_planned_call(device, record, rng):
    """The call is recorded in a stream with the same policy, once for each policy."""
    calls = record("cublas", "gemm_ex")
    with cuda.Stream() as stream:
        a, b, out = operands(rng, stream)
        plan = libraries.gemm.plan(a, b, out, stream=stream)
        for _ in range(3):
            plan()
            with stream.access_policy(a, hit_ratio=0.5):
                plan()
        assert len(calls) == 2
        assert np.allclose(out.to_host(stream=stream), a.to_host(stream=stream) @ b.to_host(stream=stream))


def test_what_is_wrong_is_named_when_the_plan_is_made(device):
    a = cuda.zeros((4, 4))
    with pytest.raises(ValueError, match="out overlaps a"):
        libraries.gemm.plan(a, a, a)
    with pytest.raises(TypeError, match="alpha must be a number, not NoneType"):
        libraries.gemm.plan(a, a, alpha=None)


def test_the_plan_takes_the_arguments_of_the_function():
    ours, planned = inspect.signature(libraries.gemm), inspect.signature(libraries.gemm.plan)
    assert ours.parameters == planned.parameters


@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_planned_transforms_are_the_direct_ones(device, rng, name):
    function = getattr(libraries, name)
    x = cuda.to_device(rng.standard_normal((3, 8)) + 1j * rng.standard_normal((3, 8)))
    plan = function.plan(x)
    for _ in range(2):
        assert np.array_equal(plan().to_host(), function(x).to_host())


def test_a_planned_transform_uses_what_the_operand_holds_by_then(device, rng):
    x = cuda.to_device(rng.standard_normal((3, 9)))
    plan = libraries.rfft.plan(x, axes=(0, 1))
    host = rng.standard_normal((3, 9))
    x.copy_from(host)
    assert np.allclose(plan().to_host(), np.fft.rfft2(host))


def test_a_planned_irfft_leaves_its_operand_alone_at_each_call(device, record, rng):
    calls = record("cufft", "exec_z2d")
    host = np.fft.rfft2(rng.standard_normal((4, 6)))
    spectrum = cuda.to_device(host)
    plan = libraries.irfft.plan(spectrum, axes=(0, 1))
    for _ in range(2):
        assert np.allclose(plan().to_host(), 24 * np.fft.irfft2(host))
    assert [source == spectrum.pointer for _, (_, source, _) in calls] == [False]


def test_direct_transforms_do_not_disturb_a_planned_one(device, rng):
    with cuda.Stream() as stream:
        x = cuda.to_device(rng.standard_normal((2, 8)) + 0j, stream=stream)
        plan = libraries.fft.plan(x, stream=stream)
        stream.synchronize()
        libraries.fft(x)
        libraries.release()
        assert np.allclose(plan().to_host(stream=stream), np.fft.fft(x.to_host(stream=stream)))


def test_a_closed_operand_of_a_planned_transform_is_named(device):
    x = cuda.zeros((2, 8), np.complex64)
    plan = libraries.fft.plan(x)
    x.close()
    with pytest.raises(ValueError, match="argument 0 of fft: the array is closed"):
        plan()


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_plans_of_transforms_take_the_arguments_of_their_functions(name):
    function = getattr(libraries, name)
    assert inspect.signature(function).parameters == inspect.signature(function.plan).parameters
