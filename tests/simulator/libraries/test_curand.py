"""The simulated cuRAND: when its numbers are written, and its errors."""

import ctypes
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from nvmath.bindings import curand as bindings

import cudart_py as cuda
from cudart_py.simulator import driver
from cudart_py.simulator.libraries import curand, host_curand
from tests.simulator.support import Status, ok, upload

pytestmark = pytest.mark.skipif(not host_curand.is_installed(), reason="cuRAND is not installed (the extra cpu)")

COUNT = 1001
PHILOX = bindings.RngType.PSEUDO_PHILOX4_32_10


@pytest.fixture
def generator(context: Any) -> Iterator[int]:
    made = curand.create_generator(PHILOX)
    yield made
    curand.destroy_generator(made)


def zeros() -> int:
    return upload(np.zeros(COUNT, np.uint32))


def now(address: int) -> np.ndarray[Any, Any]:
    """Return the current contents of device memory, without synchronizing."""
    return np.frombuffer(ctypes.string_at(address, 4 * COUNT), np.uint32)


def new_stream() -> int:
    return int(ok(driver.cuStreamCreate(1)))


def sequence(count: int) -> np.ndarray[Any, Any]:
    """Return the first `count` numbers of Philox, drawn by a host generator."""
    out = np.empty(count, np.uint32)
    made = curand.create_generator_host(PHILOX)
    curand.generate(made, out.ctypes.data, count)
    curand.destroy_generator(made)
    return out


def test_parameters_are_those_of_nvmath() -> None:
    names = [name for name in curand.__all__ if inspect.isfunction(getattr(curand, name))]
    listed = {name: getattr(bindings, name).__doc__.splitlines()[0] for name in names}
    theirs = {name: line.partition("(")[2].rpartition(")")[0].split(",") for name, line in listed.items()}
    ours = {name: list(inspect.signature(getattr(curand, name)).parameters) for name in names}
    assert ours == {name: [each.split()[-1] for each in listed if each] for name, listed in theirs.items()}


def test_calls_continue_one_sequence_and_are_written_when_their_streams_get_there(context: Any) -> None:
    """The numbers are written even if the generator has been destroyed in the meantime."""
    made = curand.create_generator(PHILOX)
    streams, addresses = (new_stream(), new_stream()), (zeros(), zeros())
    for stream, address in zip(streams, addresses, strict=True):
        curand.set_stream(made, stream)
        curand.generate(made, address, COUNT)
        assert not now(address).any()
    curand.destroy_generator(made)
    for stream in reversed(streams):
        ok(driver.cuStreamSynchronize(stream))
    assert np.array_equal(np.concatenate([now(address) for address in addresses]), sequence(2 * COUNT))


def test_numbers_beyond_the_end_of_an_allocation_are_a_fault(generator: int) -> None:
    curand.generate(generator, zeros(), 100_000)
    assert driver.cuCtxSynchronize()[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS


def test_a_graph_continues_the_sequence_of_a_generator_until_that_is_destroyed(context: Any) -> None:
    address, stream = zeros(), new_stream()
    made = curand.create_generator(PHILOX)
    curand.set_stream(made, stream)
    ok(driver.cuStreamBeginCapture(stream, 0))
    curand.generate(made, address, COUNT)
    executable = ok(driver.cuGraphInstantiate(ok(driver.cuStreamEndCapture(stream)), 0))
    ok(driver.cuCtxSynchronize())
    assert not now(address).any()
    found = []
    for _ in range(3):
        ok(driver.cuGraphLaunch(executable, stream))
        ok(driver.cuStreamSynchronize(stream))
        found.append(now(address))
    assert np.array_equal(np.concatenate(found), sequence(3 * COUNT))
    curand.destroy_generator(made)
    ok(driver.cuGraphLaunch(executable, stream))
    assert driver.cuStreamSynchronize(stream)[0] == Status.CUDA_ERROR_ILLEGAL_ADDRESS
    assert "curandGenerate: the generator was destroyed" in (driver.take_report() or "")


def test_numbers_that_meet_a_copy_of_another_stream_are_a_race(generator: int) -> None:
    address, host = zeros(), np.empty(COUNT, np.uint32)
    curand.set_stream(generator, new_stream())
    curand.generate(generator, address, COUNT)
    ok(driver.cuMemcpyDtoHAsync(host.ctypes.data, address, host.nbytes, new_stream()))
    with pytest.warns(
        cuda.errors.SimulatorWarning, match="race: curandGenerate writes .* a copy in another stream read"
    ):
        ok(driver.cuCtxSynchronize())


def test_without_the_library_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_curand, "_library", lambda: None)
    with pytest.raises(cuda.errors.NotSupportedError, match=r"curandCreateGeneratorHost: .* 'cudart-py\[cpu\]"):
        curand.create_generator(PHILOX)
