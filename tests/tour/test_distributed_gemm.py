"""Block-distributed matrix products: layouts, redistribution, panels sent between blocks, and calls of cuBLASMp."""

import importlib
import itertools
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import MagicMock, call

import numpy as np
import pytest

import cudart_py as cuda
from library_tour import cublasmp, several
from library_tour.block_cyclic import BlockCyclic, joined, near_square, pieces, strips
from library_tour.course import distributed_gemm
from library_tour.course.distributed_gemm import Grid, Plan


def test_grids_are_near_squares():
    assert [near_square(workers) for workers in (1, 2, 6, 7, 16)] == [(1, 1), (2, 1), (3, 2), (7, 1), (4, 4)]


def test_pieces_of_all_workers_make_another_layout(rng):
    matrix = rng.random((11, 7))
    cuts = [((2, 3), (2, 2)), ((3, 1), (4, 1)), ((4, 2), (1, 4))]
    layouts = [strips(matrix.shape, 4), *(BlockCyclic(matrix.shape, block, grid) for block, grid in cuts)]
    for source, target in itertools.product(layouts, layouts):
        sent = [pieces(source.part(matrix, worker), worker, source, target) for worker in range(4)]
        for worker, received in enumerate(zip(*sent, strict=True)):
            np.testing.assert_array_equal(joined(received, worker, source, target), target.part(matrix, worker))


@pytest.mark.needs("libraries")
@pytest.mark.parametrize(("workers", "size"), [(3, 20), (6, 13)])
def test_panels_have_the_product(device, workers, size):
    grid = Grid([device] * workers, size)
    random = np.random.default_rng(size)
    a, b = (random.integers(-8, 9, (size, size)).astype(np.float32) for _ in "ab")
    for _ in range(2):  # the second product reuses the buffers and C
        for worker in grid.blocks:
            worker.take(a, b)
        grid.multiply()
        for worker in grid.blocks:
            np.testing.assert_array_equal(worker.result(), worker.layouts[2].part(a @ b, worker.number))


@pytest.mark.needs("libraries")
def test_cublasmp_which_needs_ranks_is_named_with_what_to_install(rows):
    assert "nvmath-python[cu13-distributed]" in rows["cuBLASMp"].note


class OneRank:
    """The communicator of rank 0 of two, whose peer always sends `other`."""

    rank = 0

    def __init__(self, other: str, count: int = 2) -> None:
        self.count, self.comm = count, SimpleNamespace(allgather=lambda own: [own, other])

    def shared_device(self, device):
        return ""


def test_a_rank_that_lacks_cublasmp_stops_all(device, monkeypatch):
    monkeypatch.setattr(cublasmp, "_missing_here", lambda: "")
    for other in ("", "it is not there"):
        assert cublasmp.missing(OneRank(other), device) == other


def grouped(monkeypatch, count: int = 1) -> ModuleType:
    """Make nvmath's layouts see `count` processes; return their module."""
    distributions = importlib.import_module("nvmath.distributed.distribution.distributions")
    monkeypatch.setattr(distributions, "_get_process_group", lambda: SimpleNamespace(nranks=count, rank=0))
    return distributions


@pytest.mark.parametrize(("size", "count"), [(8, 2), (37, 3), (37, 4), (8, 6)])
def test_nvmath_gives_each_rank_the_same_elements_of_the_transposed_matrices(monkeypatch, count, size):
    nvmath = grouped(monkeypatch, count)
    for layouts in (Plan(size, near_square(count)).layouts, cublasmp.in_strips(size, count)):
        for layout in layouts:
            turned = cublasmp._turned(layout, nvmath)
            for rank in range(count):
                assert turned.shape(rank, (size, size)) == layout.part_shape(rank)[::-1]
        a, b, c = (layout.block for layout in layouts)
        # cuBLASMp requires equal block sizes in the rows, the columns and the inner dimension.
        assert (a[0], b[1], a[1]) == (c[0], c[1], b[0])


@pytest.fixture
def nvmath(monkeypatch):
    """Replace nvmath.distributed by a mock with one process, and the view of an array that it is given."""
    fake = MagicMock(distribution=grouped(monkeypatch))
    fake.advanced, fake.get_context.return_value = fake, None
    monkeypatch.setattr(cublasmp.importlib, "import_module", lambda name: fake)
    monkeypatch.setattr(cublasmp, "lent", lambda array: SimpleNamespace(T=array))
    return fake


def test_nvmath_gets_the_transposed_operands_and_the_stream_of_the_blocks(device, nvmath):
    team = cublasmp.CublasMp(OneRank("", 1), device, Plan(9, (1, 1)).layouts)
    [own] = team.blocks
    team.multiply()
    team.close()
    nvmath.initialize.assert_called_once_with(device.ordinal, team.ranks.comm, backends=["nccl"])
    [made], product = nvmath.Matmul.call_args_list, nvmath.Matmul.return_value
    assert made.args == (own.b, own.a, own.c)
    assert [layout.process_grid.shape for layout in made.kwargs.pop("distributions")] == [(1, 1)] * 3
    stream = {"stream": own.compute.handle}
    assert made.kwargs == {"beta": 0.0, **stream}
    assert product.mock_calls == [call.plan(**stream), call.execute(**stream), call.free()]


def test_what_nvmath_raises_is_a_refusal(device, nvmath):
    product = nvmath.Matmul.return_value
    product.plan.side_effect = ZeroDivisionError
    with pytest.raises(cublasmp.CublasMpRefusalError, match="ZeroDivisionError"):
        cublasmp.CublasMp(OneRank("", 1), device, Plan(9, (1, 1)).layouts)
    product.free.assert_called_once()


@pytest.mark.needs("libraries")
def test_a_product_that_cublasmp_refuses_fails_alone_and_is_not_timed(device):
    def refuse(size: int) -> cublasmp.CublasMp:
        raise cublasmp.CublasMpRefusalError("cuBLASMpError: not supported")

    makers = {"SUMMA": partial(Grid, [device]), "cuBLASMp, grid": refuse}
    rows = distributed_gemm.checked_rows(device, makers["SUMMA"], makers, 20)
    assert [(row.name, row.check.holds) for row in rows if not row.check.holds] == [("cuBLASMp, grid", False)]
    assert rows[2].check.detail == "cuBLASMpError: not supported"
    assert makers.keys() & several.right_everywhere(rows, None) == {"SUMMA"}
    elsewhere = SimpleNamespace(comm=SimpleNamespace(allgather=lambda own: [own, {"SUMMA"}]))
    assert makers.keys() & several.right_everywhere(rows, elsewhere) == set()


def test_the_guides_product_by_nvmath_runs(device, monkeypatch):
    grouped(monkeypatch)
    initialize, multiply = MagicMock(), MagicMock()
    monkeypatch.setattr(importlib.import_module("nvmath.distributed"), "initialize", initialize)
    monkeypatch.setattr(importlib.import_module("nvmath.distributed.linalg.advanced"), "Matmul", multiply)
    monkeypatch.setitem(sys.modules, "cupy", MagicMock())
    page = Path(__file__).parents[2] / "docs" / "many-devices.md"
    [block] = [text for text in re.findall(r"```py\n(.*?)```", page.read_text(), re.DOTALL) if "Matmul" in text]
    names = {"device": device, "comm": SimpleNamespace(size=1), "MPI": SimpleNamespace(COMM_WORLD=None)}
    exec(block.replace("4096", "12"), {**names, "cuda": cuda, "np": np})
    initialize.assert_called_once_with(device.ordinal, None, backends=["nccl"])
    multiply.return_value.__enter__.return_value.execute.assert_called_once()


def test_the_plan_cuts_every_operand_for_the_panels():
    plan = Plan(50, (3, 2))
    assert plan.width == 3
    assert [panel.stop - panel.start for panel in plan.panels] == [3] * 16 + [2]
    assert plan.bytes_sent == 4 * 50 * 50 * 3
