"""The notebooks in docs/notebooks run from top to bottom, and are committed without outputs."""

import json
from pathlib import Path

import pytest

import cudart_py as cuda

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs_and_their_lines_fit():
    assert [path.name for path in NOTEBOOKS] == ["cuda_cells.ipynb", "profile_race_fix.ipynb"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), path
        assert max(len(line.rstrip("\n")) for cell in cells for line in cell["source"]) <= 120, path


@pytest.fixture(scope="module")
def outputs():
    """Return a function that runs a notebook and returns the outputs of each code cell."""
    why = "what executes notebooks is not installed (the dependency group notebook)"
    client, nbformat = pytest.importorskip("nbclient", reason=why), pytest.importorskip("nbformat", reason=why)
    pytest.importorskip("ipykernel", reason=why)

    def run(name):
        path = ROOT / "docs" / "notebooks" / name
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
        return {cell["id"]: cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"}

    return run


@pytest.mark.unsanitized("a notebook's kernel is a process of its own, with the simulator")
def test_the_notebook_from_a_profile_to_a_fix_shows_tables(outputs):
    shown = outputs("profile_race_fix.ipynb")
    for name in ("setup", "data", "preview", "wasteful", "fixed"):
        assert "<table" in shown[name][-1]["data"]["text/html"], name
    assert "The loads use 12.5 % of the bytes that they move" in shown["wasteful"][-1]["data"]["text/html"]
    assert "race" in shown["racing"][-1]["text"]


@pytest.mark.unsanitized("as above")
def test_the_notebook_of_cells_in_cuda_runs_with_and_without_a_gpu(outputs):
    shown = outputs("cuda_cells.ipynb")
    assert shown["install"] == []  # nothing is installed, because the package is there
    assert shown["kernel"][-1]["text"] == "void saxpy(float, float const*, float*, int)\n"
    assert shown["launch"][-1]["text"] == "[5. 5. 5. ... 5. 5. 5.]\n"
    assert "<table" in shown["time"][-1]["data"]["text/html"]
    if "profile" in cuda.capabilities():
        assert "<strong>race</strong>" in shown["report"][-1]["data"]["text/html"]
