"""Phrases that no native speaker would write stay out of the documentation, of docstrings and of comments."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
READ = ("README.md", "docs/**/*.md", "cudart_py/**/*.py", "library_tour/**/*.py")
# A script writes the page. The folder describes the internals of the simulator's engines.
LEFT_OUT = ("docs/h200.md", "cudart_py/simulator/ptx/")

WORK = "threads?|blocks?|warps?|lanes?|bytes|sectors|atomics?|instructions|registers|elements"
EACH = "element|row|column|load|store|launch|warp|block|multiprocessor|cycle|thread|lane|second|instruction|frame"


class Habit(NamedTuple):
    """A pattern that is never right; `wrong` is a text that it finds, and `right` says the same without a match."""

    pattern: str
    wrong: str
    right: str


HABITS = (
    # A sentence that opens with a free relative hides its subject until the end.
    Habit(
        r"(?:^|(?<=[.:!?] ))(?:What|Which|How)\b(?! to\b)[^.?\n]*(?=\.|$)",
        "How a launch is checked. What fails is named.",
        "The checks of a launch. How many threads? How to choose a block.",
    ),
    # "Is" is negated with "not"; "no" goes with "there is" and "has".
    Habit(
        r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|\w+er\b)",
        "a size that is no multiple of 16",
        "a size that is not a multiple of 16; there is no driver, and it is no longer needed",
    ),
    # A rate takes "per".
    Habit(rf"\b(?:{WORK}) an? (?:{EACH})\b", "256 threads a block", "256 threads per block"),
    Habit(r"\ba (?:thread|block|warp|lane|atomic) for each\b", "a thread for each row", "one thread per row"),
    # "At least" and "at most" stand before the number.
    Habit(r"\b(?:of|from|after) [\d,.]+ at (?:least|most)\b", "an index of 0 at least", "an index of at least 0"),
    # Words where English or CUDA has another, usual one.
    Habit(r"\bin the mean\b", "64 steps in the mean", "64 steps on average"),
    Habit(r"\bin turns\b", "measured in turns", "measured alternately; the two take turns"),
    Habit(r"\bdivided by (?:commas|spaces)\b", "names, divided by commas", "names, separated by commas"),
    Habit(r"\band (?:its|their) (?:kin|like)\b", "cublasSgemm and its kin", "cublasSgemm and related functions"),
    Habit(r"\bone behind (?:the other|another)\b", "elements that lie one behind the other", "contiguous elements"),
    Habit(r"\bin one piece\b", "The rows lie in one piece.", "The rows are contiguous."),
    Habit(r"\bspoil(?:s|ed|t|ing)?\b", "a spoiled capture", "an invalidated capture"),
    Habit(r"\bmend(?:s|ed|ing)?\b", "It mends the kernel.", "It fixes the kernel."),
    Habit(r"\bwhat there is\b", "| part | what there is |", "| part | contents |"),
    # "Also" does not introduce an addition to the noun before it.
    Habit(
        r", also (?:in|of|for|with|inside|where|when|at|to|from|on|if|by|an?|the)\b",
        "Copies, also of two dimensions",
        "Copies, including those of two dimensions",
    ),
)


def paragraphs_of_page(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each paragraph, item, heading and cell of a Markdown page."""

    def blank(match: re.Match[str]) -> str:
        return "\n" * match[0].count("\n")

    text = re.sub(r"^```.*?^```$|<!--.*?-->", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    start = r"^(?=[|#>]|\s*(?:-|\d+\.) )"
    line = 1
    for part in re.split(rf"(\n\s*\n|\n{start})", text, flags=re.MULTILINE):
        words = re.sub(r"^(?:[#>]+|-|\d+\.) +", "", part.strip()).replace("**", "")
        for cell in words.split("|") if words.startswith("|") else [words]:
            yield line, cell
        line += part.count("\n")


def paragraphs_of_docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number of each module, class and function with each paragraph of its docstring."""
    nodes: list[ast.AST] = [ast.parse(text)]
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                yield getattr(node, "lineno", 1), paragraph
        nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt | ast.ExceptHandler)]


def paragraphs_of_comments(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each comment that has lines of its own."""
    for match in re.finditer(r"(?:^ *# .*\n)+", text, re.MULTILINE):
        yield text.count("\n", 0, match.start()) + 1, re.sub(r"^ *# ", "", match[0], flags=re.MULTILINE)


def paragraphs_of_module(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of the docstrings and the comments of a module."""
    yield from paragraphs_of_docstrings(text)
    yield from paragraphs_of_comments(text)


def found_in(paragraphs: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the phrases that match a habit, ignoring code, with the line numbers of their paragraphs."""
    numbered = list(paragraphs)
    lines = "\n".join(re.sub(r"`[^`]*`", "`code`", " ".join(text.split())) for _, text in numbered)
    matches = [match for habit in HABITS for match in re.finditer(habit.pattern, lines, re.MULTILINE)]
    return [(numbered[lines.count("\n", 0, match.start())][0], match[0][:60]) for match in matches]


@pytest.mark.parametrize("habit", HABITS, ids=[habit.wrong for habit in HABITS])
def test_a_habit_is_found_where_it_is_wrong_alone(habit):
    assert re.search(habit.pattern, habit.wrong)
    assert found_in([(1, habit.right)]) == []


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("# Title\n\nOne.\nWhat\nfollows.\n", [(3, "What follows")]),
        ("- One.\n- 4 bytes a\n  row.\n", [(2, "bytes a row")]),
        ("| a | b |\n|---|---|\n| `x` | What it is. |\n", [(3, "What it is")]),
        ("One.\n\n```text\nWhat it is.\n```\n\n    What it is.\n\n`What it is.`\n", []),
    ],
)
def test_prose_is_found_in_a_page_with_its_line_and_code_is_not(page, expected):
    assert found_in(paragraphs_of_page(page)) == expected


def test_prose_is_found_in_docstrings_and_comments_and_code_is_not():
    module = '"""A module.\n\nWhat it does.\n"""\n\nx = 1  # What x is.\n# How y\n# is set.\ny = "What y is."\n'
    assert found_in(paragraphs_of_module(module)) == [(1, "What it does"), (7, "How y is set")]


def test_no_text_has_one_of_the_habits():
    offenders = []
    for path in sorted(path for pattern in READ for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(LEFT_OUT):
            paragraphs = paragraphs_of_page if path.suffix == ".md" else paragraphs_of_module
            found = found_in(paragraphs(path.read_text(encoding="utf-8")))
            offenders += [f"{name}:{line}: {phrase}" for line, phrase in found]
    assert not offenders, "\n".join(offenders)
