"""Every Python block of the documentation runs, here or in a test that its page's name leads to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documentation.blocks import blocks_of, needs, own_environment, page_environment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Pages whose blocks need more than a working directory: files beside them, a copy of the package, several processes.
ELSEWHERE = {
    "adding-a-driver-call.md": "tests/driver/test_adding_a_driver_call.py",
    "adding-a-library-function.md": "tests/libraries/test_adding_a_library_function.py",
    "adding-a-ptx-instruction.md": "tests/simulator/ptx/test_adding_an_instruction.py",
    "adding-a-stop.md": "tests/tour/test_adding_a_stop.py",
    "many-devices.md": "tests/tour/test_ranks.py",
    "processes.md": "tests/memory/test_ipc_processes.py",
}
PAGES = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if path.name not in ELSEWHERE
    and path.parent.name != "coming-from"  # whose blocks run before their tables
    and any(block.language == "python" for block in blocks_of(path))
]


def name_of(path):
    return str(path.relative_to(DOCS))


def run_page(page, folder, environment=page_environment):
    """Run a page in a process of its own and in a folder; return what went wrong."""
    command = [sys.executable, "-m", "tests.documentation.blocks", str(page)]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=300)
    return done.stderr if done.returncode else ""


@pytest.mark.unsanitized("each page is a process of its own")
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_blocks_of_a_page_run(page, tmp_path):
    assert run_page(page, tmp_path) == ""


@pytest.mark.parametrize("page", [page for page in sorted(DOCS.rglob("*.md")) if blocks_of(page)], ids=name_of)
def test_no_block_uses_a_function_that_only_some_versions_of_nvrtc_have(page):
    """NVRTC of CUDA 13.0 does not know `__builtin_offsetof`, which later versions do."""
    assert not any("__builtin_" in block.text for block in blocks_of(page))


SHARING = [page for page in PAGES if any("interop" in needs(block) for block in blocks_of(page))]


@pytest.mark.needs("interop")
@pytest.mark.unsanitized("each page is a process of its own")
@pytest.mark.parametrize("page", SHARING, ids=name_of)
def test_blocks_with_arrays_of_other_libraries_run_where_these_can_follow_our_addresses(page, tmp_path):
    assert run_page(page, tmp_path, own_environment) == ""


def test_no_block_is_left_out_of_all_runs():
    marked = {(name_of(page), block.line) for page in PAGES for block in blocks_of(page) if "not run" in block.mark}
    assert marked == set()


@pytest.mark.parametrize(("page", "test"), ELSEWHERE.items(), ids=list(ELSEWHERE))
def test_the_test_of_a_page_names_it(page, test):
    assert any(block.language == "python" for block in blocks_of(DOCS / page))
    assert page in (ROOT / test).read_text(encoding="utf-8")


@pytest.fixture
def wrong(tmp_path):
    """Run a page of a text; return what went wrong."""

    def run(text):
        page = tmp_path / "page.md"
        page.write_text(text)
        return run_page(page, tmp_path)

    return run


def test_blocks_share_names_and_their_output_is_compared(wrong):
    page = "```python\nx = 2\n```\n\n```python\nprint(x * x)\n```\n\n<!-- prints -->\n```text\n{}\n```\n"
    assert wrong(page.format("4")) == ""
    assert "page.md:10: the page says\n5\n\nand what is printed is\n4" in wrong(page.format("5"))


def test_an_error_counts_as_printed_and_has_to_be_raised(wrong):
    page = (
        "<!-- raises ArithmeticError -->\n```python\n{}\n```\n\n<!-- prints -->\n```text\nZeroDivisionError: ...\n```\n"
    )
    assert wrong(page.format("1 / 0")) == ""
    assert "page.md:2: ArithmeticError is not raised" in wrong(page.format("1 / 1"))
    assert "NameError" in wrong(page.format("one / 0"))


def test_a_block_that_is_not_run_prints_nothing_that_is_compared(wrong):
    blocks = "```python\n1 / 0\n```\n\n<!-- prints -->\n```text\n4\n```\n"
    assert wrong(f"<!-- needs: nothing_has_this -->\n{blocks}") == ""
    assert wrong(f"<!-- not run: it would take a day -->\n{blocks}") == ""


def test_a_block_can_need_a_module(wrong):
    page = "<!-- needs: {} -->\n```python\n1 / 0\n```\n"
    assert wrong(page.format("module no_such_module")) == ""
    assert "ZeroDivisionError" in wrong(page.format("module json"))
    assert wrong(page.format("module json, nothing_has_this")) == ""


def test_a_block_can_be_a_file(wrong):
    program = "from pathlib import Path\nassert Path('k.cu').read_text() == 'int x;\\n'"
    assert wrong(f"<!-- file: k.cu -->\n```cpp\nint x;\n```\n\n```python\n{program}\n```\n") == ""


def test_a_block_can_set_the_environment_of_its_page(wrong):
    program = "import os\nassert os.environ['PAGE_DEVICES'] == '2'"
    assert wrong(f"<!-- environment -->\n```sh\nexport PAGE_DEVICES=2\n```\n\n```python\n{program}\n```\n") == ""


def test_commands_have_to_succeed(wrong):
    page = "<!-- commands -->\n```sh\nls page.md\n{}\necho behind\n```\n"
    assert wrong(page.format("test -e page.md")) == ""
    assert "no_such_file" in wrong(page.format("ls no_such_file"))


def test_an_unknown_mark_is_refused(wrong):
    assert "page.md:2: 'not run' is not a mark of a block" in wrong("<!-- not run -->\n```python\n```\n")


def test_a_failing_line_is_named_with_its_page(wrong):
    assert 'File "page.md", line 5' in wrong("# Page\n\n```python\nx = 1\nx / 0\n```\n")
