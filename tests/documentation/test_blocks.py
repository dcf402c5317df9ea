"""Every Python block of the documentation runs, here or in the test that `ELSEWHERE` names for its page."""

import re
from pathlib import Path

import pytest

from cudart_py.hints import HINTS
from tests.documentation.blocks import blocks_of, needs, page_environment, rows_of
from tests.forks import own_environment
from tests.tables import quoted

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
BLOCKS = {path: blocks_of(path) for path in sorted(DOCS.rglob("*.md"))}
PAGES = [
    path
    for path, blocks in BLOCKS.items()
    if path.name not in ELSEWHERE
    and path.parent.name != "coming-from"  # whose blocks run before their tables
    and any(block.language == "python" for block in blocks)
]
TABLES = sorted(path for path in (DOCS / "coming-from").glob("*.md") if path.name != "index.md")
apart = pytest.mark.unsanitized("each page is a process of its own")


@pytest.fixture
def run(forks, tmp_path):
    """Return a function that runs a page in a new process in an empty folder, and returns its failure or ""."""

    def run(runner, page, environment):
        done = forks.run("tests.documentation.blocks:main", [runner, str(page)], environment, tmp_path)
        return f"status {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else ""

    return run


def name_of(path):
    return str(path.relative_to(DOCS))


@apart
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_blocks_of_a_page_run(run, page):
    assert run("blocks", page, page_environment()) == ""


SHARING = [page for page in PAGES if any("interop" in needs(block) for block in BLOCKS[page])]


@pytest.mark.needs("interop")
@apart
@pytest.mark.parametrize("page", SHARING, ids=name_of)
def test_blocks_with_arrays_of_other_libraries_run_where_these_can_follow_our_addresses(run, page):
    assert run("blocks", page, own_environment()) == ""


@apart
@pytest.mark.parametrize("page", TABLES, ids=name_of)
def test_what_a_table_says_of_this_package_runs(run, page):
    # Not only on the simulator: the rows show no outputs that depend on the driver, and some need a GPU.
    assert run("coming_from", page, own_environment()) == ""


@pytest.mark.parametrize("page", TABLES, ids=name_of)
def test_a_table_has_theirs_ours_and_a_note(page):
    rows = rows_of(page)
    assert len(rows) >= 40
    for row in rows:
        assert len(row) == 3, row
        assert "`" in row[0] or row[0].startswith("a "), row
        assert "`" in row[1] or (row[1] == "—" and row[2]), row


@pytest.mark.parametrize(
    ("letter", "page"),
    [("c", "cupy"), ("k", "cuda-core"), ("n", "numba-cuda"), ("p", "pycuda"), ("y", "numpy")],
)
def test_a_table_says_what_the_error_of_a_name_says(letter, page):
    rows = rows_of(DOCS / "coming-from" / f"{page}.md")
    missing = {}
    for kind, names in HINTS.items():
        for name, (packages, write) in names.items():
            cells = [ours.replace("`", "") for theirs, ours, _ in rows if re.search(rf"\b{name}\b", theirs)]
            codes = quoted(write) or [write]
            if letter in packages and not any(ours == "—" or all(code in ours for code in codes) for ours in cells):
                missing[f"{kind}.{name}"] = write
    assert missing == {}


def test_the_first_page_of_tables_leads_to_all_others():
    text = (DOCS / "coming-from" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", text)) == {path.stem for path in TABLES}
    assert [path.stem for path in TABLES] == ["cpp", "cuda-core", "cupy", "numba-cuda", "numpy", "pycuda"]


def test_every_block_runs_somewhere_and_with_every_version_of_nvrtc():
    """No block uses a compiler builtin: NVRTC of CUDA 13.0 does not know `__builtin_offsetof`, for example."""
    assert [name_of(page) for page in BLOCKS if any("__builtin_" in block.text for block in BLOCKS[page])] == []
    # Multicast objects need several devices behind NVSwitch, and a mistake with them can make these unavailable.
    # Kernels that call nvmath.device take long to compile; tests/libraries/test_device_functions.py runs some.
    not_run = [name_of(page) for page in PAGES if any("not run" in block.mark for block in BLOCKS[page])]
    assert not_run == ["guide/python-kernels.md", "guide/several-devices.md"]
    for page, test in ELSEWHERE.items():
        assert any(block.language == "python" for block in BLOCKS[DOCS / page]), page
        assert page in (ROOT / test).read_text(encoding="utf-8"), page


@pytest.mark.parametrize(
    ("mark", "code", "output", "wrong"),
    [
        ("needs: module json", "print(2 * 2)", "prints", ""),
        ("needs: module json", "print(5)", "prints", "page.md:7: the page says\n4\n\nand what is printed is\n5"),
        ("needs: nothing_has_this", "1 / 0", "prints", ""),
        ("needs: module no_such_module", "1 / 0", "prints", ""),
        ("needs: module json", "1 / 0", "prints", "ZeroDivisionError"),
        ("raises ArithmeticError", "1 / 1", "prints", "page.md:2: ArithmeticError is not raised"),
        ("raises ArithmeticError", "one / 0", "prints", 'File "page.md", line 3'),
        ("prints", "", "commands", "4: not found"),
        ("not run", "", "prints", "page.md:2: 'not run' is not a mark"),
    ],
)
def test_what_is_wrong_in_a_page_is_named(run, tmp_path, mark, code, output, wrong):
    page = f"<!-- {mark} -->\n```python\n{code}\n```\n\n<!-- {output} -->\n```text\n4\n```\n"
    (tmp_path / "page.md").write_text(page)
    found = run("blocks", tmp_path / "page.md", page_environment())
    assert wrong in found
    assert bool(wrong) == bool(found)
