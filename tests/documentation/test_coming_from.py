"""The tables of docs/coming-from: what they say of this package runs, row by row."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.blocks import page_environment
from tests.documentation.coming_from import rows_of

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs" / "coming-from").glob("*.md") if path.name != "index.md")


def name_of(path):
    return path.stem


def test_each_package_has_a_page():
    assert [path.stem for path in PAGES] == ["cpp", "cuda-core", "cupy", "numba-cuda", "pycuda"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_table_has_theirs_ours_and_a_note(page):
    rows = rows_of(page)
    assert len(rows) >= 40
    for row in rows:
        assert len(row) == 3, row
        assert "`" in row[0] or row[0].startswith("a "), row
        assert "`" in row[1] or (row[1] == "—" and row[2]), row


@pytest.mark.unsanitized("each page is a process of its own")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_a_table_says_of_this_package_runs(page, tmp_path):
    command = [sys.executable, "-m", "tests.documentation.coming_from", str(page)]
    # On the machine's own driver, since the rows show no outputs, and some need a GPU.
    environment = {**os.environ, "PYTHONPATH": page_environment()["PYTHONPATH"]}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_first_page_leads_to_all_others():
    text = (ROOT / "docs" / "coming-from" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", text)) == {path.stem for path in PAGES}
