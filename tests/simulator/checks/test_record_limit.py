"""Records that would take too much memory are made coarser; out of memory, the checks end but the program goes on."""

import gc
import io
from typing import Any

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks import launch_checks, native_records
from cudart_py.simulator.ptx.running import runs as numpy_runs
from cudart_py.simulator.ptx.running.observer import site_numbers
from cudart_py.simulator.state.memory.records import record_limit
from cudart_py.simulator.state.memory.records.shadow import History, ShadowMemory
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found, reports

pytestmark = WRONG_ON_PURPOSE

KERNELS = FOLDER / "record_limit.cu"
MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def limit(device: Any, monkeypatch: pytest.MonkeyPatch) -> record_limit.RecordLimit:
    """Return the limit, set to 1 MiB more than earlier tests left in use, with its warning not yet printed."""
    gc.collect()
    # Memory that was freed in stream order keeps its records until the stream reaches the free.
    device.synchronize()
    most = record_limit.limit.taken + MEBIBYTE
    monkeypatch.setattr(record_limit.limit, "said", False)
    monkeypatch.setattr(record_limit.limit, "most", lambda: most)
    return record_limit.limit


def test_a_fill_beyond_the_limit_keeps_coarse_records_and_says_so_once(kernels, engine, limit, capsys):
    most, count = 0, MEBIBYTE
    arrays = [cuda.empty(count, np.uint8) for _ in range(3)]
    for x in arrays:
        assert found(kernels["fill"][count // 256, 256], x, count, 1) == []
        most = max(most, limit.taken)
        assert (x.to_host() == 7).all()
    assert most <= limit.most()
    said = capsys.readouterr().err
    assert said.count("cudart-py:") == 1
    assert "1,048,576 bytes" in said
    assert record_limit.LIMIT_VARIABLE in said
    # A small allocation is still checked exactly.
    (text,) = found(kernels["race"][1, 64], cuda.zeros(1, np.int32))
    assert "race: " in text


def test_the_limit_is_of_all_records_together_and_frees_give_back_also_those_in_a_stream_that_ends(
    device: Any, kernels: Any, limit: record_limit.RecordLimit, capsys: pytest.CaptureFixture[str]
) -> None:
    before = limit.taken
    for _ in range(20):
        with cuda.Stream(non_blocking=True) as stream, cuda.zeros(30_000, np.int32, stream=stream) as x:
            kernels["add"][128, 256, 0, stream](x, x.size)
            assert (x.to_host() == 7).all()
            assert before < limit.taken <= limit.most()
    assert "cudart-py:" not in capsys.readouterr().err


def test_only_what_nothing_has_written_is_found(kernels: Any, engine: None) -> None:
    quarter = MEBIBYTE // 4
    x, out = cuda.empty(MEBIBYTE, np.uint8), cuda.zeros(256, np.uint8)
    assert found(kernels["fill"][quarter // 256, 256], x, quarter, 1) == []
    # A copy and a fill also initialise their elements.
    x[quarter : 2 * quarter].copy_from(np.ones(quarter, np.uint8))
    cuda.memset(x[2 * quarter : 3 * quarter], 1)
    for end in (1, 2, 3):
        assert found(kernels["first"][1, 256], x, out, end * quarter - 256) == []
    (text,) = found(kernels["first"][1, 256], x, out, 4 * quarter - 256)
    assert "uninitialised value reaches a store" in text


def test_streams_that_race_in_a_large_allocation_are_not_accused_wrongly(kernels: Any) -> None:
    x = cuda.zeros(MEBIBYTE, np.uint8)
    cuda.current_device().synchronize()
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
    with reports() as texts:
        for number, stream in enumerate(streams):
            kernels["fill"][2048, 256, 0, stream](x[number:], x.size - 1, 2)
            cuda.memset(x[number * 64 : number * 64 + 64], 1, stream=stream)
    assert texts == []


def test_records_go_with_the_memory_that_they_are_about(kernels, engine, limit):
    before = limit.taken
    for _ in range(2):
        x = cuda.zeros(1 << 14, np.int32)
        for _ in range(3):
            assert found(kernels["add"][64, 256], x, x.size) == []
        assert limit.taken > before
        x.close()
        cuda.current_device().synchronize()
        assert limit.taken == before


def test_machine_code_needs_no_records_of_memory_that_a_launch_only_reads(kernels, limit, monkeypatch, capsys):
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    numbers = np.arange(2 * MEBIBYTE, dtype=np.int32)
    even, odd, out = cuda.to_device(numbers), cuda.to_device(-numbers), cuda.empty(4096, np.int32)
    before = limit.taken
    assert found(kernels["either"][16, 256], even, odd, out) == []
    with monkeypatch.context() as patch:
        patch.setattr(numpy_runs, "_run_chunks", None)
        assert found(kernels["either"][16, 256], even, odd, out) == []
    np.testing.assert_array_equal(out.to_host(), np.where(numbers % 2, -numbers, numbers)[:4096])
    assert limit.taken - before < MEBIBYTE // 2
    assert capsys.readouterr().err == ""


def test_machine_code_takes_the_room_of_records_that_launches_with_numpy_have_left(
    kernels: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    x = cuda.zeros(40_000, np.int32)
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")
    assert found(kernels["add"][160, 256], x, x.size) == []
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    monkeypatch.setattr(numpy_runs, "_run_chunks", None)
    assert found(kernels["add"][160, 256], x, x.size) == []
    np.testing.assert_array_equal(x.to_host(), 14)
    assert capsys.readouterr().err == ""


def test_reads_race_with_writes_of_a_later_launch_to_memory_that_had_no_records_before(kernels, engine):
    x, y, out = (cuda.to_device(np.arange(257, dtype=np.int32)) for _ in range(3))
    for _ in range(2):
        assert found(kernels["either"][1, 256], x, y, out) == []
    (text,) = found(kernels["either"][1, 256], x, y, y[1:])
    assert "race: " in text


def test_records_tell_the_instructions_apart_once_other_streams_may_overlap_a_launch(kernels, engine):
    x = cuda.to_device(np.arange(4096, dtype=np.int32))
    for _ in range(2):
        assert found(kernels["add"][16, 256], x, x.size) == []
    streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
    with reports() as texts:
        for stream in streams:
            kernels["add"][16, 256, 0, stream](x, x.size)
    # The load and the store.
    assert len(texts) == 2
    assert all(text.count("record_limit.cu:8") == 2 for text in texts), texts


def test_coarse_records_take_the_place_of_those_that_have_no_room_and_know_what_was_written_before(limit):
    before, shadow = limit.taken, ShadowMemory(4096, 1 << 18, False)
    shadow.fill(4096 + 100, 200)
    history = shadow.history
    assert limit.taken == before + (1 << 19)
    assert history.unwritten(100, 400) == 300
    assert not history.prepare(1)
    assert limit.taken == before
    # A coarse record covers 16 bytes.
    assert history.unwritten(100, 400) == 304
    assert history.unwritten(96, 304) is None


def test_a_long_launch_whose_accesses_cannot_be_recorded_runs_in_machine_code_and_is_not_checked(
    kernels: Any, limit: record_limit.RecordLimit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "native")
    monkeypatch.setattr(numpy_runs, "_run_chunks", None)
    count = 1 << 22
    x, out = cuda.empty(count, np.uint8), cuda.zeros(256, np.uint8)
    assert found(kernels["fill"][count // 256, 256], x, count // 2, 1) == []
    np.testing.assert_array_equal(x.to_host()[: count // 2], 7)
    assert f"{count:,} bytes" in capsys.readouterr().err
    monkeypatch.undo()
    # It is not known what the launch has written.
    assert found(kernels["first"][1, 256], x, out, count - 256) == []


def test_a_launch_with_more_threads_than_a_record_can_name_runs_in_machine_code_and_is_not_checked(
    kernels: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    threads, count = 1 << 22, 1 << 16
    monkeypatch.setattr(launch_checks, "MOST_THREADS", threads)
    monkeypatch.setattr(launch_checks.PieceRecords, "THREAD", threads // 2 - 1)
    monkeypatch.setattr(numpy_runs, "_run_chunks", None)
    x = cuda.empty(count, np.uint8)
    assert found(kernels["fill"][threads // 256, 256], x, count, 1) == []
    np.testing.assert_array_equal(x.to_host(), 7)
    said = capsys.readouterr().err
    assert "Launches of at most 2,097,152 threads are checked" in said
    assert record_limit.LIMIT_VARIABLE not in said


def test_the_limit_counts_the_sites_of_machine_codes_records(limit: record_limit.RecordLimit) -> None:
    """Only arrays of less than 64 KiB are not counted."""
    before = limit.taken
    records = native_records._new(ShadowMemory(4096, 1 << 16, True), 2, sites=True)
    assert records is not None
    rooms = [array.base for array in (records.writes, records.reads)]
    assert limit.taken - before == sum(room.nbytes for room in rooms)
    assert all(np.shares_memory(site_numbers(array), array.base) for array in (records.writes, records.reads))


def fail(*arguments: Any, **named: Any) -> Any:
    raise MemoryError


PLACES = {
    "records": "state.memory.records.record_limit.RecordLimit._counted",
    "accesses": "checks.memory_checks.Footprint",
    "copies": "checks.races.concurrency._race",
    "kept": "checks.native_records._keep",
    "read by a copy": "checks.uninitialised.copied_memory._gaps",
    "begin": "ptx.native.launching.speculation.Speculation.__init__",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_lack_of_memory_ends_the_checks_and_not_the_program(kernels, engine, place, monkeypatch, capsys):
    if place == "begin":
        pytest.importorskip("llvmlite", reason="llvmlite is not installed (the extra native)")
    count = 25_600
    x, out = cuda.empty(count, np.uint8), cuda.zeros(256, np.uint8)
    cuda.current_device().synchronize()
    other = cuda.Stream(non_blocking=True)
    with monkeypatch.context() as patch:
        patch.setattr(f"cudart_py.simulator.{PLACES[place]}", fail)
        cuda.memset(out, 1, stream=other)
        assert found(kernels["fill"][count // 256, 256], x, count // 2, 1) == []
        x[: count // 2].to_host()
    assert (x[: count // 2].to_host() == 7).all()
    # Bytes that are not known to be uninitialised are not reported.
    assert found(kernels["first"][1, 256], x, out, 0) == []
    said = capsys.readouterr().err
    assert said.count("cudart-py:") <= 1
    assert place != "accesses" or engine == "native" or "the rest of that launch is not checked" in said


def test_the_environment_sets_the_limit_and_a_machine_may_have_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(record_limit.LIMIT_VARIABLE, "3")
    assert record_limit.RecordLimit().most() == 3 * MEBIBYTE
    monkeypatch.delenv(record_limit.LIMIT_VARIABLE)
    assert 0 < record_limit.RecordLimit().most() <= 8192 * MEBIBYTE
    monkeypatch.setattr(record_limit.np, "zeros", fail)
    assert record_limit.RecordLimit().zeros(1 << 17, np.int64) is None


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_pieces_are_divided_completely_or_not_at_all(limit, monkeypatch, step):
    steps = iter(range(1, 4))

    def repeat(*arguments: Any) -> Any:
        return fail() if next(steps) == step else arguments[0].repeat(arguments[1])

    before, history = limit.taken, History(1 << 15)
    assert history.prepare(4)
    history.writes[:] = np.arange(1, (1 << 13) + 1)
    history.reads[:] = 5
    history.set_aside(limit, "write", slice(0, 100), np.full(100, 6))
    with monkeypatch.context() as patch:
        patch.setattr(record_limit.np, "repeat", repeat)
        parts = 4 if history._divide(0) else 1
    assert (parts == 4) == (step == 4)
    assert history.shift == (0 if parts == 4 else 2)
    np.testing.assert_array_equal(history.writes, np.arange(1, (1 << 13) + 1).repeat(parts))
    np.testing.assert_array_equal(history.reads, np.full(parts << 13, 5))
    aside = history.aside(limit, "write", slice(None))
    np.testing.assert_array_equal(aside, np.where(np.arange(parts << 13) < 100 * parts, 6, 0))
    assert limit.taken == before + 3 * (1 << 16) * parts
    del history, aside
    assert limit.taken == before


def test_where_there_is_no_memory_even_for_coarse_records_all_counts_as_written(monkeypatch, capsys):
    for size in (1, 3, 1000, 1 << 16):
        shadow = ShadowMemory(4096, size, False)
        with monkeypatch.context() as patch:
            patch.setattr(np, "zeros", fail)
            shadow.fill(4096, size // 4)
            shadow.history.prepare(1)
        assert not shadow.history.prepare(1)
        assert shadow.history.unwritten(0, size) is None
        shadow.history.note_coarsely(np.zeros((size + 3) // 4, np.bool_), 2)
        shadow.fill(4096, size // 2)
        shadow.look_through()
        assert shadow.initialised
    assert "neither races nor uninitialised" in capsys.readouterr().err


def test_where_there_is_no_standard_error_nothing_is_said(limit, monkeypatch, capsys):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr("sys.stderr", stream)
        limit.say("a reason", "a consequence")
    assert capsys.readouterr().out == ""
