"""Device code and the stops that launch it belong together."""

from __future__ import annotations

import ast
import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from library_tour import device_code, stops

KERNELS = device_code.find("vector_add").parent
SOURCES = sorted(KERNELS.glob("*.cu"))


def loaded_stems(name: str) -> set[str]:
    """Return the device code that a stop names in its calls of `load`."""
    tree = ast.parse(inspect.getsource(stops.load(name)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {ast.literal_eval(call.args[0]) for call in calls if call.func.id == "load"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_device_code_has_a_stop_of_its_stem_that_loads_it(source: Path) -> None:
    assert source.stem in stops.names()
    assert source.stem in loaded_stems(source.stem)


@pytest.mark.parametrize("name", stops.names())
def test_a_stop_loads_device_code_of_its_own_stem_alone(name: str) -> None:
    stems = loaded_stems(name)
    assert stems <= {name.removesuffix("_ranks")}  # what runs in ranks has the kernels of one device
    assert all(device_code.find(stem) in SOURCES for stem in stems)


def test_the_folder_holds_device_code_alone() -> None:
    assert {path.suffix for path in KERNELS.iterdir()} <= {".cu", ".cuh"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_device_code_starts_with_what_it_shows(source: Path) -> None:
    assert source.read_text().startswith("// ")


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nvcc_compiles_it(source: Path, tmp_path: Path) -> None:
    command = ["nvcc", "-arch=sm_90", "-Werror=all-warnings", "-c", source, "-o", tmp_path / "out.o"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
