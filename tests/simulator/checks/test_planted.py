"""Every planted mistake is found at its line, with all that a report should say; each kind has at least two."""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter

import pytest

from tests.planted.cases import CASES, FOLDER, compiled, marked

pytestmark = [pytest.mark.needs("profile"), pytest.mark.unsanitized("the kernels are wrong on purpose")]

FOUND = [case for case in CASES if not case.status and case.file.endswith(".cu")]
FATAL = [case for case in CASES if case.status]
LEAKED = [case for case in CASES if not case.file.endswith(".cu")]
SANITIZER = FOLDER / "data" / "compute_sanitizer.json"

PROGRAM = """
import sys
sys.path.insert(0, {root!r})
import cudart_py as cuda
from tests.planted.cases import CASES, compiled
case = next(case for case in CASES if case.name == {name!r})
try:
    with cuda.Device(0) as device:
        case.run(compiled({file!r}))
        device.synchronize()
except cuda.CudaError as error:
    print(error.status.name)
    print(error)
"""


def program(case, file):
    return PROGRAM.format(root=str(FOLDER.parents[1]), name=case.name, file=file)


def test_each_kind_is_planted_at_least_twice():
    assert min(Counter(case.kind for case in CASES).values()) >= 2


def test_names_are_unique_and_all_marks_are_used():
    assert len({case.name for case in CASES}) == len(CASES)
    for file in {case.file for case in CASES if case.file.endswith(".cu")}:
        known = {name for case in CASES for name in (case.name, case.kernel) if case.file == file}
        assert set(marked(file)) <= known


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.name)
def test_a_mistake_that_hardware_hides_is_found_at_its_line(device, case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        case.run(compiled(case.file))
        device.synchronize()
    texts = [str(warning.message) for warning in caught]
    pattern = rf"kernel {case.kernel}(?: \(in \w+\))? at \S+{case.file}:(\d+)(?: \(inlined from \S+\))?: {case.finding}"
    matches = [re.match(pattern, text) for text in texts]
    assert texts
    assert all(matches), texts
    assert {int(match[1]) for match in matches} <= case.lines, texts
    assert all(re.search(r"; block \(\d+, 0, 0\), thread \(\d+, 0, 0\), instruction '", text) for text in texts)
    if "shared" in case.kind and "race" in case.kind:
        assert all(re.search(rf"shared memory at 0x\w+ \(\d+ bytes into {case.kernel}::\w+\)", text) for text in texts)
    elif "race" in case.kind:
        where = rf"\d+ bytes into the \d+-byte allocation at 0x\w+, allocated at \S*{FOLDER.name}/cases.py:\d+"
        assert all(re.search(where, text) for text in texts), texts
    elif "shuffle" in case.kind:
        read = marked(case.file, "READ").get(case.name, case.lines)
        said = [re.search(r"a shuffle at \S+:(\d+) read it from lane \d+ of the warp, which takes", t) for t in texts]
        assert {int(match[1]) for match in said} == read
    elif "uninitialised" in case.kind:
        read = marked(case.file, "READ").get(case.name, case.lines)
        assert {int(n) for text in texts for n in re.findall(r"it was read at \S+:(\d+)", text)} == read
        places = {
            "global": r"global memory at 0x\w+ \(\d+ bytes? into the \d+-byte (heap )?allocation at .*, allocated at ",
            "shared": rf"shared memory at 0x\w+ \(\d+ bytes? into {case.kernel}::s\), where nothing has been written",
            "local": r"local memory at 0x\w+, where this thread hasn't written",
        }
        assert all(re.search(places[case.kind.split()[1]], text) for text in texts), texts


# What the report of an access says of the place: what is near, how far off, and where it was allocated.
PLACES = {
    "out_of_bounds": r"0 bytes after the end of the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+",
    "read_past": r"0 bytes after the end of the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+",
    "write_after_free": r"0 bytes into the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+, which was freed",
    "read_after_free": r"4 bytes into the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+, which was freed",
    "heap_after_free": r"0 bytes into the 64-byte heap allocation .* allocated at a kernel's malloc, which was freed",
    "beyond_shared": r"0 bytes past the end of the block's 128 bytes of shared memory",
    "before_shared": r"12 bytes before the start of the block's 128 bytes of shared memory",
    "beyond_local": r"\d+ bytes past the end of the thread's 64 bytes of local memory",
    "before_local": r"\d+ bytes before the start of the thread's 64 bytes of local memory",
    "misaligned": r"needs an address aligned to 4 bytes: 1 byte into the 64-byte allocation at .*cases.py:\d+",
    "misaligned_pair": r"needs an address aligned to 8 bytes: 4 bytes into the 32-byte allocation at .*cases.py:\d+",
    "misaligned_shared": r"needs an address aligned to 4 bytes: 2 bytes into the block's 256 bytes of shared memory",
    "misaligned_local": r"needs an address aligned to 4 bytes: 2 bytes into the thread's 64 bytes of local memory",
}


@pytest.mark.parametrize("case", FATAL, ids=lambda case: case.name)
def test_a_fault_has_the_hardwares_status_its_line_and_place(python, case):
    said = python(program(case, case.file), CUDART_PY_SIMULATOR_STEPS="20000").stdout
    assert said.startswith(f"CUDA_ERROR_{case.status}\n"), said
    match = re.search(rf"kernel {case.kernel}(?: \(in \w+\))? at \S+{case.file}:(\d+): (?:.* )?{case.finding}", said)
    assert match, said
    assert int(match[1]) in case.lines
    assert re.search(r"block \(\d+, 0, 0\), thread \(\d+, 0, 0\), instruction '", said)
    assert re.search(PLACES.get(case.name, ""), said), said


@pytest.mark.parametrize("case", LEAKED, ids=lambda case: case.name)
def test_leaked_memory_is_listed_with_the_line_that_allocated_it(python, case):
    said = python(program(case, "races.cu"), CUDART_PY_SIMULATOR_LEAKS="1").stderr
    found = re.findall(r"leaked: the \d+-byte allocation at 0x\w+, allocated at \S+cases.py:(\d+)", said)
    assert found
    assert {int(line) for line in found} == case.lines


@pytest.mark.parametrize("case", [case for case in CASES if case.tool], ids=lambda case: case.name)
def test_compute_sanitizer_agrees_where_it_finds_the_mistake(case):
    """The lines that it named on a GPU, if it named any, are among those of the planted mistake."""
    recorded = json.loads(SANITIZER.read_text(encoding="utf-8"))["cases"][case.name]
    assert recorded["tool"] == case.tool
    if recorded["lines"] and case.file.endswith(".cu"):
        lines = case.lines | marked(case.file, "READ").get(case.name, set())
        assert lines & set(recorded["lines"])


def test_compute_sanitizer_finds_two_of_three_mistakes_that_it_was_run_for():
    recorded = json.loads(SANITIZER.read_text(encoding="utf-8"))["cases"]
    found = [name for name, one in recorded.items() if one["says"]]
    assert len(found) >= len(recorded) * 2 / 3
