"""The small fixed set of random kernels shows each of the planted faults."""

from __future__ import annotations

import functools
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

from cudart_py.simulator.ptx import Fault, load_module
from tests.fuzz import oracle
from tests.fuzz.kernels import Kernel, source
from tests.fuzz.test_random_functions import OF_MODE, SEED, kernels_of
from tests.simulator.ptx.machine import Kernels, ptx_of

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from tests.fuzz import faults  # which needs llvmlite

pytestmark = [
    pytest.mark.needs("profile"),
    pytest.mark.unsanitized("the faults are in the software's machine code"),
    pytest.mark.skipif(oracle.host_compiler() is None, reason="there is no C++ compiler"),
]

# Many times as many as any of the kernels takes.
STEPS = 20_000


@functools.cache
def fixed_set() -> list[tuple[Kernel, oracle.Words, str]]:
    """Return the kernels, what C++ makes of them, and their PTX."""
    kernels = [kernel for mode in OF_MODE for kernel in kernels_of(mode)]
    with tempfile.TemporaryDirectory() as folder:
        results = oracle.host_results(kernels, SEED, Path(folder))
    return [(kernel, results[kernel.number], ptx_of(source([kernel]), oracle.OPTIONS)) for kernel in kernels]


def shows(kernel: Kernel, right: oracle.Words, ptx: str) -> bool:
    """Return whether machine code, made anew, gives other results than C++, or doesn't end."""
    compiled = Kernels(load_module(ptx))
    compiled.engine = "native"
    words = compiled.put(oracle.inputs(SEED, kernel.number, kernel.threads * kernel.blocks))
    out = compiled.put(oracle.before(kernel))
    try:
        compiled.launch(kernel.name, kernel.blocks, kernel.threads, words, out, steps=STEPS)
    except Fault:
        return True
    return bool((compiled.get(out, kernel.results, np.uint64) != right).any())


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: f"{fault.opcodes}: {fault.text}")
def test_a_fault_in_the_code_of_an_opcode_shows(fault: faults.Fault) -> None:
    uses = {which[0].number: len(re.findall(rf"\s{fault.opcodes}\s", which[2])) for which in fixed_set()}
    with_opcode = sorted((which for which in fixed_set() if uses[which[0].number]), key=lambda w: -uses[w[0].number])
    with fault.planted():
        shown = (kernel.number for kernel, right, ptx in with_opcode if shows(kernel, right, ptx))
        assert next(shown, None) is not None, f"kernels {[which[0].number for which in with_opcode]} have the opcode"


def test_an_undo_that_leaves_memory_as_it_is_shows(tmp_path: Path) -> None:
    kernels = kernels_of("checked")[:2]
    with faults.undo_nothing():
        assert len(oracle.compare(kernels, SEED, tmp_path, ["native"], ["checked"])) == len(kernels)
