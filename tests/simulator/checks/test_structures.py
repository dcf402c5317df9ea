"""Random structures that are copied as a whole: only members that nobody wrote are reported, and never padding.

The generator knows which bytes are padding, and PTX does not say so. Hence the expected result is independent.
"""

import numpy as np
import pytest

import cudart_py as cuda
from tests.simulator.checks.reports import WRONG_ON_PURPOSE, found

pytestmark = [*WRONG_ON_PURPOSE, pytest.mark.exhaustive]

SMALL, LARGE = ["char", "bool", "short"], ["int", "float", "long long", "double"]
COUNT = 12
SHARED = "__shared__ S s{k}[32]; s{k}[i] = a; __syncthreads(); S b = s{k}[i ^ 1];"
LOCAL = "S s{k}[4]; for (int j = 0; j < 4; j++) s{k}[(j + n) & 3] = a; S b = s{k}[n & 3];"
GLOBAL = "S* g{k} = (S*)scratch + {k} * 32; g{k}[i] = a; __syncwarp(); S b = g{k}[i ^ 1];"
CALLED = "S b = passed(a);"
# By which members a kernel fills and which it stores at its end: the possible copies of the structure from `a` to `b`,
# and the types of its members. An uninitialised member is reported if it is stored to global memory. Calls lose track
# of uninitialised values, and so do copies of words of which a part has been written.
CASES = {
    "all, stored whole": ([SHARED, LOCAL, GLOBAL, CALLED], SMALL + LARGE),
    "all, a member stored": ([SHARED, LOCAL, GLOBAL, CALLED], SMALL + LARGE),
    "some, those stored": ([SHARED, LOCAL, CALLED], SMALL + LARGE),
    "some, another one stored": ([SHARED, LOCAL], LARGE),
}


def kernel(number, generator, case):
    """Return a random structure in a namespace, and a kernel that fills it, copies it, and stores a part of it."""
    moves, types = CASES[case]
    members = [
        (f"m{place}", str(generator.choice(types)), int(generator.choice([1, 1, 1, 2, 3])))
        for place in range(int(generator.integers(2, 6)))
    ]
    missing = int(generator.integers(len(members)))
    declared = " ".join(f"{kind} {name}[{length}];" for name, kind, length in members)
    given = [one for place, one in enumerate(members) if case.startswith("all") or place != missing]
    filled = " ".join(f"for (int j = 0; j < {length}; j++) p->{name}[j] = n + j;" for name, _, length in given)
    chosen = generator.choice(moves, int(generator.integers(1, 4)))
    steps = ["{ " + str(move).format(k=k) + " a = b; }" for k, move in enumerate(chosen)]
    name, kind, length = members[missing]
    if case.endswith("stored whole"):
        stored = "((S*)out)[i] = a;"
    elif not case.endswith("those stored"):
        stored = f"(({kind}*)out)[i] = a.{name}[n % {length}];"
    else:
        stored = " ".join(
            f"for (int j = 0; j < {length}; j++) (({kind}*)(out + {place} * 4096))[i * {length} + j] = a.{name}[j];"
            for place, (name, kind, length) in enumerate(members)
            if place != missing
        )
    return f"""
namespace n{number} {{
struct S {{ {declared} }};
__device__ __noinline__ void fill(S* p, int n) {{ {filled} }}
__device__ __noinline__ S passed(S s) {{ return s; }}
}}
extern "C" __global__ void k{number}(char* out, char* scratch, int n) {{
    using n{number}::S, n{number}::fill, n{number}::passed;
    int i = threadIdx.x;
    S a;
    fill(&a, n);
    {" ".join(steps)}
    {stored}
}}"""


@pytest.mark.parametrize("seed", [1, 2])
def test_only_members_that_nobody_wrote_are_reported(seed):
    generator = np.random.default_rng(seed)
    cases = [case for case in CASES for _ in range(COUNT)]
    sources = [kernel(number, generator, case) for number, case in enumerate(cases)]
    module = cuda.compile("\n".join(sources))
    for number, (case, source) in enumerate(zip(cases, sources, strict=True)):
        out, scratch = cuda.empty(1 << 16, np.int8), cuda.empty(1 << 16, np.int8)
        texts = found(module[f"k{number}"][1, 32], out, scratch, 7)
        assert bool(texts) == (case == "some, another one stored"), (texts, source)
        assert all("uninitialised value reaches a store" in text for text in texts), (texts, source)
