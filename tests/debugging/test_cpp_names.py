"""C++ names in breakpoints, expressions and values: namespaces, classes, enumerations and templates."""

import re

import numpy as np
import pytest

import cudart_py as cuda
from tests.debugging.conftest import line_of

pytestmark = pytest.mark.needs("debugger")

# The tests refer to line numbers of this text.
SOURCE = """namespace physics {
enum class Phase { solid, liquid = 4, gas };
enum Plain { NONE, SOME = 7 };
struct Vec {
    float x, y;
    __device__ float dot(const Vec& o) const {
        return x * o.x + y * o.y;
    }
};
template <class T, int N> struct Stack {
    T items[N]; int size;
    __device__ void push(T v) {
        items[size++] = v;
    }
};
__device__ int counter = 5;
__constant__ float gain[2] = {2.0f, 3.0f};
__global__ void step(float* x) {
    __shared__ float tile[64];
    int i = threadIdx.x;
    Vec v{float(i), 2.0f};
    const Vec* pv = &v;
    Phase p = i % 2 ? Phase::gas : Phase::liquid;
    Plain q = i ? NONE : SOME;
    Stack<float, 4> s{};
    s.push(x[i]);
    tile[i] = v.dot(*pv) * gain[0] + int(p) + counter + (q != NONE);
    x[i] = tile[i];
}
}
namespace other { __device__ int counter = 9; }
__global__ void unrelated(int* x) { *x = other::counter; }
"""
LINE = SOURCE.splitlines().index("    x[i] = tile[i];") + 1
# What C++ says these are; thread 0 is in focus.
VALUES = {
    "physics::counter": "5", "::physics::counter + 1": "6", "other::counter": "9", "gain[1]": "3",
    "physics::gain[0] * 2": "4", "p": "physics::Phase::liquid", "p == physics::Phase::liquid": "true",
    "Phase::gas == 5": "true", "physics::SOME": "physics::SOME", "SOME + 1": "8", "q": "physics::SOME",
    "((physics::Vec*)pv)->y": "2", "sizeof(physics::Vec)": "8", "physics::step::i": "0", "step::tile[0]": "18",
}  # fmt: skip  # rows of a table


@pytest.fixture(scope="module")
def shown(debugged):
    commands = [f"break {LINE}", "run", *(f"print {text}" for text in VALUES), "whatis p", "ptype p", "print counter"]
    x = cuda.to_device(np.zeros(64, np.float32))
    return debugged("\n".join(commands), "physics::step", x, source=SOURCE)


@pytest.mark.parametrize(("text", "value"), VALUES.items())
def test_a_qualified_name_has_its_value(shown, text, value):
    assert shown.after(f"print {text}").strip() == value


def test_an_enumeration_has_its_cpp_name(shown):
    assert shown.after("whatis p") == "type = physics::Phase\n"
    members = "physics::Phase::solid, physics::Phase::liquid = 4, physics::Phase::gas"
    assert members in shown.after("ptype p")


def test_a_name_that_two_namespaces_have_is_ambiguous(shown):
    said = shown.after("print counter")
    assert "physics::counter" in said
    assert "other::counter" in said


@pytest.mark.parametrize(
    ("place", "line"),
    [("physics::step", 20), ("physics::Vec::dot", 7), ("Vec::dot", 7), ("::physics::step", 20),
     ("physics::Stack<float, 4>::push", 13), ("Stack<float,4>::push if v == 0", 13),
     (f"{LINE} if physics::counter == 5 && p == Phase::gas", LINE)],
)  # fmt: skip  # rows of a table
def test_a_breakpoint_accepts_qualified_names(debugged, place, line):
    x = cuda.to_device(np.zeros(64, np.float32))
    stop = debugged(f"break {place}\nrun\n", "physics::step", x, source=SOURCE).after("run")
    assert re.search(r"Breakpoint 1, ", stop)
    assert abs(line_of(stop) - line) <= 2, "the first instruction of a function may be on its head"
