"""Machine code that is kept between processes is only used by the compiler that has made it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cudart_py.compilation import cache
from cudart_py.simulator import ptx
from cudart_py.simulator.ptx import load_module
from tests.simulator.ptx.machine import Kernels

pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")

from cudart_py.simulator.ptx.native import machine

FOLDER = Path(ptx.__file__).parent
TEXT = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
    .reg .b64 out; .reg .b32 value; ld.param.u64 out, [p]; mov.u32 value, 5; st.global.u32 [out], value;
}"""


class Store:
    """Keep entries in memory, by the names that the compile cache gives them."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[Any, list[bytes]]] = {}

    def make_key(self, parts: Iterable[str | bytes]) -> str:
        """Return the name of an entry."""
        return cache.make_key(parts)

    def load(self, key: str, restore: Callable[[Any, list[bytes]], Any]) -> Any:
        """Return an entry."""
        return restore(*self.entries[key]) if key in self.entries else None

    def store(self, key: str, description: Any, images: Sequence[bytes]) -> None:
        """Keep an entry."""
        self.entries[key] = description, list(images)


def launch(store: Store) -> None:
    kernels = Kernels(load_module(TEXT))
    kernels.engine, kernels.code_cache = "native", store
    out = kernels.zeros(1)
    kernels.launch("k", 1, 1, out)
    np.testing.assert_array_equal(kernels.get(out, 1), 5)


def test_another_compiler_has_other_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    launch(store)
    launch(store)
    first = set(store.entries)
    monkeypatch.setattr(machine, "_compiler", lambda: "another one")
    launch(store)
    assert len(store.entries) > len(first)
    assert first < set(store.entries)


def test_another_processor_and_another_optimisation_have_other_entries() -> None:
    store = Store()
    launch(store)
    host = machine.host()
    for other in (machine.Processor(host.name, ""), host._replace(optimisation=1)):
        before = set(store.entries)
        with machine.compile_for(other):
            launch(store)
        assert before < set(store.entries)


@pytest.mark.parametrize("changed", ["native/library/atomics.py", "compiling/control_flow.py", "windows.py"])
def test_a_changed_source_is_another_compiler(changed: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "ptx", ignore=shutil.ignore_patterns("__pycache__"))
    before = machine.digest_of(tmp_path / "ptx")
    assert before == machine.digest_of(FOLDER)
    with (tmp_path / "ptx" / changed).open("a") as file:
        file.write("#")
    assert machine.digest_of(tmp_path / "ptx") != before


def test_a_renamed_source_is_another_compiler(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "ptx", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "ptx/native/writing/flow.py"
    source.rename(source.with_name("flows.py"))
    assert machine.digest_of(tmp_path / "ptx") != machine.digest_of(FOLDER)
