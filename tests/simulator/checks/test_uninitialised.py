"""Uninitialised values are tracked through registers, byte by byte: a store is judged by the bytes that it writes.

Copying them in padding, unused elements or unused lanes is not a mistake. Using them afterwards is.
"""

import re

import numpy as np
import pytest

import cudart_py as cuda
from cudart_py.simulator.checks.uninitialised.stored_structures import paddings_of
from cudart_py.simulator.ptx import load_module
from cudart_py.simulator.ptx.compiling.opcode_table.opcodes import ROWS
from tests.planted.cases import compiled, marked
from tests.simulator.checks.reports import FOLDER, WRONG_ON_PURPOSE, found, watched
from tests.simulator.ptx.machine import HEAD, Kernels

pytestmark = WRONG_ON_PURPOSE

# %r1, %s1 and %d1 are never written; %r2 and %s2 hold the kernel's parameter. Each body ends with a store or a branch.
KERNEL = """
.visible .entry kernel{number}(.param .u64 p, .param .u32 n) {{
    .reg .b32 %r<9>; .reg .b16 %s<9>; .reg .b64 %d<9>; .reg .pred %p<9>; .reg .f32 %f<9>;
    ld.param.u64 %d8, [p];
    ld.param.u32 %r2, [n];
    cvt.u16.u32 %s2, %r2;
    {body};
    ret;
}}
"""

# The upper eight rows of the left matrix are undefined.
PRODUCT = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r2}, "
    "{0f00000000, 0f00000000, 0f00000000, 0f00000000}"
)
# The odd columns of the right matrix are undefined. They belong to the lanes with bit 2 set in their index.
COLUMNS = (
    "mov.u32 %r6, %laneid; and.b32 %r5, %r6, 4; setp.ne.u32 %p1, %r5, 0; mov.u32 %r3, %r2; @%p1 mov.u32 %r3, %r1; "
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r2}, {%r3}, "
    "{0f00000000, 0f00000000, 0f00000000, 0f00000000}"
)
STORED = ".shared .align 16 .b8 rows[128]; mov.u32 %r4, rows; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r4], {%r3}"
# The first element of each lane's fragment of the accumulator is undefined, wherever that is in the matrix.
EIGHT = ", ".join(["%r2"] * 8)
OPAQUE_PRODUCT = (
    "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, "
    f"{{{EIGHT}}}, {{{EIGHT}}}, {{%f8, {', '.join(['0f00000000'] * 7)}}}"
)
# The odd columns are undefined, and become odd rows by transposition. %r5 is nonzero if the lane's row is odd.
TRANSPOSED = (
    "bfi.b32 %r3, %r2, %r1, 0, 16; movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r3; "
    "mov.u32 %r6, %laneid; and.b32 %r5, %r6, 4"
)

# Each lane has its own word of shared memory, which is zero.
WORD = (
    ".shared .align 4 .b8 words[128]; mov.u32 %r4, words; mov.u32 %r5, %laneid; mad.lo.u32 %r4, %r5, 4, %r4; "
    "st.shared.u32 [%r4], 0"
)

DEFINED = {
    "an immediate inserted": "bfi.b32 %r3, 5, %r1, 0, 8; st.global.u8 [%d8], %r3",
    "a register inserted": "bfi.b32 %r3, %r2, %r1, 8, 8; shr.u32 %r4, %r3, 8; st.global.u8 [%d8], %r4",
    "added below what is shifted": "shl.b32 %r3, %r1, 8; add.u32 %r4, %r3, %r2; st.global.u8 [%d8], %r4",
    "added to a multiple": "and.b32 %r3, %r1, 0xffffff00; mad.lo.u32 %r4, %r2, 3, %r3; st.global.u8 [%d8], %r4",
    "taken away above": "shl.b32 %r3, %r1, 8; sub.u32 %r4, %r2, %r3; st.global.u8 [%d8], %r4",
    "multiplied below": "shl.b32 %r3, %r1, 8; mul.lo.u32 %r4, %r3, %r2; st.global.u8 [%d8], %r4",
    "negated below": "shl.b32 %r3, %r1, 8; neg.s32 %r4, %r3; st.global.u8 [%d8], %r4",
    "turned over": "bfi.b32 %r3, 5, %r1, 0, 8; not.b32 %r4, %r3; xor.b32 %r5, %r4, %r2; st.global.u8 [%d8], %r5",
    "dropped by a table": "lop3.b32 %r3, %r1, %r2, %r2, 0xc0; st.global.u32 [%d8], %r3",
    "tested after a table": (
        "setp.eq.u32 %p1, %r2, 5; lop3.or.b32 _|%p1, %r1, %r2, %r2, 0xc0, %p1; selp.u32 %r3, 1, 2, %p1; "
        "st.global.u32 [%d8], %r3"
    ),
    "shifted out": "shf.l.clamp.b32 %r3, %r1, %r2, 0; st.global.u32 [%d8], %r3",
    "rotated by the low byte": (
        "bfi.b32 %r3, 5, %r1, 0, 8; shf.l.wrap.b32 %r4, %r2, %r2, %r3; st.global.u32 [%d8], %r4"
    ),
    "a field at the low byte": "bfi.b32 %r3, 5, %r1, 0, 8; bfe.u32 %r4, %r2, %r3, 8; st.global.u32 [%d8], %r4",
    "inserted at the low byte": "bfi.b32 %r3, 5, %r1, 0, 8; bfi.b32 %r4, %r2, %r2, 8, %r3; st.global.u32 [%d8], %r4",
    "chosen by the low half": "bfi.b32 %r3, 5, %r1, 0, 16; prmt.b32 %r4, %r2, %r2, %r3; st.global.u32 [%d8], %r4",
    "not selected": "setp.eq.u32 %p1, %r2, 5; selp.u32 %r3, %r1, %r2, %p1; st.global.u32 [%d8], %r3",
    "not selected by sign": "neg.s32 %r3, %r2; slct.u32.s32 %r4, %r1, %r2, %r3; st.global.u32 [%d8], %r4",
    "compared with a number": "set.eq.u32.u32 %r3, %r1, %r2; st.global.u32 [%d8], %r3",
    "joined with or": "shl.b32 %r3, %r1, 16; or.b32 %r4, %r3, %r2; st.global.u16 [%d8], %r4",
    "set to ones": "or.b32 %r3, %r1, 0xff; st.global.u8 [%d8], %r3",
    "packed before": "mov.b32 %r3, {5, %s1}; st.global.u16 [%d8], %r3",
    "packed and taken out": "mov.b32 %r3, {%s1, %s2}; mov.b32 {%s3, %s4}, %r3; st.global.u16 [%d8], %s4",
    "moved beside": "mov.v2.b32 {%r3, %r4}, {%r1, %r2}; st.global.u32 [%d8], %r4",
    "chosen by number": "prmt.b32 %r3, %r1, 7, 0x3214; st.global.u8 [%d8], %r3",
    "a field": "bfi.b32 %r3, %r2, %r1, 16, 8; bfe.u32 %r4, %r3, 16, 8; st.global.u32 [%d8], %r4",
    "a difference of bytes": (
        "bfi.b32 %r3, %r2, %r1, 8, 8; vabsdiff4.u32.u32.u32 %r4, %r3, %r2, %r2; shr.u32 %r5, %r4, 8; "
        "st.global.u8 [%d8], %r5"
    ),
    "narrowed": "mov.b64 %d2, {%r2, %r1}; cvt.u32.u64 %r3, %d2; st.global.u32 [%d8], %r3",
    "the upper half": "mov.b64 %d2, {%r1, %r2}; shr.u64 %d3, %d2, 32; st.global.u64 [%d8], %d3",
    "stored beside what is undefined": "mov.b64 %d2, {%r1, %r2}; st.global.u64 [%d8], %d2",
    "compared": "bfi.b32 %r3, 5, %r1, 0, 8; and.b32 %r4, %r3, 255; setp.eq.u32 %p1, %r4, 5; @%p1 ret",
    "the lower rows of a product": f"{PRODUCT}; st.global.f32 [%d8], %f3",
    "even columns of a product": f"{COLUMNS}; st.global.f32 [%d8], %f1",
    "a matrix beside what is undefined": f"bfi.b32 %r3, %r2, %r1, 16, 16; {STORED}",
    "other elements of a sum": f"{OPAQUE_PRODUCT}; st.global.f32 [%d8], %f1",
    "even columns, transposed": f"{TRANSPOSED}; setp.eq.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d8], %r4",
    "an atomic's": "red.global.add.u32 [%d8], %r2",
    "the low byte of an atomic's": "bfi.b32 %r3, 5, %r1, 0, 8; red.global.add.u32 [%d8], %r3",
    "compared and swapped": "atom.global.cas.b32 %r3, [%d8], %r2, 7; st.global.u32 [%d8], %r3",
    "exchanged for what is undefined": (
        f"{WORD}; atom.shared.exch.b32 %r3, [%r4], %r1; bar.warp.sync -1; st.global.u32 [%d8], %r3"
    ),
    "defined again": f"{WORD}; st.shared.u32 [%r4], %r1; atom.shared.exch.b32 %r3, [%r4], %r2; "
    "ld.shared.u32 %r3, [%r4]; st.global.u32 [%d8], %r3",
}

UNDEFINED = {
    "the byte beside the inserted one": "bfi.b32 %r3, 5, %r1, 0, 8; shr.u32 %r4, %r3, 8; st.global.u8 [%d8], %r4",
    "above what is added": "shl.b32 %r3, %r1, 8; add.u32 %r4, %r3, %r2; shr.u32 %r5, %r4, 8; st.global.u8 [%d8], %r5",
    "all that is shifted": "shl.b32 %r3, %r1, 8; st.global.u32 [%d8], %r3",
    "a mask's": "and.b32 %r3, %r1, 255; st.global.u32 [%d8], %r3",
    "added to": "add.u32 %r3, %r1, %r2; st.global.u32 [%d8], %r3",
    "widened": "cvt.s64.s32 %d2, %r1; st.global.u64 [%d8], %d2",
    "widened with zeros": "cvt.u64.u32 %d2, %r1; mul.lo.s64 %d3, %d2, 4; st.global.u64 [%d8], %d3",
    "the other half": "mov.b32 %r3, {%s1, %s2}; mov.b32 {%s3, %s4}, %r3; st.global.u16 [%d8], %s3",
    "the upper half of an element": (
        "bfi.b32 %r3, %r2, %r1, 0, 16; mov.v2.b32 {%r4, %r5}, {%r3, %r2}; shr.u32 %r5, %r4, 16; "
        "st.global.u16 [%d8], %r5"
    ),
    "chosen by number": "prmt.b32 %r3, %r1, 7, 0x3214; shr.u32 %r4, %r3, 8; st.global.u8 [%d8], %r4",
    "a field": "bfe.s32 %r3, %r1, 3, 5; st.global.u32 [%d8], %r3",
    "a difference of bytes": (
        "bfi.b32 %r3, %r2, %r1, 8, 8; vabsdiff4.u32.u32.u32 %r4, %r3, %r2, %r2; st.global.u8 [%d8], %r4"
    ),
    "a sum of differences": (
        "shl.b32 %r3, %r1, 8; vabsdiff4.u32.u32.u32.add %r4, %r3, %r2, %r2; st.global.u8 [%d8], %r4"
    ),
    "turned over": "not.b32 %r3, %r1; xor.b32 %r4, %r3, %r2; st.global.u32 [%d8], %r4",
    "taken away": "sub.u32 %r3, %r2, %r1; st.global.u32 [%d8], %r3",
    "a product and a sum": "mad.lo.u32 %r3, %r2, %r1, %r2; st.global.u32 [%d8], %r3",
    "negated": "neg.s32 %r3, %r1; st.global.u32 [%d8], %r3",
    "joined with or": "or.b32 %r3, %r1, %r1; st.global.u32 [%d8], %r3",
    "looked up": "lop3.b32 %r3, %r1, %r1, %r1, 0xe8; st.global.u32 [%d8], %r3",
    "looked up and tested": (
        "setp.eq.u32 %p1, %r1, 5; lop3.or.b32 _|%p1, %r1, %r1, %r1, 0xe8, %p1; selp.u32 %r3, 1, 2, %p1; "
        "@%p1 st.global.u32 [%d8], %r3"
    ),
    "two shifted": "shf.l.clamp.b32 %r3, %r1, %r1, %r1; st.global.u32 [%d8], %r3",
    "shifted left by what is undefined": "shl.b32 %r3, %r2, %r1; st.global.u32 [%d8], %r3",
    "shifted right by what is undefined": "cvt.u64.u32 %d2, %r2; shr.s64 %d3, %d2, %r1; st.global.u64 [%d8], %d3",
    "shifted by an undefined byte": (
        "and.b32 %r3, %r1, 31; shl.b32 %r4, %r2, %r3; shr.u32 %r5, %r4, 24; st.global.u8 [%d8], %r5"
    ),
    "an undefined amount beyond the low byte": (
        "bfi.b32 %r3, 5, %r1, 0, 8; shf.l.clamp.b32 %r4, %r2, %r2, %r3; st.global.u32 [%d8], %r4"
    ),
    "shifted out of a register": "shf.l.clamp.b32 %r3, %r1, 0, 5; st.global.u32 [%d8], %r3",
    "rotated by what is undefined": "shf.r.wrap.b32 %r3, %r2, %r2, %r1; st.global.u32 [%d8], %r3",
    "a field somewhere": "bfe.u32 %r3, %r2, %r1, 8; st.global.u32 [%d8], %r3",
    "a field of some size": "cvt.u64.u32 %d2, %r2; bfe.u64 %d3, %d2, 8, %r1; st.global.u64 [%d8], %d3",
    "inserted somewhere": "bfi.b32 %r3, %r2, %r2, %r1, 8; st.global.u32 [%d8], %r3",
    "chosen by what is undefined": "prmt.b32 %r3, %r2, %r2, %r1; st.global.u32 [%d8], %r3",
    "selected": "selp.u32 %r3, %r1, %r1, %p1; st.global.u32 [%d8], %r3",
    "selected by sign": "slct.u32.s32 %r3, %r1, %r1, %r1; st.global.u32 [%d8], %r3",
    "compared": "set.eq.u32.u32 %r3, %r1, %r1; st.global.u32 [%d8], %r3",
    "the greater": "max.s32 %r3, %r1, %r2; st.global.u32 [%d8], %r3",
    "as a float": "cvt.rn.f32.u32 %f1, %r1; st.global.f32 [%d8], %f1",
    "shifted by a register": "shr.u32 %r3, %r1, %r2; st.global.u32 [%d8], %r3",
    "the upper rows of a product": f"{PRODUCT}; st.global.f32 [%d8], %f2",
    "odd columns of a product": f"{COLUMNS}; st.global.f32 [%d8], %f2",
    "a matrix": f"mov.u32 %r3, %r1; {STORED}",
    "an element of a sum": f"{OPAQUE_PRODUCT}; st.global.f32 [%d8], %f0",
    "odd columns, transposed": f"{TRANSPOSED}; setp.ne.u32 %p1, %r5, 0; @%p1 st.global.u32 [%d8], %r4",
    "a branch's": "and.b32 %r3, %r1, 255; setp.eq.u32 %p1, %r3, 5; @%p1 ret; st.global.u32 [%d8], 1",
    "an atomic's": "red.global.add.u32 [%d8], %r1",
    "an exchange's": "atom.global.exch.b32 %r3, [%d8], %r1",
    "the comparison value of an atomic": "atom.global.cas.b32 %r3, [%d8], %r1, %r2",
    "the swapped value of an atomic": "atom.global.cas.b32 %r3, [%d8], 0, %r1",
    "one of an atomic's elements": "mov.b32 %f1, %r2; red.global.add.v2.f32 [%d8], {%f1, %f2}",
    "a wide exchange's": "cvt.u64.u32 %d2, %r1; atom.global.exch.b64 %d3, [%d8], %d2",
    "added in shared memory": f"{WORD}; red.shared.add.u32 [%r4], %r1; ld.shared.u32 %r3, [%r4]; "
    "st.global.u32 [%d8], %r3",
    "swapped in shared memory": f"{WORD}; atom.shared.cas.b32 %r3, [%r4], 0, %r1; ld.shared.u32 %r3, [%r4]; "
    "st.global.u32 [%d8], %r3",
    "returned by an atomic": f"{WORD}; st.shared.u32 [%r4], %r1; atom.shared.add.u32 %r3, [%r4], %r2; "
    "st.global.u32 [%d8], %r3",
    "left by an atomic": f"{WORD}; st.shared.u32 [%r4], %r1; red.shared.add.u32 [%r4], %r2; "
    "ld.shared.u32 %r3, [%r4]; st.global.u32 [%d8], %r3",
}


def loaded(bodies):
    """Return a module with a kernel for each body."""
    kernels = [KERNEL.format(number=number, body=body) for number, body in enumerate(bodies)]
    return cuda.load("".join([HEAD, *kernels]).encode())


def reported(module, number):
    """Return the findings in a kernel of a module that `loaded` returned."""
    out = cuda.zeros(2, np.uint64)
    return found(module[f"kernel{number}"][1, 32], cuda.Pointer(int(out.pointer)), np.uint32(3))


@pytest.fixture(scope="module")
def bodies():
    with cuda.Device(0):
        return loaded([*DEFINED.values(), *UNDEFINED.values()])


@pytest.mark.parametrize("number", range(len(DEFINED) + len(UNDEFINED)), ids=[*DEFINED, *UNDEFINED])
def test_a_store_of_undefined_bytes_is_found_and_one_of_defined_bytes_is_fine(bodies, number):
    texts = reported(bodies, number)
    words = "uninitialised value reaches (a store|a branch|an atomic operation): a register"
    assert any(re.search(words, text) for text in texts) == (number >= len(DEFINED)), texts
    assert texts or number < len(DEFINED)


def test_what_is_followed_has_lines_here():
    """An opcode with its own rule for the flow of bytes has a case that fails with too many sources or too few."""
    names = {row.name for row in ROWS if row.flow not in ("all", "fresh")}
    for lines in (DEFINED, UNDEFINED):
        assert names <= {word.split(".")[0] for line in lines.values() for word in line.split()}


@pytest.mark.usefixtures("engine")
def test_an_unwritten_element_that_all_threads_load_is_undefined_and_its_neighbours_are_defined():
    source = """extern "C" __global__ void common(const int4* in, int* out) {
    int4 four = in[1];
    out[threadIdx.x] = four.x;
    out[threadIdx.x + 64] = four.w;
}"""
    numbers = cuda.empty(8, np.int32)
    numbers[:7].copy_from(np.arange(7, dtype=np.int32))
    (text,) = found(cuda.compile(source)["common"][1, 64], numbers, cuda.empty(128, np.int32))
    assert "common at kernel.cu:4: uninitialised value reaches a store: it was read at kernel.cu:2 " in text
    assert "(28 bytes into the 32-byte allocation " in text


def test_the_first_load_of_the_value_that_is_stored_is_named():
    source = """extern "C" __global__ void add(float* p) {
    p[4 * threadIdx.x] += 1.0f;
    p[4 * threadIdx.x + 1] += 2.0f;
    p[4 * threadIdx.x + 2] += 3.0f;
}
extern "C" __global__ void moved(int* out) {
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (threadIdx.x < 7) s[threadIdx.x] = 1;
    __syncwarp();
    t[threadIdx.x] = s[threadIdx.x];
    out[threadIdx.x] = t[threadIdx.x];
}"""
    module = cuda.compile(source)
    texts = found(module["add"][1, 32], cuda.empty(128, np.float32))
    assert "add at kernel.cu:2: uninitialised value reaches a store: it was read at kernel.cu:2 " in texts[0]
    (text,) = found(module["moved"][1, 32], cuda.zeros(32, np.int32))
    assert "kernel.cu:12: uninitialised value reaches a store: it was read at kernel.cu:11 from shared memory" in text


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "float64"])
def test_an_unwritten_element_of_a_local_array_is_found_between_written_ones(engine, dtype):
    kind = {"bool": "bool", "int8": "char", "int16": "short", "int32": "int", "float64": "double"}[dtype]
    source = f"""extern "C" __global__ void element({kind}* out, int missing, int place) {{
    {kind} a[12];
    for (int j = 0; j < 12; j++)
        if (j != missing) a[j] = j + place;
    out[threadIdx.x] = a[place + (threadIdx.x & 1)];
}}"""
    element = cuda.compile(source)["element"][1, 32]
    for place in range(8):
        texts = found(element, cuda.empty(32, dtype), 5, place)
        assert len(texts) == (place in (4, 5)), (place, texts)


ATOMICS = FOLDER / "atomics.cu"
LINES = {name: min(lines) for name, lines in marked(ATOMICS, "AT").items()}
SHUFFLED = rf"test.cu:{LINES['shuffle']} read it from lane \d+ of the warp, which does not take part"
UNWRITTEN = "where nothing has been written"
# The use of the value in each report, and the end of the report.
REPORTED = {
    "returns_early": ("an atomic operation", SHUFFLED),
    "adds_unwritten": ("an atomic operation", UNWRITTEN),
    "exchanges_unwritten": ("an atomic operation", UNWRITTEN),
    "swaps_unwritten": ("an atomic operation", UNWRITTEN),
    "adds_in_shared_memory": ("a store", SHUFFLED),
}


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_an_undefined_operand_of_an_atomic_is_found(engine):
    kernels = Kernels(ATOMICS.read_text())
    x, out = kernels.put(np.ones(40, np.int32)), kernels.zeros(1)
    assert watched(kernels, engine, "contributes_zero", 1, 64, x, out, 40) == []
    assert kernels.get(out, 1).tolist() == [40]
    for name, (use, origin) in REPORTED.items():
        (text,) = watched(kernels, engine, name, 1, 64, x, kernels.zeros(1), 40)
        assert f"test.cu:{LINES[name]}: uninitialised value reaches {use}: " in text
        assert re.search(origin, text), text


KERNELS = re.findall(r"KERNEL\((\w+)\) \{", (FOLDER / "copied.cu").read_text())


@pytest.mark.parametrize("name", KERNELS)
def test_bytes_are_reported_where_they_are_used_and_not_where_they_are_copied(name):
    given = cuda.zeros(4096, np.int32), cuda.empty(4096, np.int32), 7
    texts = found(compiled(FOLDER / "copied.cu")[name][1, 32], *given)
    assert bool(texts) == name.startswith("found")
    assert all("uninitialised value reaches" in text for text in texts), texts


def test_cub_works_on_partial_tiles():
    kernels = Kernels((FOLDER / "cub_tiles.cu").read_text())  # as PTX, because the assembler would take a second more
    keys, values = np.array([51, 14, 95, 3, 82, 3, 47], np.uint32), np.arange(7, dtype=np.uint32)
    sorted_keys, sorted_values, sums, total = (kernels.zeros(7, np.uint32) for _ in range(4))
    given, ones = (kernels.put(keys), sorted_keys, kernels.put(values), sorted_values), kernels.put(values + 1)
    assert watched(kernels, "numpy", "sort", 1, 64, *given, 7) == []
    assert watched(kernels, "numpy", "scan", 1, 64, sums, ones, 7) == []
    assert watched(kernels, "numpy", "total", 1, 32, total, ones, 7) == []
    order = np.argsort(keys, kind="stable")
    assert kernels.get(sorted_keys, 7).tolist() == keys[order].tolist()
    assert kernels.get(sorted_values, 7).tolist() == order.tolist()
    assert kernels.get(sums, 7).tolist() == [0, 1, 3, 6, 10, 15, 21]
    assert kernels.get(total, 1).tolist() == [28]


# The compiler does not inline these functions, so the values are arguments and results.
CALLED = """
__device__ __noinline__ int plus_one(int x, int unused) { return x + 1; }
extern "C" __global__ void found_in_an_argument(int* out) {
    __shared__ int s[32];
    out[threadIdx.x] = plus_one(s[threadIdx.x], 0);
}
extern "C" __global__ void silent_if_unused(int* out) {
    __shared__ int s[32];
    out[threadIdx.x] = plus_one(threadIdx.x, s[threadIdx.x]);
}
"""


@pytest.mark.parametrize("name", ["found_in_an_argument", "silent_if_unused"])
def test_values_are_followed_into_functions_and_back(name):
    texts = found(cuda.compile(CALLED)[name][1, 32], cuda.zeros(32, np.int32))
    assert bool(texts) == name.startswith("found")
    assert all(
        "uninitialised value reaches a store" in text and "plus_one(s[threadIdx.x], 0)" in text for text in texts
    )


def test_stores_without_a_type_are_no_members_of_structures():
    """Triton's kernels change tensor maps."""
    text = """
    .version 8.5
    .target sm_90a
    .address_size 64
    .visible .entry change(.param .u64 map, .param .u64 data) {
        .reg .b64 %rd<3>;
        .shared .align 128 .b8 copy[128];
        ld.param.u64 %rd1, [map];
        ld.param.u64 %rd2, [data];
        tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;
        tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [copy], 128;
        ret;
    }
    """
    assert paddings_of(load_module(text).entries["change"]) == frozenset()
