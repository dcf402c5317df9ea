from itertools import pairwise

from library_tour import excerpts, lesson, steps, stops
from library_tour.lesson import Exercise, Lesson, Step

EXERCISE = Exercise(task="", hints=[], answer="", check=lambda answer: [])


def marked(stop: str, name: str, of: Lesson | None = None) -> list[str]:
    """Return the lines of a step that are marked as changed, from all pieces of its code."""
    of = of or lesson.load(stop)
    step = next(step for step in of.steps if step.name == name)
    return [
        line.strip()
        for piece in steps.pieces(stop, of, step)
        for number, line in enumerate(piece.lines, piece.first)
        if number in piece.changed
    ]


def test_the_lines_that_differ_are_marked_and_the_kernels_name_is_not():
    assert marked("transpose", "naive") == ["out[size_t(column) * rows + row] = in[size_t(row) * columns + column];"]
    # Nothing is marked in the first step, or in one that is entirely new.
    assert marked("transpose", "plain copy") == marked("transpose", "4 x 4 in registers") == []


def test_another_instance_of_the_same_template_has_no_marks():
    instances = 0
    for stop in filter(lesson.has_lesson, stops.names()):
        of = lesson.load(stop)
        for before, step in pairwise(of.steps):
            shown = [excerpts.find(stop, name).lines for name in before.shows]
            for piece in steps.pieces(stop, of, step):
                if piece.arguments and piece.lines in shown and not step.compared_with:
                    assert not piece.changed, (stop, step.name, piece.name)
                    instances += not piece.known
    assert instances > 10


def test_a_step_may_be_compared_with_another_than_the_one_before():
    made = [Step(name=name, shows=[name], text="") for name in ("copy_plain", "transpose_registers")]
    for compared_with, count in (("copy_plain", 1), ("", 0)):
        last = Step(name="last", shows=["transpose_naive"], text="", compared_with=compared_with)
        of = Lesson(why="", learn=[], idea="", steps=[*made, last], look_at=[], exercise=EXERCISE, course="")
        assert len(marked("transpose", "last", of)) == count


def test_a_piece_tells_its_place_the_templates_arguments_its_language_and_whether_it_was_shown_before():
    of = lesson.load("transpose")
    [step] = [step for step in of.steps if step.name == "4 x 4, then a tile"]
    assert [piece.known for piece in steps.pieces("transpose", of, step)] == [True, True, True, False]
    [piece] = steps.pieces("transpose", of, of.steps[3])
    assert piece.caption == f"transpose.cu, from line {piece.first}, padding = 1"
    assert piece.language == "cuda"
    of = lesson.load("daxpy")
    assert [piece.language for piece in steps.pieces("daxpy", of, of.steps[0])] == ["cuda", "python"]
