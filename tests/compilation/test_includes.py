"""The scan for included files: a cached image is never older than a header that it was compiled from."""

import os
import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cudart_py.compilation import compiler, includes
from cudart_py.compilation.compiler import compile_image
from cudart_py.errors import CompileError
from library_tour.device_code import find

pytestmark = pytest.mark.usefixtures("place")
ARCH = "compute_90"  # the tests read the PTX alone
KERNEL = "\n__global__ void k(int* x) { *x = VALUE; }\n"


def value_of(source, **arguments):
    """Return the four-digit number that the kernel stores, read from its PTX."""
    return re.search(rb", (\d{4});", compile_image(source, arch=ARCH, **arguments).ptx)[1].decode()


def write(path, number):
    path.write_text(f"#define VALUE {number}\n")


def check_editing(header, source, *, texts=("#define VALUE 1234\n", "#define VALUE 5678\n"), **arguments):
    """Check that the kernel is compiled again after its header changed, or appeared where the first text is None."""
    for text, number in zip(texts, ("1234", "5678"), strict=True):
        if text is not None:
            header.write_text(text)
        assert value_of(source, **arguments) == number


APPEARS = None, ""
SPELLINGS = {
    "comment before": '/* c */ #include "value.cuh"',
    "comment over lines before": '/* c\n */ #include "value.cuh"',
    "comment after the hash": '# /**/ include "value.cuh"',
    "comment before the name": '#include/* "other.cuh"\n */"value.cuh"',
    "many comments": "#" + "/**/ " * 50 + "include" + "/* */" * 50 + '"value.cuh"',
    "digraph": '%:include "value.cuh"',
    "spliced": '#incl\\\nude "value.cuh"',
    "spliced by CR LF": '#incl\\\r\nude "value.cuh"',
    "spliced hash": '#\\\n\\\ninclude "value.cuh"',
    "spliced name": '#include "val\\\nue.cuh"',
    "spliced comment": '#/\\\n* c *\\\n/include "value.cuh"',
    "form feeds": '\f#\finclude\f"value.cuh"',
    "vertical tabs": '\v#\vinclude\v"value.cuh"',
    "carriage returns": '\r#\rinclude\r"value.cuh"',
    "include_next": '#include_next "value.cuh"',
    "no blanks": '#include"value.cuh"',
    "text behind the name": '#include "value.cuh" // c',
    "after a raw string": '#define T R"(\n"/*)"\n#include "value.cuh"',
    "after what looks like a comment in a string": '#define T "#/*"\n#include "value.cuh"\n#define U "*/ include"',
    "after an apostrophe": '#if 0\ndon\'t\n#endif\n#include "value.cuh"',
    "in a condition": '#if __CUDA_ARCH__\n#include "value.cuh"\n#endif',
    "by a macro": '#define H "value.cuh"\n#include H',
    "by a macro with arguments": "#define H(x) #x\n#include H(value.cuh)",
    "trigraph": '??=include "value.cuh"',
    "spliced by a trigraph": '#incl??/\nude "value.cuh"',
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS)
def test_editing_a_header_rebuilds_however_it_is_included(tmp_path, spelling):
    path = tmp_path / "k.cu"
    path.write_text(spelling + KERNEL, newline="")
    # C++17 removed trigraphs.
    check_editing(tmp_path / "value.cuh", path, std=14 if "??" in spelling else None)


QUESTION = '#if defined(__has_include)\n#if __has_include("a.cuh")\n#endif\n#endif\n'


# A piece of __has_include where no macro can paste it: PTX has operands named `_`.
PIECES = "__device__ const char* ptx = \"mov.b32 {%0, _}, %1;\";\n__device__ char sink = '_';\n// _\n/* _\n_ */\n"


@pytest.mark.parametrize("before", ["#/* c */include /**/", f"{QUESTION}#include", f"{PIECES}#include"])
def test_spellings_that_are_read_are_cached(builds, tmp_path, before):
    path = tmp_path / "k.cu"
    path.write_text(f'{before} "value.cuh"{KERNEL}')
    for number, count in ((1234, 1), (1234, 1), (5678, 2), (1234, 2)):
        write(tmp_path / "value.cuh", number)
        value_of(path)
        assert len(builds) == count


def test_the_tours_kernels_are_compiled_once():
    folder = find("vector_add").parent
    sources = {path: path.read_bytes() for path in sorted(folder.glob("*.cu"))}
    assert sources
    scans = {path: includes.scan(text, str(folder), (), (), (), call="compile") for path, text in sources.items()}
    assert [path.name for path, scan in scans.items() if not scan.certain] == []


ASKED = '"asked.cuh"'
ASKING = {
    "a name": f"#if __has_include({ASKED})",
    "with comments": f"#if __has_include /* c */ ( /* c */ {ASKED} /* c */ )",
    "spliced": f"#if __has_\\\ninclude({ASKED})",
    "elif": f"#if 0\n#elif __has_include({ASKED})",
    "a name in a macro": f"#define H {ASKED}\n#if __has_include(H)",
    "a macro for a question": f"#define ASK __has_include({ASKED})\n#if ASK",
    "another name for it": f"#define HAS __has_include\n#if HAS({ASKED})",
    "a macro with arguments": f"#define HAS(x) __has_include(x)\n#if HAS({ASKED})",
    "pasted": f"#if PASTE(__has_, include)({ASKED})",
    "pasted after a number": f"#define H {ASKED}\n#if 1'0 == 10 && PASTE(_, _has_include)(H)",
    "pasted after a character": f"#define H {ASKED}\n#if '\"' && PASTE(_, _has_include)(H)",
    "pasted after a raw string": f'#define H {ASKED}\n#define A R"x("/*)x"\n#if PASTE(_, _has_include)(H)',
    "pasted after a string": f'#define H {ASKED}\n#define A "/*"\n#if PASTE(_, _has_include)(H)',
    "pasted after a comment": f'#define H {ASKED}\n/* " */ // /*\n#if PASTE(_, _has_include)(H)',
    "after asking for itself": f"#if defined(__has_include) && __has_include({ASKED})",
    "an option": f"#if OPTION({ASKED})",
    "an option with arguments": f"#if OPTION_OF({ASKED})",
}
OPTIONS = {"OPTION": "__has_include", "OPTION_OF(x)": "__has_include(x)"}


@pytest.mark.parametrize("condition", ASKING.values(), ids=ASKING)
def test_a_header_that_is_asked_for_and_appears_rebuilds(tmp_path, condition):
    path = tmp_path / "k.cu"
    paste = "#define PASTE(a, b) a##b\n" if "PASTE" in condition else ""
    path.write_text(f"{paste}{condition}\n#define VALUE 5678\n#else\n#define VALUE 1234\n#endif{KERNEL}")
    define = {name: value for name, value in OPTIONS.items() if f"{name.removesuffix('(x)')}(" in condition}
    check_editing(tmp_path / "asked.cuh", path, texts=APPEARS, define=define)


def test_a_condition_of_a_macro_that_looks_into_another_folder_rebuilds(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "macros.cuh").write_text('#define ASK __has_include("asked.cuh")\n')
    (tmp_path / "deep" / "user.cuh").write_text("#if ASK\n#define VALUE 5678\n#else\n#define VALUE 1234\n#endif\n")
    path = tmp_path / "k.cu"
    path.write_text('#include "macros.cuh"\n#include "deep/user.cuh"' + KERNEL)
    check_editing(tmp_path / "deep" / "asked.cuh", path, texts=APPEARS)


PRE_INCLUDES = [
    ["--pre-include={}"],
    ["-include", "{}"],
    ["  -include={} "],
    ["-include", "value.cuh"],
    ["-include=value.cuh", "-I", "nowhere"],
]


@pytest.mark.parametrize("options", PRE_INCLUDES, ids=" ".join)
def test_editing_a_file_included_before_the_source_rebuilds(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    header = tmp_path / "value.cuh"
    check_editing(header, KERNEL, options=[option.format(header) for option in options])


@pytest.mark.parametrize(
    ("source", "options"), [(KERNEL, ["-include=value.cuh", "-Ifolder"]), (f"#include <value.cuh>{KERNEL}", [])]
)
def test_a_header_that_appears_in_front_rebuilds(tmp_path, monkeypatch, source, options):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    include = () if options else (tmp_path, tmp_path / "folder")
    write(tmp_path / "folder" / "value.cuh", 1234)
    texts = None, "#define VALUE 5678\n"
    check_editing(tmp_path / "value.cuh", source, texts=texts, options=options, include=include)


@pytest.mark.parametrize("option", ["-I{}", "-I {}", " -I  {} ", "-I={}", "--include-path={}"])
def test_folders_of_options_are_searched_however_they_are_spelled(tmp_path, option):
    (tmp_path / "outer.cuh").write_text('#include "value.cuh"\n')
    check_editing(tmp_path / "value.cuh", f"#include <outer.cuh>{KERNEL}", options=[option.format(tmp_path)])


def test_parents_of_symbolic_links_are_the_systems(tmp_path):
    real = tmp_path / "real" / "deep"
    real.mkdir(parents=True)
    (tmp_path / "link").symlink_to(real)
    write(tmp_path / "value.cuh", 9999)
    path, target = tmp_path / "k.cu", tmp_path / "real" / "value.cuh"
    path.write_text('#include "link/../value.cuh"' + KERNEL)
    check_editing(target, path)
    check_editing(target, "#include <value.cuh>" + KERNEL, options=[f"-I{tmp_path}/link/.."])


def test_a_file_that_includes_itself_by_longer_and_longer_paths_ends(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.cuh").write_text('#pragma once\n#define VALUE 1234\n#include "../x/a.cuh"\n')
    (tmp_path / "k.cu").write_text('#include "x/a.cuh"' + KERNEL)
    assert value_of(tmp_path / "k.cu") == "1234"


def test_a_folder_in_the_place_of_a_header_is_passed_over_and_closed(tmp_path):
    (tmp_path / "value.cuh").mkdir()
    (tmp_path / "one").mkdir()
    write(tmp_path / "one" / "value.cuh", 1234)
    (tmp_path / "k.cu").write_text('#include "value.cuh"' + KERNEL)
    value_of(tmp_path / "k.cu", include=tmp_path / "one")
    opened = os.listdir("/proc/self/fd")
    assert value_of(tmp_path / "k.cu", include=tmp_path / "one") == "1234"
    assert len(os.listdir("/proc/self/fd")) == len(opened)


def test_a_header_edited_during_the_compile_is_not_cached_under_its_old_content(monkeypatch, tmp_path):
    path, header = tmp_path / "k.cu", tmp_path / "value.cuh"
    path.write_text('#include "value.cuh"' + KERNEL)
    write(header, 1234)
    build = compiler._compile

    def edited(request, inclusions):
        write(header, 5678)
        return build(request, inclusions)

    monkeypatch.setattr(compiler, "_compile", edited)
    assert value_of(path) == "5678"
    monkeypatch.setattr(compiler, "_compile", build)
    write(header, 1234)
    assert value_of(path) == "1234"


@pytest.mark.parametrize("macro", ["__TIME__", "__DATE__"])
def test_the_time_of_the_compile_is_never_cached(builds, macro):
    source = f"__constant__ char made[] = {macro};\n__global__ void k(char* x) {{ *x = made[0]; }}\n"
    compile_image(source)
    compile_image(source)
    assert len(builds) == 2


def test_a_file_that_the_compiler_writes_is_written_every_time(tmp_path):
    times = tmp_path / "times.csv"
    for _ in range(2):
        compile_image("#define VALUE 1234" + KERNEL, options=[f"--time={times}"])
        assert times.exists()
        times.unlink()


def test_odd_texts_take_time_in_proportion(python):
    """The scan takes a second where a quadratic one would take an hour, and exceed the time limit."""
    texts = ["#/*", "#", "# ", "#include/*", "#if#if", "#if (", "#define ", "\\\n", "/*", "__has_include"]
    texts += ['"', '\\"', "'", "1'"]
    code = "from cudart_py.compilation import includes\n"
    code += f"for text in {texts}: includes.scan(text.encode() * 10_000, '.', (), (), (), call='compile')"
    python(code)


# Text that may stand between the tokens of a directive, and text that changes how the rest is read.
_blank = st.lists(
    st.sampled_from([" ", "\t", "\f", "\v", "\r", "\\\n", "\\\r\n", "/* c */", "/*\n*/", '/*"*/', "/*'*/", "/*#*/"]),
    max_size=3,
).map("".join)
_before = st.lists(
    st.sampled_from(
        [
            "\n", "/* c */", "// c\n", "// c\\\n", '#define A "/*"\n', "#define B '\"'\n", '#define C R"(\n/*)"\n',
            "#if 0\ndon't\n#endif\n", "#if 1\n#else\n#endif\n", "#define D 1'000\n", "#define F __has_include\n",
            '#define E R"x(\\\n)x"\n', "#define INCLUDE include\n", "#pragma once\n", "// ??/\n",
        ]
    ),
    max_size=3,
).map("".join)  # fmt: skip  # easier to read than one item per line


@st.composite
def _spliced(draw, word):
    """Return a word with line continuations inserted at random."""
    cuts = draw(st.lists(st.integers(1, len(word)), max_size=2))
    for cut in sorted(cuts, reverse=True):
        word = word[:cut] + draw(st.sampled_from(["\\\n", "\\\r\n"])) + word[cut:]
    return word


@st.composite
def _directive(draw, name, std):
    """Return an `#include` of a file, or one below a `__has_include` of it, in an odd spelling."""
    blank = lambda: draw(_blank)  # noqa: E731  # a shorthand within this function
    quoted = draw(st.sampled_from([f'"{name}"', f"<{name}>"]))
    hash_sign = draw(st.sampled_from(["#", "#", "%:", "??=" if std == 14 else "#"]))
    kind = draw(st.sampled_from(["plain", "plain", "macro", "stringised", "asked", "alias"]))
    start = f"{draw(_before)}{blank()}{hash_sign}{blank()}"
    word = draw(_spliced(draw(st.sampled_from(["include", "include_next"]))))
    if kind == "plain":
        return f"{start}{word}{blank()}{draw(_spliced(quoted))}{blank()}\n"
    if kind == "macro":
        return f"#define H {quoted}\n{start}{word} {blank()}H\n"
    if kind == "stringised":
        return f"#define S(x) #x\n{start}{word} {blank()}S({name})\n"
    asking = "__has_include" if kind == "asked" else "HAS"
    condition = f"{start}if {asking}{blank()}({blank()}{quoted}{blank()})\n"
    return f"#define HAS __has_include\n{condition}#include {quoted}\n#endif\n"


def _result(path, folders, std, **arguments):
    """Return the kernel's PTX, or None for a source that does not compile."""
    try:
        return compile_image(path, arch=ARCH, include=folders, std=std, **arguments).ptx
    except CompileError:
        return None


@pytest.mark.parametrize("examples", [5, pytest.param(settings().max_examples // 8, marks=pytest.mark.exhaustive)])
def test_a_hit_is_what_a_compile_would_give(tmp_path, examples):
    """Includes in random spellings, in the source and in a header, of files that appear, change and disappear."""
    files = st.sampled_from(["here/v.cuh", "one/v.cuh", "two/v.cuh", "one/w.cuh", "here/w.cuh"])

    @settings(max_examples=examples)
    @given(st.data(), st.sampled_from([14, 17, 20]), st.lists(files, min_size=2, max_size=5))
    def search(data, std, changes):
        for name in ("here", "one", "two"):
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
        for name in ("v.cuh", "w.cuh"):
            (tmp_path / "two" / name).write_text(f"#define {name[0]} 1\n")
        folders = [tmp_path / "one", tmp_path / "two"]
        path = tmp_path / "here" / "k.cu"
        included = data.draw(_directive("v.cuh", std)) + data.draw(_directive("w.cuh", std))
        kernel = "__global__ void k(int* x) { *x = VALUE * OTHER; }\n"
        path.write_text(f"#define VALUE 1000\n#define OTHER 1\n{included}\n{kernel}", newline="")
        assert _result(path, folders, std) == _result(path, folders, std, cache=False)
        for number, change in enumerate(changes, start=2):
            header = tmp_path / change
            if header.exists() and number % 3 == 0:
                header.unlink()
            else:
                in_w = "#undef OTHER\n#define OTHER 7\n"
                nested = data.draw(_directive("w.cuh", std)) if header.name == "v.cuh" else in_w
                header.write_text(f"#undef VALUE\n#define VALUE {1000 + number}\n{nested}\n", newline="")
            assert _result(path, folders, std) == _result(path, folders, std, cache=False)

    search()
