"""The debugger's expressions have C++'s values and types, and memory without a value shows none."""

import subprocess

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import column

pytestmark = pytest.mark.needs("debugger")

VARIABLES = """
    unsigned u = 3; int neg = -7; unsigned char small = 250; short low = -300; bool yes = true;
    long long big = 5000000000LL; unsigned long long huge = 18000000000000000000ULL;
    float f = 1.1f; double d = 1.0 / 3; float acc[4] = {0.5f, 1.5f, 2.5f, 3.5f};
"""
# No lane but this one has these values, since the kernel adds the index of the thread.
KERNEL = f"""
#include <cuda_fp16.h>
constexpr int WIDTH = 8;
enum Color {{ RED, GREEN = 5 }};
struct Pair {{ float a; int b[3]; }};
extern "C" __global__ void values(double* out, int index) {{
    extern __shared__ float dynamic[];
    __shared__ double tile[WIDTH][WIDTH + 1];
    __shared__ short halves[2 * WIDTH / 4];
    __shared__ Pair pairs[2];
    __shared__ float4 four[2];
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
    __syncthreads();
    out[threadIdx.x] = u + neg + small + low + yes + big + huge + f + d + acc[index] + unwritten[index] + color
        + __half2float(h) + tile[7][7] + pairs[1].b[1] + four[1].y + dynamic[2] + halves[1];
}}
"""
LINE = KERNEL.splitlines().index("    __syncthreads();") + 1
EXPRESSIONS = """
u - 5 | neg < u | 1 << 31 | neg / 2 | neg % 3 | neg / u | small + small | small << 4 | ~small | -small | low * low
neg >> 1 | u >> 1 | big * 2 | big < huge | huge + 1 | neg + huge | 0xffffffff + 1 | 4294967295 + 1 | 2147483647 + 1u
f * 3 | f + d | f / neg | d * u | acc[1] + acc[2] | acc[u] | *acc + 1 | *(acc + 2) | &acc[3] - acc | yes + yes | !neg
neg ? u : f | yes ? 1 : 2u | neg < 0 && u > 2 | 'a' + 1 | '\\n' | (unsigned)neg | (float)neg / 2 | (unsigned char)low
(int)-2.75 | (long long)u << 40 | 1.5f | 1e3 | 0x7f | 7u - 8 | 2 + 3 * 4 | (2 + 3) * 4 | neg == -7 | u != 3 | neg ^ 5
""".replace("\n", " | ")
# What these print, "-" where nothing has been written or the index is outside the array.
MEMORY = {
    "tile[7][7]": "3.5", "tile[1][2]": "-", "tile[2][9]": "-", "acc[4]": "-", "acc[-1]": "-", "unwritten[2]": "2",
    "unwritten[1]": "-", "dynamic[40]": "-", "dynamic[29]": "290", "pairs[1]": "{a = -, b = {-, 8, -}}",
    "four[1].y": "1.5", "h": "1.25", "color": "RED", "warpSize": "32", "blockDim": "{x = 64, y = 1, z = 1}",
    "threadIdx.y": "0", "halves[3]": "-3",
}  # fmt: skip  # rows of a table
TEXTS = [text.strip() for text in EXPRESSIONS.split(" | ") if text.strip()]


@pytest.fixture(scope="module")
def cpp(tmp_path_factory):
    """The values that the host's C++ compiler gives the expressions."""
    folder = tmp_path_factory.mktemp("cpp")
    prints = "".join(f"    show({text});\n" for text in TEXTS)
    (folder / "values.cpp").write_text(
        "#include <cstdio>\n#include <type_traits>\ntemplate <class T> void show(T value) {\n"
        '    if constexpr (std::is_same_v<T, bool>) std::puts(value ? "true" : "false");\n'
        '    else if constexpr (std::is_floating_point_v<T>) std::printf("%.17g\\n", double(value));\n'
        '    else if constexpr (std::is_unsigned_v<T>) std::printf("%llu\\n", (unsigned long long)value);\n'
        f'    else std::printf("%lld\\n", (long long)value);\n}}\nint main() {{{VARIABLES}{prints}}}\n'
    )
    command = ["g++", "-std=c++17", "-w", "-o", folder / "values", folder / "values.cpp"]
    subprocess.run(command, check=True)
    said = subprocess.run([folder / "values"], check=True, capture_output=True, text=True).stdout.splitlines()
    return dict(zip(TEXTS, said, strict=True))


@pytest.fixture(scope="module")
def shown(debugged):
    commands = [f"break {LINE}", "run", "next"]
    commands += [f"print {text}" for text in TEXTS]
    commands += ["info shared", "lanes dynamic[threadIdx.x]", "lanes color", "lanes threadIdx"]
    commands += [f"print {text}" for text in MEMORY]
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


def test_lanes_have_values_of_their_own(shown):
    dynamic = column(shown.after("lanes dynamic[threadIdx.x]"), "dynamic[threadIdx.x]")
    assert dynamic == [str(10 * lane) if lane < 30 else "-" for lane in range(32)]
    assert column(shown.after("lanes color"), "color") == ["RED", "GREEN"] * 16
    assert column(shown.after("lanes threadIdx"), "threadIdx")[5] == "{x = 5, y = 0, z = 0}"


def test_shared_variables_have_the_types_and_shapes_of_their_declarations(shown):
    titles = [line.partition(",")[0] for line in shown.after("info shared").splitlines() if " bytes at offset " in line]
    assert sorted(titles) == [
        "Pair[2] pairs", "double[8][9] tile", "float4[2] four", "float[40] dynamic", "short[4] halves"
    ]  # fmt: skip  # names in one row
