"""Run a tutorial of Triton, unmodified, with sizes and counts for a simulator: run_tutorial.py FILE.

PyTorch's and cuBLAS's operations run on the host. Benchmarks are left out, since they measure time. Autotuning, which
measures time too, takes the first configuration. Tests run with the smallest sizes, and so do programs that check large
matrices.
"""

from __future__ import annotations

import itertools
import runpy
import sys
from pathlib import Path
from typing import Any

import torch
import triton
from _pytest.outcomes import Skipped
from host_operations import OnHost  # beside this file, which is started as a program
from triton._C.libtriton import nvidia
from triton.runtime.autotuner import Autotuner

# The arguments of a tutorial's own function `validate`, called in place of its main program.
_VALIDATED = {"09-persistent-matmul": [(32, 32, 32, torch.float16), (512, 256, 192, torch.float16)]}


def main() -> None:
    """Run the tutorial as a program, then its tests."""
    path = Path(sys.argv[1])
    sys.argv = sys.argv[1:]
    triton.testing.Mark.run = lambda *_, **__: None
    Autotuner._bench = lambda *_, **__: [1.0, 1.0, 1.0]  # so that the first is as fast as any other
    nvidia.cublas.CublasLt = _HostBlas
    torch.Tensor.__repr__ = lambda tensor, **_: torch._tensor_str._str(tensor.detach().cpu())
    sizes = _VALIDATED.get(path.stem, [])
    with OnHost():
        names = runpy.run_path(str(path), run_name="tutorial" if sizes else "__main__")
        for arguments in sizes:
            names["validate"](*arguments)
        for function in list(names.values()):
            if hasattr(function, "pytestmark"):
                _run_smallest(function)
        _check(names)


class _HostBlas:
    """cuBLAS's place, on the host."""

    def __init__(self, workspace: torch.Tensor) -> None:
        pass

    def matmul(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
        """Store the product of `a` and the transpose of `b`."""
        c.copy_((a.float() @ b.float().T).to(c.dtype))


def _run_smallest(function: Any) -> None:
    """Call a test with the smallest of each parameter's numbers, and with all combinations of its other parameters."""
    parameters = {}
    for mark in function.pytestmark:
        if mark.name == "parametrize":
            name, values = mark.args
            parameters[name] = [min(values)] if all(type(value) is int for value in values) else values
    for values in itertools.product(*parameters.values()):
        case = dict(zip(parameters, values, strict=True))
        try:
            function(**case)
            print(function.__name__, case, "passed")
        except Skipped as skipped:
            print(function.__name__, case, "skipped:", skipped)


def _check(names: dict[str, Any]) -> None:
    """Check what a tutorial only prints."""
    if "output_triton" in names and "output_torch" in names:
        assert torch.allclose(names["output_triton"], names["output_torch"], atol=1e-5)
    if "seeded_dropout" in names:
        x, first, second, other = (names[name].cpu() for name in ("x", "output", "output2", "output3"))
        assert torch.equal(first, second)
        assert not torch.equal(first, other)
        for output in (first, other):
            assert torch.equal(output, torch.where(output == 0, 0, x / (1 - 0.5)))


if __name__ == "__main__":
    main()
