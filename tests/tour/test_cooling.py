import numpy as np

import cudart_py as cuda
from library_tour.course import cooling
from library_tour.device_code import load
from library_tour.runner import run_stop
from library_tour.stop import Check, Row
from tests.tour.outcomes import counted

HEADERS = "__has_include(<thrust/iterator/zip_iterator.h>)"  # hidden from a changed source, which compiles faster
BY_HAND = "by hand, four at a time"


@counted
def test_iterators_save_the_temporary_arrays_loads_and_stores(result):
    rows = {row.name: row.values for row in result.rows}
    assert rows[cooling.ZIPPED]["stores"] == 0 < rows[cooling.TEMPORARY]["stores"]
    assert rows[cooling.ZIPPED]["loads"] == rows["counting and transform"]["loads"] < rows[cooling.TEMPORARY]["loads"]


@counted
def test_a_generic_step_makes_the_loads_and_stores_of_one_by_hand(result):
    [steps] = [{row.name: row.values for row in rows} for heading, rows in result.tables.items() if "step" in heading]
    assert steps["transform(in, out, step)"] == steps["a kernel for the step"] == steps["cuda::std::span"]


def test_the_course_examples_come_out(result):
    results = {row.name: row.values["result"] for row in result.tables["Results of the iterators"]}
    assert results["a step, ambient 20, k = 0.5"] == "31, 22, 35"
    assert results["transform_output_iterator, value / 2"] == "5, 10"


def test_a_difference_that_is_left_out_is_noticed(device, changed_kernels):
    changes = {"for (; i < n; i += threads)": "for (; i < n - 1; i += threads)", "rest < n ?": "rest < n - 1 ?"}
    changed_kernels("cooling", {HEADERS: "0", **changes})
    ways = cooling.Ways(device, load("cooling"), *(cuda.zeros(1003, np.float32) for _ in "ab"))
    rows = [Row(name, check=Check(name, True)) for name in (cooling.TEMPORARY, BY_HAND)]
    wrong = {check.fact.split(":")[0] for check in cooling.planted(ways, rows) if not check.holds}
    assert wrong == {cooling.TEMPORARY, BY_HAND}


def test_without_the_headers_what_is_by_hand_is_still_checked(device, changed_kernels):
    changed_kernels("cooling", {HEADERS: "0"})
    done = run_stop("cooling", device, 1003)
    assert done.state == "passed"
    missing = {row.name for row in done.result.all_rows if row.note.startswith("Skipped")}
    assert {cooling.ZIPPED, "counting and transform", "cuda::std::mdspan", "counting_iterator"} <= missing
    assert not missing & {cooling.TEMPORARY, BY_HAND, "a kernel for the step"}
