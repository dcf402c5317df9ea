import pytest

from library_tour import excerpts


@pytest.mark.parametrize(
    ("stop", "name", "first", "last"),
    [
        ("transpose", "TILE", "constexpr int TILE = 32;", "constexpr int TILE = 32;"),
        ("transpose", "Square", "// The rows of a 4 x 4 square.", "};"),
        ("transpose", "reference", "def reference(matrix: Floats)", "    return np.ascontiguousarray(matrix.T)"),
        ("transpose", "Way", "class Way(NamedTuple):", "    down: bool = False"),
        ("reduction", "block_sum", "template <class Number>", "}"),
        ("reduction", "finished", "// The number of blocks that have finished; zero", "__device__ unsigned finished;"),
        ("reduction", "COURSE_MS", "COURSE_MS = {", "8.04e3 / 256}"),
        ("nan_check", "Layout<double>", "template <>", "};"),
        ("streams", "issued", "def issued(", "for piece in turn)"),
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
    assert excerpts.find("transpose", "load_square").lines[1].startswith("__device__ Square load_square(")
    for kind in ("float", "double"):
        assert excerpts.find("nan_check", f"Layout<{kind}>").lines[1] == f"struct Layout<{kind}> {{"


@pytest.mark.parametrize(
    ("stop", "name", "lines"),
    [
        ("gemm", "operation_row[got]", ["got = libraries.gemm("]),
        ("solver", "hilbert[a:x]", ["a = ", "b = ", "x = libraries.solve("]),
        ("sparse", "CapturedIteration.__init__[graph]", ["with stream.capture() as graph:", "    self.queue()"]),
    ],
)
def test_a_part_of_a_python_function_is_found_by_the_variables_to_which_it_assigns(stop, name, lines):
    found = excerpts.find(stop, name)
    assert [line.startswith(begin) for line, begin in zip(found.lines, lines, strict=True)] == [True] * len(lines)
    assert found.file.read_text().splitlines()[found.first - 1].strip() == found.lines[0]


def test_a_part_that_a_function_does_not_have_is_an_error():
    with pytest.raises(LookupError, match=r"no operation_row\[nothing\]"):
        excerpts.find("gemm", "operation_row[nothing]")


def test_a_name_that_is_nowhere_is_an_error_with_the_files():
    with pytest.raises(LookupError, match=r"reduction.cu, block_sum.cuh"):
        excerpts.find("reduction", "nothing")
