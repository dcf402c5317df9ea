from library_tour.course.debug_print import SHOWN_LANES, compare_lines, read_by


def pairs(text):
    return [tuple(map(int, pair.strip("()").split(","))) for pair in text.split()]


COURSE_32 = pairs("(0,2) (1,3) (13,15) (14,16) (15,17) (16,18) (17,19) (29,31) (30,30) (31,31)")


def test_a_shuffle_reads_what_the_course_shows(rows):
    course_16 = [*COURSE_32[:3], (14, 14), (15, 15), *COURSE_32[5:]]
    for width, expected in ((32, COURSE_32), (16, course_16)):
        assert [pair for pair in read_by(width) if pair[0] in SHOWN_LANES] == expected
        assert pairs(rows[f"shuffle, width {width}"].note) == expected


def test_printing_costs_registers_and_stack(result):
    [costs] = result.tables.values()
    without, with_ = (row.values for row in costs)
    assert without["registers"] < with_["registers"]
    assert without["stack bytes"] < with_["stack bytes"]


def test_the_detail_shows_the_first_line_that_differs():
    for got, detail in ((["a", "x"], "'x' instead of 'b'"), (["a"], "1 lines instead of 2"), (["a", "b"], "")):
        check = compare_lines("lines", got, ["a", "b"])
        assert (check.holds, check.detail) == (not detail, detail)
