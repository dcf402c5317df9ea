#!/usr/bin/env python3
"""Build the documentation site: the Markdown pages of docs/ and the generated pages, as a folder of HTML.

    uv run --group docs scripts/build_site.py FOLDER             open FOLDER/index.html
    uv run --group docs scripts/build_site.py FOLDER --pages DIR   keep the input of MkDocs in DIR

The course's pages show what its stops find on the simulator, so each stop runs once. The notebooks run too. On two
cores, the build takes about seven minutes; it prints a line when each phase begins. A warning, such as one about a link
without a target, makes the exit status 1. Nothing is fetched from the network.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from site_links import link_names

from cudart_py.profiling.report.source_table import STYLE
from library_tour.pages import site as course
from library_tour.pages.notebooks import notebook_page
from library_tour.pages.simulated import StopRun, run_all
from library_tour.path import CHAPTERS, names

ROOT = Path(__file__).parents[1]
NOTEBOOK_SECONDS = 300


def assemble(folder: Path, runs: Sequence[StopRun]) -> Path:
    """Write the pages and the configuration of the site into an empty folder; return the configuration's path."""
    import yaml  # from the dependency group docs, like MkDocs

    pages = folder / "pages"
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("mkdocs.yml"))
    shutil.copyfile(ROOT / "CHANGELOG.md", pages / "changelog.md")
    shutil.copyfile(STYLE, pages / STYLE.name)
    tell("writing the course's pages and plots")
    course.write(pages / "course", runs)
    tell("running the notebooks")
    write_notebooks(pages)
    config = yaml.safe_load((ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8"))
    config |= {"docs_dir": pages.name, "nav": [expanded(entry, pages) for entry in config["nav"]]}
    options = find(config["plugins"], "mkdocstrings")["handlers"]["python"]["options"]
    options["extensions"] = [str(Path(__file__).with_name("reference_extension.py"))]
    path = folder / "mkdocs.yml"
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    return path


def tell(phase: str) -> None:
    """Print a line about the phase that begins, without buffering."""
    print(f"build_site: {phase}", flush=True)


def write_notebooks(pages: Path) -> None:
    """Write a page beside each notebook, and redirect the links to the notebook to that page."""
    notebooks = list(pages.rglob("*.ipynb"))
    for page in pages.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        for notebook in notebooks:
            text = text.replace(f"{notebook.name})", f"{notebook.stem}.md)")
        page.write_text(text, encoding="utf-8")
    for notebook in notebooks:
        text = notebook_page(executed(notebook), notebook.name)
        notebook.with_suffix(".md").write_text(text, encoding="utf-8")


def executed(notebook: Path) -> dict[str, Any]:
    """Run a notebook, which is stored without results, and return it with its results."""
    import nbclient  # from the dependency group docs
    import nbformat

    content = nbformat.read(notebook, as_version=4)
    resources = {"metadata": {"path": str(notebook.parent)}}
    found: dict[str, Any] = nbclient.NotebookClient(content, timeout=NOTEBOOK_SECONDS, resources=resources).execute()
    return found


def expanded(entry: Any, pages: Path) -> Any:
    """Return a nav entry in which each folder that ends in a slash is replaced by the list of its pages."""
    if isinstance(entry, str):
        return entry
    [(title, inside)] = entry.items()
    if isinstance(inside, list):
        return {title: [expanded(item, pages) for item in inside]}
    if not inside.endswith("/"):
        return entry
    found = {path.stem: str(path.relative_to(pages)) for path in sorted((pages / inside).glob("*.md"))}
    first = [found.pop("index")] if "index" in found else []
    # The pages of stops are grouped by chapter. All other pages follow, sorted by name.
    chapters = [
        {chapter.title: [found.pop(name) for name in chapter.names if name in found]}
        for chapter in CHAPTERS
        if any(name in found for name in chapter.names)
    ]
    return {title: [*first, *chapters, *sorted(found.values())]}


def find(plugins: list[Any], name: str) -> Any:
    """Return the options of a plugin."""
    return next(plugin[name] for plugin in plugins if isinstance(plugin, dict) and name in plugin)


def build(configuration: Path, site: Path) -> int:
    """Build the site into a folder; return the exit status of MkDocs."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(configuration), "-d", str(site)]
    # The theme's notice about its next major version is not a warning about a page.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    # The INFO lines are dropped here because the option --quiet would also keep MkDocs from counting warnings.
    for line in done.stderr.splitlines():
        if line and not line.startswith("INFO"):
            print(line, file=sys.stderr)
    return done.returncode


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site into the folder given on the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("site", type=Path, help="the folder for the HTML, which is emptied first")
    parser.add_argument("--pages", type=Path, help="an empty folder for the pages and the configuration of MkDocs")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        tell(f"running the {len(names())} stops on the simulator; the whole build takes several minutes")
        runs = list(run_all(names()))
        configuration = assemble(options.pages or Path(temporary), runs)
        tell("building the site with MkDocs")
        status = build(configuration, options.site.absolute())
    if not status:
        tell("linking names to the reference")
        link_names(options.site)
        tell(f"done: open {options.site / 'index.html'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
