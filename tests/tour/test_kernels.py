"""Each file of device code belongs to the stop of its name."""

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
    """Return the names of device code in a stop's calls of `load`.

    A stop that runs in ranks shares the kernels of the stop for one process, and perhaps the function that loads them.
    """
    trees = [ast.parse(inspect.getsource(stops.load(stop))) for stop in (name, name.removesuffix("_ranks"))]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return {ast.literal_eval(call.args[0]) for call in calls if call.func.id == "load"}


def test_each_stop_loads_the_device_code_of_its_stem_and_no_other() -> None:
    stems = {source.stem for source in SOURCES}
    loaded = {name: loaded_stems(name) for name in stops.names()}
    assert loaded == {name: {name.removesuffix("_ranks")} & stems for name in stops.names()}
    assert stems <= loaded.keys()


def test_the_folder_holds_device_code_alone_which_starts_with_what_it_shows() -> None:
    assert {path.suffix for path in KERNELS.iterdir()} <= {".cu", ".cuh"}
    assert [source.name for source in SOURCES if not source.read_text().startswith("// ")] == []


@pytest.mark.exhaustive
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_nvcc_compiles_it(source: Path, tmp_path: Path) -> None:
    command = ["nvcc", "-arch=sm_90", "-Werror=all-warnings", "-cubin", source, "-o", tmp_path / "out.cubin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
