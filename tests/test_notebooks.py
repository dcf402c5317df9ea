"""The notebooks in docs/notebooks run from top to bottom, and are committed without outputs."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs_and_their_lines_fit():
    assert [path.name for path in NOTEBOOKS] == ["profile_race_fix.ipynb"]
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), path
        assert max(len(line.rstrip("\n")) for cell in cells for line in cell["source"]) <= 120, path


@pytest.mark.unsanitized("a notebook's kernel is a process of its own, with the simulator")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_runs_and_shows_tables(path):
    why = "what executes notebooks is not installed (the dependency group notebook)"
    client, nbformat = pytest.importorskip("nbclient", reason=why), pytest.importorskip("nbformat", reason=why)
    pytest.importorskip("ipykernel", reason=why)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    shown = {cell["id"]: cell["outputs"] for cell in notebook.cells if cell["cell_type"] == "code"}
    for name in ("setup", "data", "preview", "wasteful", "fixed"):
        assert "<table" in shown[name][-1]["data"]["text/html"], name
    assert "The loads use 12.5 % of the bytes that they move" in shown["wasteful"][-1]["data"]["text/html"]
    assert "race" in shown["racing"][-1]["text"]
