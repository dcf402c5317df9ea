"""The glossary defines each term once, and a lesson's page links to the glossary at its first use of a term."""

import re

import pytest

from library_tour import glossary, stops
from library_tour.glossary import Links

ANCHORS = {term.anchor for term in glossary.terms().values()}
# Terms that lessons use from their first lines on.
FIRST = ("warp", "lane", "sector")


def test_a_term_is_defined_once_in_one_or_two_sentences():
    text = glossary.find().read_text()
    headings = re.findall(r"^### (.*)$", text, re.MULTILINE)
    forms = [form for heading in headings for form in heading.lower().split(", ")]
    assert sorted(set(forms)) == sorted(forms) == sorted(glossary.terms())
    assert len(ANCHORS) == len(headings)
    for term in glossary.terms().values():
        assert 1 <= len(re.findall(r"[.]+(?=\s|$)", term.definition)) <= 2, term
        assert term.definition.endswith("."), term


def test_only_the_first_use_of_a_term_is_linked_and_code_and_links_are_left_alone():
    links = Links("page.html", "daxpy")
    text = (
        "`warp` and [a warp](x), warpSize\n\n    warp 0\n\nLanes of a warp. A lane, two warps, bank conflicts: banks."
    )
    linked = links.link(text)
    assert linked == text.replace("Lanes of a warp", "[Lanes](page.html#lane) of a [warp](page.html#warp)").replace(
        "bank conflicts: banks", "[bank conflicts](page.html#bank-conflict): [banks](page.html#bank)"
    )
    assert links.link("Another warp") == "Another warp"
    assert Links("page.html", "daxpy").link("```\nwarp\n```") == "```\nwarp\n```"


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("threadIdx.x", "Thread"),
        ("blockIdx", "Block, thread block"),
        ("gridDim.y", "Grid"),
        ("__syncthreads", "Barrier"),
        ("atomicAdd()", "Atomic, atomic operation"),
        ("__shfl_down_sync", "Shuffle"),
        ("sanitizer", "Sanitizer, compute-sanitizer"),
        ("cuda.sanitizer()", "Sanitizer, compute-sanitizer"),
        *((f"{letters}X", glossary.terms()[term].heading) for letters, term in glossary.NAMES.items()),
    ],
)
def test_a_name_of_cuda_leads_to_its_term(name, heading):
    assert glossary.explained(name).heading == heading


def test_a_word_in_another_sense_is_not_linked():
    assert Links("page.html", "sparse").link("a grid of blocks") == "a grid of [blocks](page.html#block-thread-block)"
    assert set(glossary.OTHER_SENSES) <= set(stops.names())
    assert {word for words in glossary.OTHER_SENSES.values() for word in words} <= set(glossary.terms())


@pytest.mark.xdist_group("pages of the site")
def test_links_lead_to_terms_and_the_first_terms_of_a_lesson_are_linked_before_they_are_used(site_pages):
    assert set(site_pages) == set(stops.names())
    for name, page in site_pages.items():
        anchors = re.findall(r"\]\(\.\./\.\./glossary\.md#([\w-]+)\)", page)
        assert len(set(anchors)) == len(anchors), name
        assert set(anchors) <= ANCHORS, name
        # Code, pictures, headings, tables and collapsed texts, which are indented, have no links.
        unlinked = r"```.*?^ *```$|`[^`\n]*`|!\[.*?\]\(pictures/[^)]*\)|^(#|\|| {4}).*?$"
        prose = re.sub(unlinked, "", page, flags=re.DOTALL | re.MULTILINE)
        for term in FIRST:
            first = re.search(rf"(?<![\w/#-])(?<!atomic ){term}s?(?![\w-])", prose, re.IGNORECASE)
            assert first is None or prose[first.end() :].startswith(f"](../../glossary.md#{term})"), (name, term)
