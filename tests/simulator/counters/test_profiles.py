"""Counters: values that follow from the hardware's rules, per launch and per line, and profiles that ask for them.

Both engines count exactly what Nsight Compute counted on a GPU, for the patterns of patterns.cu.
"""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.profiling import profiles
from cudart_py.profiling.report.annotated_source import annotated_sources
from cudart_py.profiling.report.launch_table import launch_table
from cudart_py.simulator.counters.metrics import MODELLED
from tests.simulator.counters import patterns

pytestmark = pytest.mark.needs("profile")

KERNELS = Path(__file__).with_name("profiled.cu")
COMPILE_OPTIONS = {"names": ["some<float>"]}
LD = "l1tex__t_{}_pipe_lsu_mem_global_op_ld.sum"
USED = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.ratio"
LANES = "smsp__thread_inst_executed_per_inst_executed.ratio"
TEX = "l1tex__t_{}_pipe_tex_mem_texture.sum"


@pytest.fixture
def counted(device, kernels, engine):
    def count(kernel, shape, *arguments):
        with cuda.profile() as p:
            kernels[kernel][shape](*arguments)
        return p.launches[0]

    return count


def zeros(count, dtype=np.float32):
    return cuda.zeros(count, dtype)


def test_lanes_use_a_part_of_the_sectors_that_they_touch(counted):
    for stride, used in ((0, 4), (1, 32), (2, 16), (4, 8), (8, 4), (33, 4)):
        metrics = counted("strided", (1, 64), zeros(64), zeros(64 * 33), stride).metrics
        assert (metrics[USED.format("ld")], metrics[USED.format("st")]) == (used, 32)
        assert metrics["smsp__sass_data_bytes_mem_global_op_st.sum"] == 64 * 4
    for lanes, used in ((1, 4), (8, 32), (9, 18), (32, 32)):
        assert counted("some<float>", (1, 32), zeros(48), lanes).metrics[USED.format("st")] == used


def test_operations_of_floating_point_count_for_the_lanes_whose_guard_holds_and_instructions_for_all(counted):
    launch = counted("arithmetic", (1, 64), zeros(64), zeros(64, np.float64))
    name = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
    found = {kind: launch.metrics[name.format(kind)] for kind in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma")}
    assert found == {"fadd": 0, "fmul": 7, "ffma": 64, "dadd": 5, "dmul": 5, "dfma": 0}
    number = next(number for number, text in enumerate(KERNELS.read_text().splitlines(), 1) if "setp" in text)
    assert [line.metrics["smsp__thread_inst_executed.sum"] for line in launch.lines if line.line == number] == [128]


@pytest.mark.parametrize(
    ("words", "sectors"),
    [([3], 32), ([0, 1], 16), ([0, 8], 32), ([*range(32)], 4), ([*range(0, 256, 8)], 32), ([0, 0, 0, 8], 24 + 8)],
    ids=str,
)
def test_lanes_at_one_word_take_turns(counted, words, sectors):
    places = cuda.to_device(np.resize(np.array(words, np.int32), 32))
    metrics = counted("add_at", (1, 32), zeros(256, np.int32), places).metrics
    assert metrics[LD.replace("_ld", "_red").format("sectors")] == sectors


@pytest.mark.parametrize(
    ("lanes", "reductions", "atomics"), [(32, 1 + 32 + 1 + 32, 1 + 1 + 32), (20, 1 + 20 + 1 + 20, 1 + 20 + 20)]
)
def test_lanes_are_combined_as_the_assembler_does(counted, lanes, reductions, atomics):
    """The machine code of ptxas 13 has REDUX or POPC for the atomics that count one sector."""
    arguments = zeros(1, np.int32), zeros(1, np.uint64), zeros(1), zeros(1, np.int32), zeros(32, np.int32), 3
    metrics = counted("update_one", (1, lanes), *arguments).metrics
    red, atom = (metrics[LD.replace("_ld", f"_{kind}").format("sectors")] for kind in ("red", "atom"))
    assert (red, atom) == (reductions, atomics)
    assert metrics["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] == 1


def test_a_generic_load_counts_where_each_lane_goes(counted):
    metrics = counted("generic", (1, 32), zeros(32), zeros(32), 8).metrics
    assert metrics[LD.format("sectors")] == 1
    assert metrics["smsp__inst_executed_op_shared_ld.sum"] == 1


@pytest.mark.parametrize(("shift", "sectors"), [(5, 4), (3, 4), (2, 8), (0, 32)])
def test_words_of_one_local_address_lie_side_by_side_over_the_lanes(counted, shift, sectors):
    metrics = counted("own", (1, 32), zeros(32, np.int32), shift).metrics
    assert {metrics[f"l1tex__t_sectors_pipe_lsu_mem_local_op_{kind}.sum"] for kind in ("ld", "st")} == {sectors}


@pytest.mark.parametrize(("lanes", "requests", "sectors"), [(64, 2, 32), (7, 1, 4), (0, 0, 0)])
def test_a_copy_to_shared_memory_loads_what_its_lanes_read_and_is_no_store(counted, lanes, requests, sectors):
    metrics = counted("copied", (1, 64), zeros(256), zeros(256), lanes).metrics
    assert (metrics[LD.format("requests")], metrics[LD.format("sectors")]) == (requests, sectors)
    assert metrics["smsp__sass_data_bytes_mem_global_op_ld.sum"] == 16 * lanes
    assert metrics["smsp__inst_executed_op_ldgsts.sum"] == requests
    assert metrics["smsp__inst_executed_op_shared_st.sum"] == 0


@pytest.mark.parametrize(("lanes_a_word", "requests"), [(1, 64), (2, 32), (32, 2), (64, 2), (None, 0)])
def test_each_word_of_a_constant_table_is_a_request_but_not_one_at_a_fixed_place(counted, lanes_a_word, requests):
    kernel, more = ("take", ()) if lanes_a_word is None else ("look_up", (lanes_a_word,))
    metrics = counted(kernel, (1, 64), zeros(64, np.int32), *more).metrics
    assert metrics["idc__requests.sum"] == requests
    assert metrics[LD.format("requests")] == 0


def image(dtype=np.float32):
    return cuda.empty_pitched((64, 64), dtype).copy_from(np.ones((64, 64), dtype))


@pytest.mark.parametrize(
    ("filtered", "place", "step", "sectors"),
    [
        ("point", (0.5, 0.5), (1, 0), 8),
        ("point", (0.5, 0.5), (0, 1), 32),
        ("point", (0.5, 0.5), (0, 0), 8),
        ("point", (6.5, 0.5), (1, 0), 8 + 4),
        ("point", (-40.5, 0.5), (1, 0), 0),
        ("point", (-15.5, 0.5), (1, 0), 4),
        ("linear", (1, 1), (1, 0), 2 * 12),
        ("linear", (0, 0), (1, 0), 8 + 3),
        ("linear", (1, 1), (0, 1), 8 * 5),
    ],
)
def test_a_texture_fetch_touches_the_sectors_of_its_texels(counted, filtered, place, step, sectors):
    with cuda.textures.Texture(image(), filter=filtered, address="border") as texture:
        launch = counted("fetch", (1, 32), texture, zeros(32), *place, *step)
    assert launch.metrics["smsp__inst_executed_op_texture.sum"] == 1
    assert launch.metrics[TEX.format("requests")] == 8
    assert launch.metrics[TEX.format("sectors")] == sectors
    assert sum(line.metrics[TEX.format("sectors")] for line in launch.lines) == sectors
    assert launch.metrics[LD.format("requests")] == 0


def test_each_four_lanes_touch_the_sectors_of_their_texels_and_textures_are_counted_apart(counted):
    sectors = TEX.format("sectors")
    with cuda.textures.Texture(image(np.uint8)) as texture:
        assert counted("fetch_bytes", (1, 64), texture, zeros(64, np.int32)).metrics[sectors] == 16
    with cuda.textures.Texture(image()) as one, cuda.textures.Texture(image()) as other:
        assert counted("fetch_of_two", (1, 32), one, other, zeros(32)).metrics[sectors] == 2 + 6


def test_a_launch_without_counters_and_checks_runs_nothing_of_theirs(device, kernels, monkeypatch):
    monkeypatch.setenv("CUDART_PY_SIMULATOR_ENGINE", "numpy")
    data, out, files = zeros(64), zeros(64), set()
    device.synchronize()
    with cuda.sanitizer("off"):
        kernels["strided"][1, 64](out, data, 1)
        sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename))
        try:
            device.synchronize()
        finally:
            sys.setprofile(None)
    assert any(file.startswith("<ptx") for file in files)
    # Of these modules, only `findings` may run, because it knows whether checks are on.
    theirs = r"cudart_py/simulator/(checks|counters)/(?!findings)|/observer\.py"
    assert not [file for file in files if re.search(theirs, file)]


def test_profiles_nest_and_count_what_is_launched_inside_also_where_the_body_raises(device, kernels):
    out, stream = zeros(32), cuda.Stream()
    with stream.capture() as graph:
        kernels["some<float>"][1, 32, 0, stream](out, 4)
    executable = graph.instantiate()
    executable.launch(stream)
    with cuda.profile() as empty:
        pass
    assert empty.launches == ()
    assert str(empty) == "no launches"
    outer = cuda.profile()

    def fail():
        with outer:
            executable.launch(stream)
            with cuda.profile() as inner:
                executable.launch(stream)
            assert len(inner.launches) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [launch.kernel for launch in outer.launches] == ["some<float>"] * 2


def test_a_driver_without_counters_says_which_capability_lacks(device, monkeypatch):
    monkeypatch.setattr(profiles, "capabilities", frozenset)
    with pytest.raises(cuda.errors.NotSupportedError, match="'profile'"), cuda.profile():
        pass


def test_long_stretches_that_did_nothing_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "long.cu").write_text("".join(f"line {number}\n" for number in range(1, 101)))
    monkeypatch.chdir(tmp_path)
    lines = [cuda.profiling.LineProfile(str(tmp_path / "long.cu"), number, {LANES: 1.0}) for number in (20, 24, 60)]
    launch = cuda.profiling.LaunchProfile("k", (1, 1, 1), (1, 1, 1), {}, tuple(lines))
    text = annotated_sources([launch]).splitlines()
    assert text[0] == "long.cu"
    assert [int(line.split()[0]) for line in text[3:] if line.strip() != "⋮"] == [*range(17, 28), *range(57, 64)]
    assert [line.strip() for line in text].count("⋮") == 2


DATA = Path(__file__).parent / "data" / "h200.json"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"


@pytest.fixture(scope="module")
def recorded():
    if not DATA.is_file():
        pytest.fail(f"{DATA} is missing: python tests/simulator/counters/record.py {DATA} makes it on a GPU")
    return json.loads(DATA.read_text(encoding="utf-8"))["patterns"]


@pytest.fixture(scope="module", params=["numpy", "native"])
def launches(request):
    """Return the profiles of the patterns with an engine, by kernel name."""
    # The sanitizer is off because in some patterns threads store to the same address on purpose.
    with pytest.MonkeyPatch.context() as patch, cuda.Device(0), cuda.sanitizer("off"), cuda.profile() as profile:
        patch.setenv("CUDART_PY_SIMULATOR_ENGINE", request.param)
        # Patterns that differ only in a constant are the same machine code, so it runs one of each kind.
        again = re.compile(r"(stride|offset)_(?!2$)\d+$" if request.param == "native" else "(?!)")
        patterns.launch(name for name in patterns.NAMES if not again.search(name))
    return {launch.kernel: launch for launch in profile.launches}


def test_all_patterns_count_as_on_the_hardware(recorded, launches):
    assert len(launches) >= 40
    wrong = []
    for name, launch in launches.items():
        exact = [metric for metric in recorded[name] if metric in launch.metrics and metric not in MODELLED]
        assert len(exact) >= 8
        wrong += [(name, metric) for metric in exact if launch.metrics[metric] != recorded[name][metric]]
        sums = {metric: value for metric, value in launch.metrics.items() if metric.endswith(".sum")}
        assert {metric: sum(line.metrics[metric] for line in launch.lines) for metric in sums} == sums
    assert wrong == []


def test_the_table_has_a_row_for_launches_that_are_alike_and_fits_80_columns(launches):
    table = launch_table([launches["transpose_plain"], *[launches["atomic_unit"]] * 2])
    assert [" ".join(line.split()) for line in table.splitlines()] == [
        "sectors per sectors per bank active",
        "kernel grid block load store conflicts lanes",
        "transpose_plain 4x4 32x8 4.0 4.0 15,872 32.0",
        "2 x atomic_unit 16 256 4.0 - 0 32.0",
    ]
    metrics = launches["transpose_plain"].metrics
    long = cuda.profiling.LaunchProfile("k" * 100, (65535, 65535, 3), (1024, 1, 1), metrics, ())
    assert max(map(len, launch_table([long]).splitlines())) == 80


def test_active_lanes_are_within_a_tenth_in_the_median(recorded, launches):
    expected = np.array([recorded[name][LANES] for name in launches])
    errors = abs(np.array([launch.metrics[LANES] for launch in launches.values()]) / expected - 1)
    parted = errors[expected < 31.5]
    assert len(parted) >= 8
    assert np.median(errors) <= 0.1
    assert np.median(parted) <= 0.1


def test_atomics_are_within_one_percent(recorded, launches):
    for name, launch in launches.items():
        for sectors in (SECTORS.format("red"), SECTORS.format("atom")):
            assert launch.metrics[sectors] == pytest.approx(recorded[name][sectors], rel=0.01)
