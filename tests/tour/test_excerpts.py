from __future__ import annotations

import pytest

from library_tour import excerpts


@pytest.mark.parametrize(
    ("stop", "name", "first", "last"),
    [
        ("transpose", "TILE", "constexpr int TILE = 32;", "constexpr int TILE = 32;"),
        ("transpose", "transpose_tile<1>", "template <int padding>", "}"),
        ("transpose", "Square", "// Rows of a 4 x 4 block.", "};"),
        (
            "transpose",
            "reference",
            "def reference(matrix: Floats) -> Floats:",
            "    return np.ascontiguousarray(matrix.T)",
        ),
        ("transpose", "Way", "class Way(NamedTuple):", "    down: bool = False"),
        ("reduction", "block_sum", "template <class Number>", "}"),
        ("reduction", "finished", "// The number of blocks that have finished; zero", "__device__ unsigned finished;"),
        ("reduction", "COURSE_MS", "COURSE_MS = {", "8.04e3 / 256}"),
        ("local_memory", "count_unrolled<8>", "template <int blocks>", "}"),
        ("nan_check", "Layout<double>", "template <>", "};"),
        ("nan_check", "Group", "// As many numbers as one load takes.", "};"),
        ("copies", "run", "def run(", ""),
        ("graphs", "Cooling.as_graph", "    def as_graph(self) -> None:", "        self.graph.launch(self.stream)"),
    ],
)
def test_a_definition_is_found_with_the_comment_above_it(stop, name, first, last):
    found = excerpts.find(stop, name)
    assert found.lines[0].startswith(first)
    assert found.lines[-1].endswith(last)
    lines = found.file.read_text().splitlines()
    assert lines[found.first - 1 : found.first - 1 + len(found.lines)] == list(found.lines)


def test_uses_and_comments_are_not_taken_for_a_definition_and_a_specialisation_has_its_arguments():
    found = excerpts.find("transpose", "load_square")
    assert found.lines[1].startswith("__device__ Square load_square(const float* in")
    assert excerpts.find("nan_check", "Layout<double>").lines[1] == "struct Layout<double> {"
    assert excerpts.find("nan_check", "Layout<float>").lines[1] == "struct Layout<float> {"


def test_a_name_that_is_nowhere_is_an_error_with_the_files():
    with pytest.raises(LookupError, match=r"reduction.cu, block_sum.cuh"):
        excerpts.find("reduction", "nothing")
