"""Random kernels: CUDA C++ drawn from a seed, free of races and with one defined result, and runs of them.

Integer work is unsigned and so wraps; shift amounts are masked, divisors are odd, conversions are the
intrinsics that saturate. Contraction is off, so IEEE decides every floating-point result; NaNs lose their bits
before they become integers. Lanes exchange values only where the whole block is together, or among exactly
the lanes that a ballot named; atomics only ever combine, and nobody uses what they return.
"""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable, Sequence

import numpy as np

import cudart_py as cuda

from . import values
from .frame import OPTIONS, Array, Case, Out, launch

LANES, BLOCKS = 64, 2
COUNT, PER_SOURCE = 500, 25
# Words that a kernel leaves: one of integers, one of float and two of double for each lane, and the totals.
WORDS = 4 * LANES * BLOCKS + 32

HEAD = """\
typedef unsigned long long u64;
__device__ __forceinline__ unsigned bits(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }
__device__ __forceinline__ u64 bits(double x) {
    return x != x ? 0x7fffffffffffffffull : (u64)__double_as_longlong(x);
}
"""

BEGIN = """\
extern "C" __global__ void {name}(const unsigned* a, const float* b, const double* c,
unsigned* out, unsigned* totals) {{
__shared__ unsigned words[64]; __shared__ float floats[64]; __shared__ double doubles[64];
const unsigned t = threadIdx.x, i = blockIdx.x * 64u + t;
"""
END = """\
unsigned word = u0 ^ u1 * 31u ^ u2 * 961u ^ (unsigned)(l0 ^ l1 >> 7 ^ l2 >> 32);
const float number = f0 + f1 * f2; const double wide = d0 * d1 + d2;
out[i] = word ^ bits(f0) ^ bits(f1) * 5u; out[128u + i] = bits(number);
out[256u + i] = (unsigned)bits(wide);
out[384u + i] = (unsigned)(bits(wide) >> 32) ^ (unsigned)bits(d0);
}
"""
# Compilers differ, and are wrong at times, where an integer becomes a float and at once an integer again: hence
# the factors before conversions to integers. They also differ in how they read a literal halfway between two
# floats: every constant here is far from that. (Both seen in NVRTC 13.0 against 13.4.)
# {u} {v} {w} stand for unsigned operands, {l} {m} for 64-bit ones, {f} {g} {h} for floats, {d} {e} {x} for
# doubles, {c} for a condition. The operators of one type, by the letter of that type:
FORMS: dict[str, tuple[str, ...]] = {
    "u": (
        "({u} + {v})", "({u} - {v})", "({u} * {v})", "({u} & {v})", "({u} | {v})", "({u} ^ {v})", "~{u}", "(0u - {u})",
        "({u} << ({v} & 31u))", "({u} >> ({v} & 31u))", "(unsigned)((int){u} >> ({v} & 31u))",
        "({u} / ({v} | 1u))", "({u} % ({v} | 1u))", "(unsigned)((int){u} / (int)(({v} & 0x7fffu) | 1u))",
        "(unsigned)((int){u} % (int)(({v} & 0x7fffu) | 1u))", "min({u}, {v})", "max({u}, {v})",
        "(unsigned)min((int){u}, (int){v})", "(unsigned)max((int){u}, (int){v})", "(unsigned)__popc({u})",
        "(unsigned)__clz((int){u})", "__brev({u})", "(unsigned)__ffs((int){u})", "__umulhi({u}, {v})",
        "(unsigned)__mulhi((int){u}, (int){v})", "__byte_perm({u}, {v}, {w})", "__funnelshift_l({u}, {v}, {w})",
        "__funnelshift_rc({u}, {v}, {w})", "({c} ? {u} : {v})", "bits({f})", "(unsigned){l}", "(unsigned)({l} >> 32)",
        "(unsigned)__float2int_rz({f} * 0.75f)", "__float2uint_rn({f} * 0.75f)",
        "(unsigned)__double2int_rn({d} * 0.75)", "__sad((int){u}, (int){v}, {w})",
        "__usad({u}, {v}, {w})", "(unsigned)(signed char){u}", "(unsigned)(short){u}",
        "({u} * {v} + {w})", "(unsigned)__double2hiint({d} == {d} ? {d} : 1.0)",
    ),
    "l": (
        "({l} + {m})", "({l} - {m})", "({l} * {m})", "({l} ^ {m})", "({l} & {m})", "({l} | {m})",
        "({l} >> ({u} & 63u))", "({l} << ({u} & 63u))", "(u64)((long long){l} >> ({u} & 63u))", "((u64){u} * {v})",
        "__umul64hi({l}, {m})", "bits({d})", "(u64)(long long)(int){u}", "(u64)__popcll({l})",
        "(u64)__double2ll_rz({d} * 0.75)", "((u64){u} << 32 | {v})", "({c} ? {l} : {m})", "({l} / ({u} | 1u))",
        "__float2ull_rd({f} * 0.75f)", "(u64)__clzll((long long){l})", "min({l}, {m})",
    ),
    "f": (
        "({f} + {g})", "({f} - {g})", "({f} * {g})", "({f} / {g})", "sqrtf(fabsf({f}))", "fmaf({f}, {g}, {h})",
        "fminf({f}, {g})", "fmaxf({f}, {g})", "fabsf({f})", "(-{f})", "__fadd_rz({f}, {g})", "__fmul_ru({f}, {g})",
        "__fsub_rd({f}, {g})", "__int2float_rn((int){u})", "__uint2float_rz({u})", "__double2float_rn({d})",
        "floorf({f})", "truncf({f})", "rintf({f})", "({c} ? {f} : {g})", "__frcp_rn({f})", "__uint_as_float({u})",
        "__fmaf_rd({f}, {g}, {h})", "__ull2float_rn({l})", "__fsqrt_ru(fabsf({f}))", "__saturatef({f})",
        "({f} * 0.0078125f)", "({f} + 1.5f)",
    ),
    "d": (
        "({d} + {e})", "({d} - {e})", "({d} * {e})", "({d} / {e})", "sqrt(fabs({d}))", "fma({d}, {e}, {x})",
        "fmin({d}, {e})", "fmax({d}, {e})", "fabs({d})", "(-{d})", "__dadd_ru({d}, {e})", "__dmul_rz({d}, {e})",
        "(double){f}", "__ll2double_rn((long long){l})", "__uint2double_rn({u})", "rint({d})", "floor({d})",
        "({c} ? {d} : {e})", "__drcp_rn({d})", "__fma_rz({d}, {e}, {x})", "({d} * 0.015625)", "({d} - 2.25)",
    ),
    "c": (
        "({u} < {v})", "((int){u} < (int){v})", "({f} < {g})", "({f} != {g})", "({f} >= {g})", "!({f} < {g})",
        "({d} <= {e})", "({d} == {e})", "({l} > {m})", "(({u} & 3u) == 1u)", "({f} == {f})", "(({u} ^ {v}) & 1u)",
        "({u} < {v} && {f} > {g})", "({u} > {v} || {d} < {e})",
    ),
}  # fmt: skip  # rows of a table
LEAVES = {letter: group[0] for group in ("uvw", "lm", "fgh", "dex", "c") for letter in group}
CONSTANTS = {
    "u": ("0u", "1u", "7u", "0xffu", "0x80000000u", "0xffffffffu", "2654435761u", "0x7fffffffu", "i", "t"),
    "l": ("1ull", "0x100000001ull", "0x8000000000000000ull", "0xfedcba9876543210ull"),
    "f": ("1.0f", "(-0.5f)", "3.25f", "1e-20f", "1.17549435e-38f", "16777218.0f", "(-0.0f)", "0.1f"),
    "d": ("1.0", "(-0.5)", "3.25", "1e-200", "2.2250738585072014e-308", "9007199254740994.0", "(-0.0)", "0.1"),
}
# With the type of the operand.
VOTES = (
    ("__ballot_sync(0xffffffffu, {})", "c"), ("(unsigned)__any_sync(0xffffffffu, {})", "c"),
    ("(unsigned)__all_sync(0xffffffffu, {})", "c"), ("__match_any_sync(0xffffffffu, {} & 3u)", "u"),
    ("__reduce_add_sync(0xffffffffu, {})", "u"), ("__reduce_max_sync(0xffffffffu, {})", "u"),
    ("__reduce_xor_sync(0xffffffffu, {})", "u"), ("(unsigned)__reduce_min_sync(0xffffffffu, (int){})", "u"),
    ("(unsigned)__syncthreads_count({})", "c"), ("(unsigned)__syncthreads_or({})", "c"),
)  # fmt: skip  # rows of a table
PARTS = ("__shfl_sync({m}, {v}, __ffs((int){m}) - 1)", "__reduce_add_sync({m}, {v})", "__ballot_sync({m}, {v} & 1u)")


class Kernel:
    """One random kernel; `source` is its text."""

    def __init__(self, seed: int) -> None:
        # Of which only `random()` is used: its stream is the same in every Python.
        self._random = random.Random(seed)
        self.name = f"random_{seed}"
        self._variables = 3
        self._loops = 0
        self._helper = self.below(4) == 0

    def below(self, limit: int) -> int:
        """Draw an integer from 0 to limit - 1."""
        return int(self._random.random() * limit)

    def pick(self, choices: Sequence[str]) -> str:
        return choices[self.below(len(choices))]

    def expression(self, kind: str, depth: int) -> str:
        """Draw an expression of a type; `depth` more operators may be nested in it."""
        if kind != "c" and (depth <= 0 or self.below(5) == 0):
            return self.pick(CONSTANTS[kind]) if self.below(6) == 0 else self.target(kind)
        form = self.pick(FORMS[kind])
        # One operand goes deep and the others stay shallow, so that an expression grows linearly.
        names = [name for name in LEAVES if "{" + name + "}" in form]
        deep = self.below(len(names))
        depths = [depth - 1 if k == deep else min(depth - 1, 0) for k in range(len(names))]
        return form.format(**{name: self.expression(LEAVES[name], d) for name, d in zip(names, depths, strict=True)})

    def target(self, kind: str) -> str:
        return f"{kind}{self.below(self._variables)}"

    # Statements that any lane may execute alone

    def assignment(self, level: int = 0) -> str:
        kind = self.pick("uuulffd")
        return f"{self.target(kind)} = {self.expression(kind, 3)};\n"

    def branch(self, level: int) -> str:
        text = f"if ({self.expression('c', 2)}) {{\n{self.block(level - 1, 2)}"
        if self.below(2):
            text += f"}} else {{\n{self.block(level - 1, 2)}"
        return text + "}\n"

    def loop(self, level: int) -> str:
        """Loop a few times, as often as each lane's own data say; some leave early."""
        self._loops += 1
        k = f"k{self._loops}"
        text = f"for (unsigned {k} = 0; {k} < ({self.expression('u', 1)} & 7u); ++{k}) {{\n{self.block(level - 1, 1)}"
        leave = self.pick(("break;", "continue;", ""))
        if leave:
            text += f"if ({self.expression('c', 1)}) {leave}\n"
        return text + f"{self.target('u')} += {k};\n{self.block(level - 1, 1)}}}\n"

    def switch(self, level: int) -> str:
        """Switch over a few cases, one of which falls through."""
        text = f"switch ({self.expression('u', 1)} % 5u) {{\n"
        for label in range(4):
            text += f"case {label}:\n{self.assignment()}" + "break;\n" * (label != 1)
        return text + f"default:\n{self.assignment()}}}\n"

    def local_array(self, level: int) -> str:
        return f"""{{
unsigned q[4] = {{{", ".join(self.expression("u", 1) for _ in range(4))}}};
q[{self.expression("u", 1)} & 3u] = {self.expression("u", 2)};
{self.target("u")} = q[{self.expression("u", 1)} & 3u] + q[{self.expression("u", 1)} & 3u];
}}
"""

    def atomic(self, level: int) -> str:
        """Combine a value into the totals; each quarter of them has its own operation."""
        which = self.below(4)
        function = ("atomicAdd", "atomicMax", "atomicXor", "atomicOr")[which]
        return f"{function}(totals + {8 * which}u + ({self.expression('u', 1)} & 7u), {self.expression('u', 2)});\n"

    def call(self, level: int) -> str:
        """Call this kernel's own function, if it has one."""
        if not self._helper:
            return self.assignment()
        return f"{self.target('u')} ^= {self.name}_helper({self.expression('u', 1)}, {self.expression('f', 1)});\n"

    def block(self, level: int, count: int) -> str:
        simple: list[Callable[[int], str]] = [*[self.assignment] * 3, self.atomic, self.call]
        if level > 0:
            simple += [self.branch, self.loop, self.switch, self.local_array]
        return "".join(simple[self.below(len(simple))](level) for _ in range(count))

    # Statements where the whole block is together

    def shared(self) -> str:
        kind, dtype = (("u", "words"), ("f", "floats"), ("d", "doubles"))[self.below(3)]
        step, offset = 2 * self.below(8) + 1, self.below(64)
        return f"""{dtype}[t] = {self.expression(kind, 2)};
__syncthreads();
{self.target(kind)} = {dtype}[(t * {step}u + {offset}u) & 63u];
__syncthreads();
"""

    def shared_atomic(self) -> str:
        function = self.pick(("atomicAdd", "atomicMin", "atomicMax", "atomicXor", "atomicAnd"))
        return f"""words[t] = {self.expression("u", 1)};
__syncthreads();
{function}(words + ({self.expression("u", 1)} & 15u), {self.expression("u", 1)});
__syncthreads();
{self.target("u")} += words[(t + {self.below(64)}u) & 63u];
__syncthreads();
"""

    def shuffle(self) -> str:
        kind, width, lane = self.pick("uulfd"), self.pick(("32", "16", "8")), self.below(32)
        forms = (
            f"xor_sync(0xffffffffu, {{}}, {lane % 16 + 1}, {width})",
            f"up_sync(0xffffffffu, {{}}, {lane % 8 + 1}, {width})",
            f"down_sync(0xffffffffu, {{}}, {lane % 8 + 1}, {width})",
            f"sync(0xffffffffu, {{}}, (int)(({self.expression('u', 1)}) & 31u), {width})",
        )
        form = self.pick(forms)
        return f"{self.target(kind)} = __shfl_{form.format(self.expression(kind, 1))};\n"

    def vote(self) -> str:
        """Vote, match, count or reduce over the warp or the block."""
        # All are drawn, of which one is used.
        form = self.pick([form.format(self.expression(kind, 1)) for form, kind in VOTES])
        return f"{self.target('u')} ^= {form};\n"

    def part(self) -> str:
        """Work among the lanes for which a condition holds, inside the branch that they take."""
        self._loops += 1
        mask, taken = f"mask{self._loops}", f"taken{self._loops}"
        form = self.pick(PARTS)
        return f"""const bool {taken} = {self.expression("c", 1)};
const unsigned {mask} = __ballot_sync(0xffffffffu, {taken});
if ({taken}) {{
{self.target("u")} += {form.format(m=mask, v=self.expression("u", 0))};
{self.assignment()}}}
"""

    def together(self) -> str:
        """Repeat exchanges in a loop that every lane goes through equally often."""
        self._loops += 1
        k = f"k{self._loops}"
        exchange = (self.shared, self.shuffle, self.vote)[self.below(3)]
        head = f"for (unsigned {k} = 0; {k} < {2 + self.below(3)}u; ++{k}) {{\n"
        return f"{head}{self.assignment()}{exchange()}{self.block(0, 1)}}}\n"

    @property
    def source(self) -> str:
        """Draw the kernel's text. To be read once."""
        collective = (self.shared, self.shared_atomic, self.shuffle, self.vote, self.part, self.together)
        alone = (self.branch, self.branch, self.loop, self.switch, self.local_array, self.call)
        text = self._function(self.expression("u", 2)) if self._helper else ""
        text += BEGIN.format(name=self.name)
        for k in range(self._variables):
            at = f"(i + {37 * k}u) & 127u"
            text += f"unsigned u{k} = a[{at}]; float f{k} = b[{at}]; double d{k} = c[{at}];\n"
            text += f"u64 l{k} = (u64)u{k} * {2 * self.below(1 << 30) + 1}u;\n"
        for _ in range(3 + self.below(3)):
            text += alone[self.below(len(alone))](2)
            text += collective[self.below(len(collective))]()
        return text + END

    def _function(self, body: str) -> str:
        return f"""__device__ __noinline__ unsigned {self.name}_helper(unsigned u0, float f0) {{
const unsigned i = u0 * 3u, t = u0 >> 16; unsigned u1 = ~u0, u2 = u0 << 5;
float f1 = f0 * 0.5f, f2 = f0 - 3.0f; double d0 = f0, d1 = f1, d2 = 0.75;
u64 l0 = u0, l1 = l0 << 33, l2 = ~l0;
if (u0 & 1u) return {body};
return {self.expression("u", 2)};
}}
"""


def source(seeds: Sequence[int]) -> str:
    """Return CUDA C++ with the kernel of each seed."""
    return HEAD + "".join(Kernel(seed).source for seed in seeds)


@functools.cache
def inputs() -> tuple[Array, Array, Array]:
    """Return the words, floats and doubles that every random kernel reads: special ones, ordinary ones, any bits."""
    n = LANES * BLOCKS
    integers = values.integer_triples(512, np.uint32)[2][-n:].copy()
    integers[:8] = [0, 1, 0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 31, 32, 255]
    floats = np.concatenate([values.FLOATS, values.near_one(401, n, np.float32, 12)])[:n]
    doubles = np.concatenate([values.DOUBLES, values.near_one(402, n, np.float64, 20)])[:n]
    # Neighbours in a warp should not all be special: deal them out.
    order = np.argsort(values.words(403, n), kind="stable")
    return integers, floats[order], doubles[order]


def case(seed: int) -> Case:
    """Return the case of a seed's kernel."""
    lanes = Out("out", "uint32", (4 * LANES * BLOCKS,))
    return Case("random", f"random_{seed}", BLOCKS, LANES, (*inputs(), lanes, Out("totals", "uint32", (32,))))


def digest(seed: int) -> int:
    """Return a checksum of a seed's kernel and its inputs."""
    return zlib.crc32(source([seed]).encode(), case(seed).digest)


def compiled(seeds: Sequence[int], *options: str) -> cuda.Module:
    """Compile the kernels of some seeds into one module."""
    return cuda.compile(source(seeds), options=(*OPTIONS, *options))


def result(module: cuda.Module, seed: int) -> Array:
    """Run a seed's kernel and return its words."""
    arrays = launch(module[f"random_{seed}"], case(seed))
    return np.concatenate([arrays["out"], arrays["totals"]])


def batches() -> list[range]:
    """Return the recorded seeds, those of one source together."""
    return [range(first, first + PER_SOURCE) for first in range(0, COUNT, PER_SOURCE)]
