"""The debugger's expressions have C++'s values and types, in gdb's formats; memory without a value shows none."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import column

pytestmark = pytest.mark.needs("debugger")

VARIABLES = """
    unsigned u = 3; int neg = -7; unsigned char small = 250; short low = -300; bool yes = true;
    long long big = 5000000000LL; unsigned long long huge = 18000000000000000000ULL;
    float f = 1.1f; double d = 1.0 / 3; float acc[4] = {0.5f, 1.5f, 2.5f, 3.5f}; Node node = {{7.5f, {1, -2, 3}}, 0};
    node.next = &node;
"""
STRUCTURES = """
enum Color { RED, GREEN = 5 };
struct Pair { float a; int b[3]; };
struct Node { Pair pair; Node* next; };
struct Link { Link* next; float weights[2], sum; const short* data; };
typedef double real;
using word = unsigned int;
#define COUNT_TYPE short
"""
# The host compiles these, too, as static variables.
SHARED = """
    __shared__ float first[32], second[32], alone, *pointers[3], rows[3][5];
    float __shared__ odd[8];
    volatile __shared__ unsigned long long int wide[7];
    __shared__ long unsigned int inverse[2]; __shared__ short int unsigned brief;
    __shared__ int negative, *nobody;
    __shared__ real reals[3]; alignas(16) __shared__ word words[5]; __shared__ COUNT_TYPE counts[3];
    // float first[32]; __shared__ int second[32];
    __shared__ struct Link links[2];
"""
# One thread does this.
STORES = """
    first[31] = 0.25f; second[31] = 1.5f; alone = 2.5f; pointers[1] = &second[30]; second[30] = 0.75f;
    rows[2][4] = 3.5f; negative = -7; odd[7] = -4.5f; wide[6] = 18000000000000000000ULL; inverse[1] = 1ULL << 63;
    brief = 65000;
    nobody = nullptr; reals[2] = 0.1; words[4] = 4000000000u; counts[1] = -3; links[1].weights[1] = 5.5f;
    links[1].sum = 6.5f; links[0].next = &links[1]; links[1].data = &counts[1];
"""
# No lane but this one has these values, since the kernel adds the index of the thread.
KERNEL = f"""
#include <cuda_fp16.h>
constexpr int WIDTH = 8;
{STRUCTURES}
struct Floats {{ typedef float Item; }};
struct Integers {{ typedef int Item; }};
#define DECLARE(type, declarator) __shared__ type declarator
template <typename T, class U = int, unsigned ROWS = 1, unsigned COLUMNS = 3> __device__ double templated() {{
    __shared__ T grid[ROWS][COLUMNS * 2], **deep;
    __shared__ U other;
    grid[ROWS - 1][COLUMNS] = 2.5;
    deep = nullptr;
    other = -3;
    return grid[ROWS - 1][COLUMNS] + other + (deep == nullptr);
}}
extern "C" __global__ void values(double* out, int index) {{
    extern __shared__ float dynamic[];
    __shared__ double tile[WIDTH][WIDTH + 1];
    __shared__ short halves[2 * WIDTH / 4];
    __shared__ Pair pairs[2];
    __shared__ float4 four[2];
    __shared__ struct {{ float value; int second; }} anonymous[2];
    DECLARE(float, hidden[4]);
    DECLARE(int, lonely);
    __shared__ Floats::Item ambiguous[2];
    if (index) {{ __shared__ float twice[64]; twice[threadIdx.x] = 1; }}
    else {{ __shared__ int twice[64]; twice[threadIdx.x] = 1; }}
    {SHARED}
    if (threadIdx.x == 0) {{{STORES} hidden[3] = 1.0f; lonely = -5; ambiguous[1] = 1.5f; anonymous[1].value = 0.5f;}}
    {VARIABLES}
    float unwritten[4];
    half h = __float2half(1.25f);
    Color color = threadIdx.x % 2 ? GREEN : RED;
    if (threadIdx.x < 8) tile[threadIdx.x][threadIdx.x] = threadIdx.x * 0.5;
    if (threadIdx.x < 2) pairs[threadIdx.x].b[1] = threadIdx.x + 7;
    if (threadIdx.x < 2) four[threadIdx.x].y = threadIdx.x + 0.5f;
    if (threadIdx.x < 4) halves[threadIdx.x] = -threadIdx.x;
    if (threadIdx.x < 30) dynamic[threadIdx.x] = threadIdx.x * 10;
    unwritten[index] = index;
    if (threadIdx.x == 0) out[0] = templated<double, short, 2>() + lonely;
    __syncthreads();
    out[threadIdx.x] = u + neg + small + low + yes + big + huge + f + d + acc[index] + unwritten[index] + color
        + node.pair.b[1] + __half2float(h) + tile[7][7] + pairs[1].b[1] + four[1].y + dynamic[2] + halves[1];
}}
"""
LINE = KERNEL.splitlines().index("    __syncthreads();") + 1
EXPRESSIONS = """
u - 5 | neg < u | 1 << 31 | neg / 2 | neg % 3 | neg / u | small + small | small << 4 | ~small | -small | low * low
neg >> 1 | u >> 1 | big * 2 | big < huge | huge + 1 | neg + huge | 0xffffffff + 1 | 4294967295 + 1 | 2147483647 + 1u
f * 3 | f + d | f / neg | d * u | acc[1] + acc[2] | acc[u] | *acc + 1 | *(acc + 2) | &acc[3] - acc | yes + yes | !neg
neg ? u : f | yes ? 1 : 2u | neg < 0 && u > 2 | 'a' + 1 | '\\n' | (unsigned)neg | (float)neg / 2 | (unsigned char)low
(int)-2.75 | (long long)u << 40 | 1.5f | 1e3 | 0x7f | 7u - 8 | 2 + 3 * 4 | (2 + 3) * 4 | neg == -7 | u != 3 | neg ^ 5
sizeof(u) + 1 | sizeof acc | sizeof(Node) | sizeof(short) | sizeof(acc[1] + d) | sizeof(Pair*) | sizeof u
first[31] | second[31] | second[31] > 1.5 | second[31] * 2 | alone | *pointers[1] | rows[2][4] | odd[7] | wide[6]
inverse[1] | brief | negative < 0 | nobody == 0 | reals[2] | words[4] | counts[1] | links[1].weights[1] | links[1].sum
links[0].next == &links[1] | *links[1].data | sizeof(second) | sizeof(second[0]) | sizeof(pointers) | sizeof(rows[1])
sizeof(wide[0]) | sizeof(inverse) | sizeof(brief) | sizeof(reals[0]) | sizeof(words) | sizeof(counts) | sizeof(links)
sizeof(unsigned long long int) | (long unsigned int)neg | (int unsigned)neg | (short unsigned int)neg
node.next->pair.b[2] | ((Pair*)&node)->b[1] | *(int*)&acc[1] | node.next->next->pair.a
""".replace("\n", " | ")
# What these print, "-" where nothing has been written or the index is outside the array.
MEMORY = {
    "tile[7][7]": "3.5", "tile[1][2]": "-", "tile[2][9]": "-", "acc[4]": "-", "acc[-1]": "-", "unwritten[2]": "2",
    "unwritten[1]": "-", "dynamic[40]": "-", "dynamic[29]": "290", "pairs[1]": "{a = -, b = {-, 8, -}}",
    "four[1].y": "1.5", "h": "1.25", "color": "RED", "warpSize": "32", "blockDim": "{x = 64, y = 1, z = 1}",
    "threadIdx.y": "0", "second[29]": "-", "((float*)hidden)[3]": "1", "sizeof(hidden)": "16",
    "sizeof(anonymous)": "16", "((@shared float*)anonymous)[2]": "0.5", "halves[3]": "-3",
    "grid[1][3]": "2.5", "other": "-3",
}  # fmt: skip  # rows of a table
# Commands of gdb whose answers do not contain addresses of variables.
GDB = [
    *(f"print/{letter} {text}" for text in ("u", "neg", "small", "low", "yes", "big", "huge", "'a'", "353", "0")
      for letter in "xduotzacf"),
    *(f"print/{letter} {text}" for text in ("f", "d", "acc", "node.pair", "f * -3", "&((Pair*)0)->b[1]")
      for letter in "xduotzcf"),
    "print acc[1]@2", "print *acc@3", "print node.pair.b[0]@2",
    *(f"ptype {text}" for text in ("node", "Node", "struct Pair", "acc", "&acc", "u", "f * 2", "float*", "node.pair",
      "second", "pointers", "rows")),
    *(f"whatis {text}" for text in ("(long long unsigned int)u", "alone", "odd", "inverse", "brief", "negative",
      "nobody", "links", "node", "&node", "&acc", "acc[1]", "u + neg", "low + low", "u * d", "neg < 1")),
    *(f"x/{chosen} {text}" for text in ("acc", "&node.pair")
      for chosen in ("4xw", "3xb", "9xb", "5xh", "2xg", "4dw", "3uh", "5ub", "3db", "2ow", "3tb", "1th", "2cb", "3c")),
    "x/4fw acc", "x/3xw acc + 1", "x/fg acc", "x", "x/2xh &node.pair.b", "x", "x/2",
]  # fmt: skip  # rows of a table
UNKNOWN = [
    "hidden", "hidden[3]", "*hidden", "hidden > 1", "hidden == 0", "hidden && 1", "!hidden", "hidden + 1",
    "hidden ? 1 : 2", "hidden@2", "sizeof(hidden[0])", "(int)hidden", "anonymous[1]", "lonely < 0",
    "ambiguous[1]", "twice[0]",
]  # fmt: skip  # rows of a table
TEXTS = [text.strip() for text in EXPRESSIONS.split(" | ") if text.strip()]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program of the host with the same variables, which prints the values of the expressions."""
    folder = tmp_path_factory.mktemp("cpp")
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    prints = "".join(f"    show({text});\n" for text in TEXTS)
    (folder / "values.cpp").write_text(
        STRUCTURES + "#include <cstdio>\n#include <type_traits>\ntemplate <class T> void show(T value) {\n"
        '    if constexpr (std::is_same_v<T, bool>) std::puts(value ? "true" : "false");\n'
        '    else if constexpr (std::is_floating_point_v<T>) std::printf("%.17g\\n", double(value));\n'
        '    else if constexpr (std::is_unsigned_v<T>) std::printf("%llu\\n", (unsigned long long)value);\n'
        f'    else std::printf("%lld\\n", (long long)value);\n}}\nint main() {{{VARIABLES}{SHARED}{STORES}{prints}}}\n'
    )
    program = folder / "values"
    subprocess.run(
        ["g++", "-std=c++17", "-g", "-w", "-D__shared__=static", "-o", program, folder / "values.cpp"], check=True
    )
    return program


@pytest.fixture(scope="module")
def cpp(program):
    """The values that the host's C++ compiler gives the expressions."""
    said = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(TEXTS, said, strict=True))


@pytest.fixture(scope="module")
def gdb(program):
    """The answers of gdb to its commands."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not installed")
    commands = ["set width 0", "break show<unsigned int>", "run", "up", *GDB]
    arguments = [part for text in commands for part in ("-ex", "echo >>>", "-ex", text)]
    said = subprocess.run(
        ["gdb", "-q", "-batch", "-nx", *arguments, program],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=60, check=False,
    ).stdout.split(">>>")  # fmt: skip  # one option per word
    if not any("Breakpoint 1, " in answer for answer in said):
        pytest.skip("gdb cannot run a program here")
    return said[-len(GDB) :]


@pytest.fixture(scope="module")
def shown(debugged):
    commands = [f"break {LINE}", "run", "next"]
    commands += [f"print {text}" for text in TEXTS]
    commands += ["info shared", "lanes dynamic[threadIdx.x]", "lanes color", "lanes threadIdx"]
    commands += [f"print {text}" for text in MEMORY]
    commands += [f"print {text}" for text in UNKNOWN]
    commands += ["x/fw (float*)hidden + 3", "x/4fw hidden", "info shared hidden"]
    commands += GDB
    return debugged("\n".join(commands), "values", cuda.zeros(64, np.float64), 2, shared=160, source=KERNEL)


@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_has_the_value_that_it_has_in_cpp(shown, cpp, text):
    value = shown.after(f"print {text}").strip()
    if "." in cpp[text] or "e" in cpp[text][1:-1]:
        assert float(value) == pytest.approx(float(cpp[text]), rel=1e-6)
    else:
        assert value == cpp[text]


@pytest.mark.parametrize(("text", "value"), MEMORY.items())
def test_memory_has_the_declared_types_and_shows_only_what_was_written(shown, text, value):
    assert shown.after(f"print {text}").strip() == value


@pytest.mark.parametrize("text", UNKNOWN)
def test_a_shared_variable_of_an_unknown_type_has_no_value(shown, text):
    name = re.search("hidden|anonymous|lonely|ambiguous|twice", text)
    assert f"the type of {name[0]!r} is not known" in shown.after(f"print {text}")


def test_memory_of_an_unknown_type_can_be_shown(shown):
    for command in ("x/fw (float*)hidden + 3", "x/4fw hidden"):
        assert shown.after(command).split()[-1] == "1"
    values, _ = shown.after("info shared hidden").split("written by")
    assert values.split()[-4:] == ["-", "-", "-", f"{np.float32(1).view(np.uint32):#x}"]


@pytest.mark.parametrize(
    ("condition", "stop"),
    [("second[31] > 1.25", "Breakpoint 1, "), ("second[31] > 1.75", ""), ("hidden[3] > 9", "is not known")],
)
def test_a_condition_on_shared_memory_is_evaluated_only_if_its_type_is_known(debugged, condition, stop):
    commands = f"break {LINE} if {condition}\nrun\ncontinue"
    after = debugged(commands, "values", cuda.zeros(64, np.float64), 2, shared=160, source=KERNEL).after("run")
    assert stop in after if stop else "Breakpoint" not in after


def test_lanes_have_values_of_their_own(shown):
    dynamic = column(shown.after("lanes dynamic[threadIdx.x]"), "dynamic[threadIdx.x]")
    assert dynamic == [str(10 * lane) if lane < 30 else "-" for lane in range(32)]
    assert column(shown.after("lanes color"), "color") == ["RED", "GREEN"] * 16
    assert column(shown.after("lanes threadIdx"), "threadIdx")[5] == "{x = 5, y = 0, z = 0}"


def test_shared_variables_have_the_types_and_shapes_of_their_declarations(shown):
    titles = [line.partition(",")[0] for line in shown.after("info shared").splitlines() if " bytes at offset " in line]
    assert set(titles) >= {
        "Pair[2] pairs", "double[8][9] tile", "float4[2] four", "float[40] dynamic", "short[4] halves",
        "float[32] second", "float alone",
        "float*[3] pointers", "float[3][5] rows", "int* nobody", "double[3] reals", "Link[2] links",
        "double[2][6] grid", "double** deep", "short other",
    }  # fmt: skip  # names in one row


def _words(text: str) -> list[str]:
    """Return an answer without the number of a value and without addresses, and with floats in one notation."""
    text = re.sub(r"-nan\(0x[0-9a-f]+\)", "nan", text)
    text = re.sub(r"^\$\d+ = |^0x[0-9a-f]+( <[^>]*>)?:", "", text, flags=re.MULTILINE)
    return [_rounded(word) for word in text.split()]


def _rounded(word: str) -> str:
    match = re.fullmatch(r"([{(]*)(-?\d+\.?\d*(?:e[-+]\d+)?)([,})]*)", word)
    if match is None or not ("." in word or "e" in word):
        return word
    return f"{match[1]}{float(match[2]):.6g}{match[3]}"


@pytest.mark.parametrize("number", range(len(GDB)), ids=lambda number: GDB[number])
def test_values_types_and_memory_have_the_formats_of_gdb(shown, gdb, number):
    command = GDB[number]
    occurrence = GDB[:number].count(command)
    assert _words(shown.after(command, occurrence)) == _words(gdb[number])
