"""Every planted mistake is found at its line, and the report contains all that it should.

The same files contain the ways in which correct programs share memory, and the checks report none of them.
"""

import importlib.util
import json
import re

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.ptx.running import runs as numpy_runs
from tests.planted.cases import CASES, FOLDER, compiled, floats, ints, marked, unwritten, words
from tests.simulator.checks import reports
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found
from tests.tables import quoted, rows

pytestmark = WRONG_ON_PURPOSE

FATAL = [case for case in CASES if case.status]
LEAKED = [case for case in CASES if case.leaks]
COPIED = [case for case in CASES if case.kind.startswith("copy")]
FOUND = [case for case in CASES if case not in FATAL and case not in LEAKED and case not in COPIED]
ENGINES = ["numpy", *["native"] * (importlib.util.find_spec("llvmlite") is not None)]


# The part of a report that says where the uninitialised value was read, by state space.
UNWRITTEN = {
    "global": r"global memory at 0x\w+ \(\d+ bytes? into the \d+-byte (heap )?allocation at .*, allocated at ",
    "shared": r"shared memory at 0x\w+ \(\d+ bytes? into {kernel}::s\), where nothing has been written",
    "local": r"local memory at 0x\w+, where this thread hasn't written",
}


# The mistakes that machine code reports itself. A launch with any other is run again by NumPy, which finds it.
BY_MACHINE_CODE = {
    "lane_outside_mask", "mask_names_others", "some_miss_a_barrier", "two_barriers", "barriers_in_an_unequal_loop",
    "inlined_barriers", "called_barriers", "groups_sync_apart", "called_by_some", "called_deeply_by_some",
}  # fmt: skip  # rows of a table


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.name)
def test_a_mistake_that_hardware_hides_is_found_at_its_line(monkeypatch, case):
    texts, by_numpy, run_chunks = {}, set(), numpy_runs._run_chunks
    for engine in ENGINES:
        monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", engine)
        counted = lambda *launch, engine=engine: (by_numpy.add(engine), run_chunks(*launch))  # noqa: E731  # one line
        monkeypatch.setattr(numpy_runs, "_run_chunks", counted)
        texts[engine] = found(case.run, compiled(case.file))
    assert by_numpy == ({"numpy"} if case.name in BY_MACHINE_CODE else set(ENGINES))
    assert len({re.sub("0x[0-9a-f]+", "", str(of_engine)) for of_engine in texts.values()}) == 1, texts
    place = rf"kernel {case.kernel}(?: \(in \w+\))? at \S+{case.file}:(\d+)(?: \(inlined from \S+\))?"
    thread = r"; block \(\d+, 0, 0\), thread \(\d+, 0, 0\), instruction '"
    # A pattern that every report matches, and one that captures the lines which read the uninitialised value.
    said, read = "", ""
    if "shared" in case.kind and "race" in case.kind:
        said = rf"shared memory at 0x\w+ \(\d+ bytes into {case.kernel}::\w+\)"
    elif "race" in case.kind:
        said = rf"\d+ bytes into the \d+-byte allocation at 0x\w+, allocated at \S*{FOLDER.name}/cases.py:\d+"
    elif "shuffle" in case.kind:
        read = said = r"a shuffle at \S+:(\d+) read it from lane \d+ of the warp, which does not take"
    elif "uninitialised" in case.kind:
        said = UNWRITTEN[case.kind.split()[1]].format(kernel=case.kernel)
        read = r"it was read at \S+:(\d+)"
    lines, lines_read = set(), set()
    for text in texts["numpy"]:
        match = re.match(f"{place}: {case.finding}", text)
        assert match, text
        lines.add(int(match[1]))
        assert re.search(thread, text), text
        assert re.search(said, text), text
        lines_read |= {int(number) for number in re.findall(read or "(?!)", text)}
    assert lines
    assert lines <= case.lines
    assert lines_read == (marked(case.file, "READ").get(case.name, case.lines) if read else set())


# Without those whose report names only a header of CUDA, or whose loops spin for half a minute in such code.
@pytest.mark.parametrize(
    "case",
    [case for case in FOUND if case.name not in ("groups_sync_apart", "block_unlocks_without_fence")],
    ids=lambda case: case.name,
)
def test_a_mistake_is_found_in_code_that_is_compiled_for_a_debugger(monkeypatch, case):
    """No function is inlined with -G, and a debugger's launches run on the NumPy engine."""
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")
    reported = found(case.run, compiled(case.file, "-G"))
    places = [re.match(rf"kernel {case.kernel}(?: \(in .+?\))? at (.+?): {case.finding}", text) for text in reported]
    assert all(places), reported
    lines = [int(line) for place in places for line in re.findall(rf"{case.file}:(\d+)", place[1])]
    assert case.lines & set(lines), reported


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("case", COPIED, ids=lambda case: case.name)
def test_a_copy_of_unwritten_memory_to_the_host_is_found_at_its_line(case):
    (text,) = found(case.run, compiled("values.cu"))
    assert re.match(case.finding, text), text
    (queued,) = re.findall(r"queued at \S+cases.py:(\d+)", text)
    assert int(queued) in case.lines


# The part of a report that describes the address: the nearest allocation, the distance, and where it was allocated.
PLACES = {
    "out_of_bounds": r"0 bytes after the end of the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+",
    "read_past": r"0 bytes after the end of the 256-byte allocation at 0x\w+, allocated at \S+cases.py:\d+",
    "write_after_free": r"touches freed memory: 0 bytes into the 256-byte .* which was freed at \S+cases.py:\d+;",
    "read_after_free": r"touches freed memory: 4 bytes into the 256-byte .* which was freed at \S+cases.py:\d+;",
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
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(FOLDER.parents[1])!r})
import cudart_py as cuda
from cudart_py.simulator.ptx.running import runs
from tests.planted.cases import CASES, compiled

said, by_numpy, run_chunks = {{}}, [], runs._run_chunks
runs._run_chunks = lambda *launch: (by_numpy.append(launch), run_chunks(*launch))
for case in CASES:
    by_numpy.clear()
    try:
        if case.status:
            with cuda.Device(0) as device:
                case.run(compiled(case.file))
                device.synchronize()
    except cuda.CudaError as error:
        said[case.name] = [error.status.name, str(error), len(by_numpy)]
        cuda.reset()
        compiled.cache_clear()
    if case.kind.startswith("leaked"):
        case.run(compiled("races.cu"))
print(json.dumps(said))
"""


def test_faults_have_the_hardwares_status_their_lines_and_places_and_leaks_are_listed(python):
    """Both engines report a fault alike, and a launch in machine code ends where it occurs."""
    options = {"CUDART_PY_SIMULATOR_STEPS": "20000", "CUDART_PY_SIMULATOR_LEAKS": "1"}
    done = [python(PROGRAM, CUDART_PY_SIMULATOR_ENGINE=engine, **options) for engine in ENGINES]
    said = [json.loads(one.stdout) for one in done]
    for case in FATAL:
        for status, text, _ in (of_engine[case.name] for of_engine in said):
            assert status == f"CUDA_ERROR_{case.status}", text
            inside = rf"kernel {case.kernel}(?: \(in \w+\))? at \S+{case.file}"
            match = re.search(rf"{inside}:(\d+): (.* )?{case.finding}", text)
            assert match, text
            assert int(match[1]) in case.lines
            assert re.search(r"block \(\d+, 0, 0\), thread \(\d+, 0, 0\), instruction '", text), text
            assert re.search(PLACES.get(case.name, ""), text), text
        texts = {re.sub("0x[0-9a-f]+", "", of_engine[case.name][1]) for of_engine in said}
        # The engines may stop at different instructions when they reach the limit.
        assert len(texts) == 1 or case.kind == "endless loop", texts
        # NumPy runs no launch of the native engine, except the one that allocates memory.
        assert [of_engine[case.name][2] for of_engine in said] == [1, case.name == "heap_after_free"][: len(said)]
    # Freed and closed memory is not listed, and neither are the variables of modules.
    leaks = re.findall(r"leaked: the \d+-byte allocation at 0x\w+, allocated at (.+):(\d+)", done[0].stderr)
    assert all(file.endswith("cases.py") for file, _ in leaks), leaks
    assert {int(line) for _, line in leaks} == set().union(*(case.lines for case in LEAKED))


def test_compute_sanitizer_agrees_where_it_finds_a_mistake():
    """If compute-sanitizer named lines on a GPU, at least one of them is a line of the planted mistake."""
    recorded = json.loads((FOLDER / "data" / "compute_sanitizer.json").read_text(encoding="utf-8"))["cases"]
    for case in CASES:
        if case.tool:
            assert recorded[case.name]["tool"] == case.tool
            named = set(recorded[case.name]["lines"])
            if named and case.file.endswith(".cu"):
                assert named & (case.lines | marked(case.file, "READ").get(case.name, set())), case.name


def test_the_page_on_the_simulators_tests_has_these_cases_and_what_compute_sanitizer_found():
    recorded = json.loads((FOLDER / "data" / "compute_sanitizer.json").read_text(encoding="utf-8"))["cases"]
    page = (FOLDER.parents[1] / "docs" / "simulator-tests.md").read_text(encoding="utf-8")
    table = {cells[0]: cells[1:] for cells in rows(page.partition("\n## Planted mistakes\n")[2])[1:]}
    assert table.keys() == {case.kind for case in CASES}
    for kind, (planted, simulated, said) in table.items():
        cases = [case for case in CASES if case.kind == kind]
        assert planted == simulated == str(len(cases)), kind
        run = [case for case in cases if case.tool]
        missed = [case.name for case in run if not recorded[case.name]["lines"]]
        if run:
            assert said.startswith(f"{run[0].tool}: {len(run) - len(missed)} of {len(run)}"), kind
        assert set(missed) <= set(quoted(said)), kind


def counted(count, dtype=np.int32):
    return cuda.to_device(np.arange(count, dtype=dtype))


def half_written():
    array = unwritten(32)
    array[:16].copy_from(np.zeros(16, np.int32))
    return array


def by_blocks(threads):
    return lambda: (floats(threads), floats(8 * threads), words(1), 8 * threads)


RIGHT = {
    # Barriers, fences, atomics and waits order these accesses, or they store the value that is already there.
    "races.cu": [
        ("last_block_reduction", (300, 64), lambda: (floats(1), floats(300), floats(300 * 64), words(1))),
        ("spin_lock", (8, 64), lambda: (ints(1), ints(1))),
        ("flag", (2, 32), lambda: (ints(1), ints(1), ints(1))),
        ("histogram", (8, 256), lambda: (ints(32), ints(256))),
        ("warp_sync", (1, 32), lambda: (ints(32),)),
        ("maximum_by_swapping", (4, 64), lambda: (cuda.zeros(1, np.uint64), counted(256, np.uint64))),
        ("same_value", (4, 64), lambda: (ints(1), cuda.full(256, 5, np.int32))),
        ("bytes_side_by_side", (1, 64), lambda: (cuda.zeros(64, np.uint8),)),
        ("bytes_of_a_word", (3, 256), lambda: (cuda.zeros(768, np.uint8),)),
        ("named_barriers", (1, 64), lambda: (ints(32),)),
        ("pipelined_copies", (2, 64), lambda: (floats(64), floats(64 * 7), 7)),
        ("own_copy", (1, 64), lambda: (floats(64), floats(64))),
    ],
    "orders.cu": [
        ("all_fence_then_count", (8, 64), by_blocks(64)),
        ("one_fences_for_all", (8, 64), by_blocks(64)),
        ("ordered_count", (8, 64), by_blocks(64)),
        ("warps_fence_then_count", (8, 96), by_blocks(96)),
        ("one_fences_for_its_warp", (8, 96), by_blocks(96)),
        ("barrier_then_fence", (8, 64), by_blocks(64)),
        ("cached_guess", (4, 64), lambda: (cuda.zeros(1, np.uint64), 0.5)),
        ("guess_in_every_turn", (4, 64), lambda: (floats(1), 0.5)),
        ("guess_at_an_index", (4, 64), lambda: (floats(3), cuda.to_device(np.arange(64, dtype=np.int32) % 3), 2.0)),
        ("block_locks", (4, 64), lambda: (ints(1), ints(64))),
    ],
    # Uninitialised values are not read, or not used.
    "values.cu": [
        ("chosen", (1, 32), lambda: (ints(32), half_written(), 16)),
        ("write_then_read", (1, 32), lambda: (ints(32), unwritten(32))),
        ("copy_uninitialised", (1, 16), lambda: (ints(16), half_written())),
        ("copy_uninitialised", (1, 32), lambda: (ints(32), cuda.managed_empty(32, np.int32))),
        ("local_to_store", (1, 32), lambda: (ints(32), 16, 9)),
    ],
    # All threads that have not exited reach the barriers, and the masks name all lanes that arrive.
    "barriers.cu": [
        ("early_return", (1, 64), lambda: (ints(64), 40)),
        ("equal_loop", (1, 64), lambda: (ints(64), 5)),
        ("roles_meet", (1, 64), lambda: (ints(64),)),
        ("right_masks", (1, 64), lambda: (ints(64),)),
    ],
    "groups.cu": [
        # A barrier in an inlined function counts as a different barrier at each call.
        ("waits_between_barriers", (2, 64), lambda: (ints(1), ints(128))),
        ("calls_in_turn", (1, 64), lambda: (ints(64), 32)),
        ("exits_after_a_call", (1, 64), lambda: (ints(64), 40)),
        ("neighbours_after_return", (1, 64), lambda: (ints(64), 40)),
        # A partial warp may use full masks if it uses only its own lanes' values.
        ("sum_of_a_small_block", (1, 16), lambda: (ints(16), counted(16))),
        ("sums_of_segments", (1, 48), lambda: (ints(48), counted(48))),
        ("sum_with_a_guard", (1, 16), lambda: (ints(16), counted(16))),
        ("scan_upwards", (1, 48), lambda: (ints(48), counted(48))),
        ("whole_masks", (1, 16), lambda: (ints(16), counted(16))),
        ("whole_masks", (1, 40), lambda: (ints(40), counted(40))),
    ],
}  # fmt: skip  # rows of a table


@pytest.mark.parametrize(("file", "row"), [(file, row) for file, rows in RIGHT.items() for row in rows])
def test_what_correct_programs_do_is_not_reported(file, row):
    name, shape, arguments = row
    assert found(compiled(file)[name][shape], *arguments()) == []


BARRIERS = [(file, row) for file in ("barriers.cu", "groups.cu") for row in RIGHT[file]]


@pytest.mark.parametrize(("file", "row"), BARRIERS)
def test_correct_barriers_in_code_that_is_compiled_for_a_debugger_are_not_reported(monkeypatch, file, row):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")
    name, shape, arguments = row
    assert found(compiled(file, "-G")[name][shape], *arguments()) == []


@pytest.mark.parametrize(("name", "more"), [("groups", ()), ("piped", (8,)), ("threads", (8,)), ("barred", ())])
def test_the_libraries_copies_are_waited_for(name, more):
    host, out = np.arange(8 * 256, dtype=np.float32).reshape(8, 256), floats(256)
    assert found(compiled(reports.FOLDER / "synchronisation.cu")[name][1, 256], out, cuda.to_device(host), *more) == []
    np.testing.assert_array_equal(out.to_host(), host[: 8 if more else 1].sum(axis=0)[::-1])


@pytest.mark.usefixtures("engine")
def test_a_grid_wide_barrier_orders_blocks():
    launch = compiled("groups.cu")["grid_sync"].configure
    assert found(lambda: launch(4, 64, cooperative=True)(floats(1000), floats(1000), 1000, 5)) == []
