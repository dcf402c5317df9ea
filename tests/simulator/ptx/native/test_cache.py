"""Machine code that is kept between processes is only used by the compiler that has made it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from cudart_py.simulator import ptx
from cudart_py.simulator.ptx import Module
from tests.simulator.ptx.machine import HEAD, Kernels, Store

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import machine

FOLDER = Path(ptx.__file__).parent
TEXT = HEAD + ".visible .entry k(.param .u64 p) { .reg .b64 out; ld.param.u64 out, [p]; st.global.u32 [out], 5; }"


def added(store: Store) -> bool:
    """Launch a kernel, and return whether that has added entries to the store, beside those there were."""
    before = set(store.entries)
    kernels = Kernels(Module(TEXT))  # as in another process
    kernels.engine, kernels.code_cache = "native", store
    out = kernels.zeros(1)
    kernels.launch("k", 1, 1, out)
    np.testing.assert_array_equal(kernels.get(out, 1), 5)
    return before < set(store.entries)


def test_another_compiler_processor_and_optimisation_have_other_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    store, host = Store(), machine.host()
    assert added(store)
    assert not added(store)
    for other in (machine.Processor(host.name, ""), host._replace(optimisation=1)):
        with machine.compile_for(other):
            assert added(store)
    monkeypatch.setattr(machine, "_compiler", lambda: "another one")
    assert added(store)


def test_a_changed_or_renamed_source_is_another_compiler(tmp_path: Path) -> None:
    copy = tmp_path / "ptx"
    shutil.copytree(FOLDER, copy, ignore=shutil.ignore_patterns("__pycache__"))
    digests = [machine.digest_of(FOLDER)]
    assert machine.digest_of(copy) == digests[0]
    for changed in ("native/library/atomics.py", "compiling/control_flow.py", "windows.py"):
        with (copy / changed).open("a") as file:
            file.write("#")
        digests.append(machine.digest_of(copy))
    source = copy / "native/writing/flow.py"
    source.rename(source.with_name("flows.py"))
    digests.append(machine.digest_of(copy))
    assert len(set(digests)) == 5
