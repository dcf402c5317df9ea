"""Races of accesses through textures and surfaces, each with a correctly ordered counterpart.

The CUDA programming guide defines a fetch from a texture, or a load from a surface, only if its memory "has been
updated by a previous kernel call or memory copy, but not if it has been previously updated by the same thread or
another thread from the same kernel call". Other accesses follow the memory model.
"""

import itertools
import re
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from tests.planted.cases import marked
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found

pytestmark = [*WRONG_ON_PURPOSE, pytest.mark.usefixtures("engine")]

N = 64
KERNELS = FOLDER / "objects.cu"


class Objects:
    """The arguments of the kernels: memory with a texture, an array with a texture and a surface, and results."""

    def __init__(self) -> None:
        values = np.arange(N, dtype=np.float32).reshape(1, N)
        self.memory = cuda.empty_pitched((1, N), np.float32)
        cuda.memcpy2d(self.memory, values)
        self.array = cuda.textures.CudaArray((1, N), np.float32, surface=True).copy_from(values)
        self.surface = cuda.textures.Surface(self.array)
        self.textures = {
            (array, filter): cuda.textures.Texture(array, filter=filter)
            for array in (self.memory, self.array)
            for filter in ("point", "linear")
        }
        self.results = [cuda.zeros(N, np.float32) for _ in range(2)]
        cuda.current_device().synchronize()

    def launch(self, kernel: Any, blocks: int, stream: Any = None, result: int = 0) -> None:
        filter = "linear" if kernel.name == "filtered" else "point"
        direct, array = (self.textures[of, filter] for of in (self.memory, self.array))
        out = self.results[result]
        kernel[blocks, N // blocks, 0, stream](direct, self.memory, array, self.surface, out, N)


MISTAKES = {
    "next": (2, "writes .*, which block .* read at"),
    "read_then_write": (2, "writes .*, which block .* read at"),
    "write_then_read": (1, "reads .*, which block .* wrote at .* defined only for memory"),
    "own_written": (1, "reads .*, which block .* wrote at .* defined only for memory"),
    "filtered": (1, "writes .*, which block .* read at"),
    "next_pixel": (1, "writes .*, which block .* read at"),
    "same_pixel": (2, "writes .*, which block .* wrote at"),
    "written_pixel": (1, "reads .*, which block .* wrote at .* defined only for memory"),
    "pixel_and_texel": (1, "reads .*, which block .* wrote at .* defined only for memory"),
}
CORRECT = {"own": 2, "read_then_write": 1, "own_pixel": 2, "outside": 2}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found_at_its_line(kernels: Any, name: str) -> None:
    blocks, text = MISTAKES[name]
    found_texts = found(Objects().launch, kernels[name], blocks)
    lines = set()
    for report in found_texts:
        match = re.match(
            r"kernel \w+(?: \(in \w+\))? at \S+objects\.cu:(\d+)(?: \(inlined from \S+\))?: race: it (.*)", report
        )
        assert match, report
        assert re.match(text, match[2]), report
        lines.add(int(match[1]))
    assert lines & marked(KERNELS)[name], found_texts


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_kernel_has_no_findings(kernels: Any, name: str) -> None:
    assert found(Objects().launch, kernels[name], CORRECT[name]) == []


@pytest.mark.parametrize("engine", ["native"], indirect=True)
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_kernel_runs_in_machine_code(kernels: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    objects = Objects()
    monkeypatch.setattr("cudart_py.simulator.ptx.running.runs._run_chunks", None)
    assert found(objects.launch, kernels[name], CORRECT[name]) == []


# The kernels that use one memory, and whether they write it.
IN_STREAMS = {
    "memory": {"read_texels": False, "write_elements": True, "own": True},
    "array": {"read_array": False, "read_pixels": False, "write_pixels": True, "own_pixel": True},
}


def races(first: Any, second: Any, *, ordered: bool) -> list[str]:
    """Return the reports of two launches in two streams."""
    one, two = (cuda.Stream(non_blocking=True) for _ in range(2))
    objects = Objects()

    def work() -> None:
        objects.launch(first, 1, one, 0)
        if ordered:
            two.wait(one)
        objects.launch(second, 1, two, 1)

    return found(work)


@pytest.mark.parametrize("memory", IN_STREAMS)
def test_accesses_in_two_streams_race_unless_they_are_ordered(kernels: Any, memory: str) -> None:
    for (first, writes), (second, writes_too) in itertools.product(IN_STREAMS[memory].items(), repeat=2):
        if first == second == f"write_{'elements' if memory == 'memory' else 'pixels'}":
            continue  # storing the value that is already there is not a race
        texts = races(kernels[first], kernels[second], ordered=False)
        assert bool(texts) is (writes or writes_too), (first, second, texts)
        assert all("in another stream" in text for text in texts)
        assert races(kernels[first], kernels[second], ordered=True) == [], (first, second)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_copy_to_an_array_races_with_fetches_in_another_stream(kernels: Any, ordered: bool) -> None:
    one, two = (cuda.Stream(non_blocking=True) for _ in range(2))
    objects, host = Objects(), cuda.pinned_empty((1, N), np.float32)
    cuda.current_device().synchronize()

    def work() -> None:
        objects.launch(kernels["read_array"], 1, one)
        if ordered:
            two.wait(one)
        objects.array.copy_from(host, stream=two)

    assert bool(found(work)) is not ordered
