"""The commands `show`, `exercise` and `glossary`: print a lesson, check an answer to an exercise, explain a term."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.markdown import Markdown
from rich.syntax import Syntax
from rich.text import Text

import cudart_py as cuda

from . import answers, glossary, lesson, listing, logbook, path, recorded, report, steps, stops
from .diagrams.drawn import StepDiagram, diagrams_of
from .lesson import COURSE, IDEA, LEARN, LOOK_AT, STEPS, Exercise, Lesson
from .ranks import Ranks
from .runner import Outcome, run_stop
from .usage import UsageError, wrong_usage_if

GOOD, BAD = 0, 1
LANGUAGES = {".cu": "CUDA C++", ".py": "Python"}


def show(name: str, device: cuda.Device, size: int | None, together: Ranks | None, *, draw: bool = False) -> int:
    """Print a stop's lesson with its results on a device and those from an H200; return the command's status.

    With `draw`, the diagrams of the steps are printed too. Among MPI ranks, the first one prints, and the others print
    only what is wrong. A rank that cannot run the stop ends all ranks.
    """
    if together:
        together.warn_of_same_devices(device)
    of = lesson.load(name) if lesson.has_lesson(name) else None
    console = report.console()
    console.quiet = quiet = bool(together and together.rank)
    console.print(report.headline(name, stops.load(name).TITLE))
    console.print(Text(listing.about(path.position(name)), "dim"))
    console.print(Text("To look up a term: library-tour glossary TERM", "dim"))
    if of:
        _print(console, _code(name, of, diagrams_of(name) if draw and not quiet else ()))
    console.print(_heading("On this machine"))
    outcome = run_stop(name, device, size)
    if together and outcome.message:
        together.end(f"{name}: {outcome.message}")
    console.quiet = quiet and not outcome.bad
    console.print(report.figures(outcome))
    console.quiet = quiet
    if (known := recorded.stop(name)) is not None:
        console.print(_heading(f"Recorded: {recorded.machine()}"))
        result = recorded.result(known)
        done = Outcome(name, known["title"], known["size"], outcome.counts, known["seconds"], "passed", result)
        console.print(report.figures(done, printed=outcome.result))
    if of:
        _print(console, _rest(name, of))
    if not (together and together.rank):
        logbook.add(shown=[name])
    return BAD if outcome.bad else GOOD


def exercise(name: str, file: Path | None, *, hint: int, solution: bool) -> int:
    """Print an exercise, and write the code that it starts from into the working directory; or check an answer.

    Return the command's status: 0, or 1 if an answer is not right. Raises UnknownStopError and UnknownExerciseError
    for a name that no stop and no exercise has, MissingLessonError for a stop without an exercise, and UsageError for a
    file that cannot be read or written.
    """
    of = lesson.exercise(name)
    console = report.console()
    if hint:
        hints = of.hints
        if hint > len(hints):
            raise UsageError(f"the exercise of {name} has {lesson.number_of(len(hints), 'hint')}, not {hint}")
        console.print(Markdown(hints[hint - 1]))
        if hint < len(hints):
            console.print(Text(f"\nFor the next hint: library-tour exercise {name} --hint {hint + 1}"))
    elif solution:
        console.print(Markdown(of.answer), Text(""))
        _print_source(console, lesson.solution(name))
    elif file:
        return _check(console, name, file)
    else:
        _begin(console, name, of)
    return GOOD


def explain(word: str) -> None:
    """Print a term's definition, or the whole glossary for ""; raise UnknownTermError for a word that it lacks."""
    console = report.console()
    if word:
        term = glossary.explained(word)
        console.print(Text(term.heading, "bold cyan"), Markdown(term.definition))
    else:
        console.print(Markdown(glossary.find().read_text(encoding="utf-8")))


def _begin(console: Console, name: str, of: Exercise) -> None:
    start = lesson.start(name)
    place = Path(start.name)
    console.print(Markdown(of.task))
    if place.exists():
        state = f"{place} already exists and was left unchanged"
    else:
        with wrong_usage_if(OSError):
            shutil.copyfile(start, place)
        state = f"written: {place}"
    console.print(Text(f"\n{state}. To check it: library-tour exercise {name} {place}"), soft_wrap=True)


def _check(console: Console, name: str, file: Path) -> int:
    _refuse_other_files(name, file)
    [found] = answers.check_answers(name, [file])
    for check in found:
        # Source lines keep their columns, to which the compiler's carets point.
        first, *rest = report.tried(check).split("\n")
        console.print(first)
        console.print(*rest, sep="\n", end="\n" if rest else "", soft_wrap=True)
    right = all(check.holds for check in found)
    if not right:
        console.print(Text(f"not solved; for a hint: library-tour exercise {name} --hint"))
        return BAD
    logbook.add(passed=[name])
    console.print(Text("solved", "bold green"))
    stop = name.partition("/")[0]
    console.print(*_further(stop, lesson.load(stop), but=name), _following(stop), sep="\n")
    return GOOD


def _refuse_other_files(name: str, file: Path) -> None:
    """Raise UsageError for a file that cannot be read or is not in the exercise's language, instead of judging it."""
    if not file.is_file():
        raise UsageError(f"{file} does not exist; to begin: library-tour exercise {name}")
    suffix = lesson.start(name).suffix
    if file.suffix != suffix:
        raise UsageError(f"the answer to {name} must be a {LANGUAGES[suffix]} file ({suffix}), not {file.name}")
    with wrong_usage_if(OSError):
        file.open().close()


def _print(console: Console, parts: Iterator[RenderableType]) -> None:
    for part in parts:
        console.print(part)


def _heading(text: str) -> Text:
    return Text(f"\n{text}", "bold underline")


def _list(texts: Sequence[str]) -> Markdown:
    return Markdown("\n".join(f"- {text}" for text in texts))


def _code(name: str, of: Lesson, diagrams: Sequence[StepDiagram]) -> Iterator[RenderableType]:
    yield Text("")
    yield Markdown(of.why)
    yield _heading(LEARN)
    yield _list(of.learn)
    yield _heading(IDEA)
    yield Markdown(of.idea)
    yield _heading(STEPS)
    yield Text("The mark ❱ indicates lines that differ from the previous step.", "dim")
    for at, step in enumerate(of.steps, 1):
        yield Text(f"\n{at}. {step.name}", "bold")
        yield Markdown(step.text)
        for piece in steps.pieces(name, of, step):
            yield Text(f"{piece.title}: {piece.caption}" + (", as before" if piece.known else ""), "dim")
            if not piece.known:
                yield Syntax(
                    "\n".join(piece.lines), piece.language, theme="ansi_dark", word_wrap=True, line_numbers=True,
                    start_line=piece.first, highlight_lines=set(piece.changed), background_color="default",
                )  # fmt: skip  # grouped by meaning
        for diagram in diagrams:
            if diagram.step == step.name:
                yield Text(f"\n{diagram.says}")
                yield Text(f"{diagram.text}\n", no_wrap=True)


def _rest(name: str, of: Lesson) -> Iterator[RenderableType]:
    yield _heading(LOOK_AT)
    yield _list(of.look_at)
    yield Text(f"\nTo see this as a page with pictures: library-tour run {name} --html pages", "dim")
    yield _heading("Exercise")
    yield Markdown(of.exercise.task)
    yield Text(f"\nTo begin: library-tour exercise {name}")
    yield from _further(name, of)
    yield _heading(COURSE)
    yield Markdown(of.course)
    if terms := _terms(name, of):
        yield _heading("Terms in this lesson")
        yield Text(", ".join(term.heading.partition(",")[0] for term in terms))
    yield Text("")
    yield from _neighbours(name)


def _terms(name: str, of: Lesson) -> Sequence[glossary.Term]:
    texts = [of.why, *of.learn, of.idea, *(step.text for step in of.steps), *of.look_at, of.exercise.task]
    return glossary.used(texts, name)


def _further(stop: str, of: Lesson, but: str = "") -> Iterator[Text]:
    """Yield the commands that begin the further exercises of a stop, except for `but` and those that are passed."""
    passed = logbook.known().passed
    for each in of.further:
        if (name := f"{stop}/{each.name}") != but and name not in passed:
            yield Text(f"{each.name.capitalize()} exercise: library-tour exercise {name}")


def _neighbours(name: str) -> Iterator[Text]:
    route = logbook.followed()
    previous, _ = path.neighbours(name, route)
    if previous and path.is_on(name, route):
        yield Text(f"Previous{_on(route)}: library-tour show {previous}", "dim")
    yield _following(name)


def _following(name: str) -> Text:
    """Return a line that names the next stop that the reader has not seen, or else the open exercises.

    If the stop is not on the followed route, the line says so.
    """
    progress = logbook.known()
    route = progress.route
    names = path.ROUTES[route].names if route else path.names()
    on_the_way = [other for other in path.names() if other == name or other in names]
    following = logbook.ahead(progress, on_the_way, name)
    outside = "" if path.is_on(name, route) else f"Not{_on(route)}. "
    if following:
        return Text(
            f"{outside}{'Back to it' if outside else f'Next{_on(route)}'}: library-tour show {following}", "dim"
        )
    rest = logbook.open_exercises(progress, names) or path.AFTER_A_ROUTE
    return Text(f"{outside}You have seen every stop{_on(route)}. {rest}", "dim")


def _on(route: str) -> str:
    return f" on the route {route}" if route else ""


def _print_source(console: Console, path: Path) -> None:
    """Print a file of code whole: wrapped and highlighted on a terminal, and otherwise as it is."""
    code = path.read_text(encoding="utf-8")
    if not console.is_terminal:
        console.out(code, end="")
    else:
        language = lesson.language_of(path)
        console.print(Syntax(code, language, theme="ansi_dark", word_wrap=True, background_color="default"))
