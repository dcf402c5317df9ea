// Atomics: every operation and type on global, shared and generic addresses, with and without a result, in
// several scopes and orders. The order of lanes is the hardware's own affair, so a kernel leaves only what
// does not depend on it: final memory, and returned values that the test sorts.
typedef unsigned long long u64;

#pragma nv_diag_suppress 550  // the results of these atomics are dropped on purpose

#define INDEX const int i = blockIdx.x * blockDim.x + threadIdx.x;
#define RED(name, type, letter, slot, value) \
    asm volatile(name " [%0], %1;" ::"l"((type*)(memory + (slot))), letter((type)(value)) : "memory");
#define ATOM(name, type, letter, slot, value)                                                         \
    {                                                                                                 \
        type old;                                                                                     \
        asm volatile(name " %0, [%1], %2;"                                                            \
                     : "=" letter(old)                                                                \
                     : "l"((type*)(memory + (slot))), letter((type)(value))                           \
                     : "memory");                                                                     \
    }

// Slots of eight bytes; several lanes of a warp and several warps share each of them.
extern "C" __global__ void global_memory(const unsigned* a, u64* memory) {
    INDEX
    const unsigned x = a[i], k = x % 5;
    const u64 wide = (u64)x << 20 | i;
    RED("red.global.add.u32", unsigned, "r", 0 + k, x) RED("red.global.add.s32", int, "r", 5 + k, x)
    RED("red.global.add.u64", u64, "l", 10 + k, wide) RED("red.global.add.f32", float, "f", 15 + k, x & 255)
    RED("red.global.add.f64", double, "d", 20 + k, (x & 1023) * 0.5)
    RED("red.global.min.u32", unsigned, "r", 25 + k, x) RED("red.global.max.u32", unsigned, "r", 30 + k, x)
    RED("red.global.min.s32", int, "r", 35 + k, x) RED("red.global.max.s32", int, "r", 40 + k, x)
    RED("red.global.min.u64", u64, "l", 45 + k, wide) RED("red.global.max.u64", u64, "l", 50 + k, wide)
    RED("red.global.min.s64", long long, "l", 55 + k, (long long)wide - (1ll << 50))
    RED("red.global.max.s64", long long, "l", 60 + k, (long long)wide - (1ll << 50))
    RED("red.global.and.b32", unsigned, "r", 65 + k, x | 0xff) RED("red.global.or.b32", unsigned, "r", 70 + k, x & 0xf0f0f)
    RED("red.global.xor.b32", unsigned, "r", 75 + k, x) RED("red.global.and.b64", u64, "l", 80 + k, wide | 0xffff)
    RED("red.global.or.b64", u64, "l", 85 + k, wide & 0xffff0ffff) RED("red.global.xor.b64", u64, "l", 90 + k, wide)
    RED("red.global.inc.u32", unsigned, "r", 95 + k, 6) RED("red.global.dec.u32", unsigned, "r", 100 + k, 9)
    RED("red.relaxed.sys.global.add.u32", unsigned, "r", 105 + k, 3)
    RED("red.release.gpu.global.add.u32", unsigned, "r", 110 + k, 5)
    RED("red.add.u32", unsigned, "r", 115 + k, x)
    ATOM("atom.global.add.u32", unsigned, "r", 120 + k, x) ATOM("atom.add.s32", int, "r", 125 + k, x)
    ATOM("atom.global.add.u64", u64, "l", 130 + k, wide) ATOM("atom.global.add.f32", float, "f", 135 + k, x & 127)
    ATOM("atom.global.add.f64", double, "d", 140 + k, (x & 511) * 0.25)
    ATOM("atom.global.min.s32", int, "r", 145 + k, x) ATOM("atom.global.max.u64", u64, "l", 150 + k, wide)
    ATOM("atom.global.and.b32", unsigned, "r", 155 + k, x | 0xff00) ATOM("atom.global.or.b32", unsigned, "r", 160 + k, x & 0x777)
    ATOM("atom.global.xor.b64", u64, "l", 165 + k, wide) ATOM("atom.global.inc.u32", unsigned, "r", 170 + k, 4)
    ATOM("atom.global.dec.u32", unsigned, "r", 175 + k, 3) ATOM("atom.acq_rel.cta.global.add.u32", unsigned, "r", 180 + blockIdx.x, 7)
    ATOM("atom.acquire.gpu.global.max.s32", int, "r", 185 + k, x)
}

// Pairs of halves, whose sums are small integers and so exact in any order.
extern "C" __global__ void halves(const unsigned* a, unsigned* memory) {
    INDEX
    const unsigned k = a[i] % 3;
    const unsigned ones = 0x3c004000, bfloat_ones = 0x3f804000;
    asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(memory + k), "r"(ones) : "memory");
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(memory + 3 + k), "r"(bfloat_ones) : "memory");
    unsigned short old;
    asm volatile("atom.global.add.noftz.f16 %0, [%1], %2;" : "=h"(old) : "l"(memory + 6 + k), "h"((unsigned short)0x3c00) : "memory");
    asm volatile("atom.global.add.noftz.bf16 %0, [%1], %2;" : "=h"(old) : "l"(memory + 9 + k), "h"((unsigned short)0x3f80) : "memory");
    float x, y;
    asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
                 : "=f"(x), "=f"(y)
                 : "l"(memory + 12 + 2 * k), "f"(1.0f), "f"(2.0f)
                 : "memory");
}

// Shared memory; every lane of a warp on one word, then on a few, then each on its own.
extern "C" __global__ void shared_memory(const unsigned* a, u64* out) {
    INDEX
    __shared__ u64 memory[64];
    if (threadIdx.x < 64) memory[threadIdx.x] = threadIdx.x % 8 == 7 ? 0 : threadIdx.x * 0x100000001ull;
    __syncthreads();
    const unsigned x = a[i], k = x % 3;
    atomicAdd((unsigned*)memory, x);
    atomicAdd((unsigned*)(memory + 1 + k), 3u);
    atomicAdd(memory + 4 + k, (u64)x << 16);
    atomicAdd((float*)(memory + 7), 0.5f);
    atomicAdd((double*)(memory + 15), 0.25);
    atomicMin((int*)(memory + 8 + k), (int)x);
    atomicMax((int*)(memory + 11 + k), (int)x);
    atomicMin(memory + 16 + k, (u64)x * x);
    atomicMax((long long*)(memory + 19 + k), (long long)x - 5);
    atomicAnd((unsigned*)(memory + 24 + k), x | 3);
    atomicOr((unsigned*)(memory + 27 + k), x & 0x111);
    atomicXor((unsigned*)(memory + 32 + k), x);
    atomicInc((unsigned*)(memory + 35 + k), 10);
    atomicDec((unsigned*)(memory + 40 + k), 12);
    atomicSub((int*)(memory + 43 + k), (int)x);
    atomicAdd((unsigned*)(memory + 48 + threadIdx.x % 16), x);
    __syncthreads();
    if (threadIdx.x < 64) out[blockIdx.x * 64 + threadIdx.x] = memory[threadIdx.x];
}

// What atomics return: each set of results is the same in any order.
extern "C" __global__ void results(const unsigned* a, unsigned* memory, unsigned* tickets, unsigned* wrapped,
                                   unsigned* down, unsigned* exchanged, unsigned* set_bits) {
    INDEX
    const unsigned x = a[i];
    tickets[i] = atomicAdd(memory, 1u);
    wrapped[i] = atomicInc(memory + 1, 6u);
    down[i] = atomicDec(memory + 2, 4u);
    const unsigned previous = atomicExch(memory + 3, i + 1);
    exchanged[previous] = 1;  // a chain through all lanes: every number but the last one is returned once
    set_bits[i] = atomicOr(memory + 4 + i / 32, 1u << (x % 32)) >> (x % 32) & 1;
}

// Loops of compare-and-swap: an addition and a multiplication in 32, 64 and 16 bits.
extern "C" __global__ void compare_and_swap(const unsigned* a, u64* memory) {
    INDEX
    const unsigned x = a[i], k = x % 4;
    unsigned* words = (unsigned*)(memory + k);
    unsigned seen = *(volatile unsigned*)words, expected;
    do {
        expected = seen;
        seen = atomicCAS(words, expected, expected + x);
    } while (seen != expected);
    u64 wide = *(volatile u64*)(memory + 4 + k), before;
    do {
        before = wide;
        wide = atomicCAS(memory + 4 + k, before, before * (x | 1));
    } while (wide != before);
    unsigned short* halves = (unsigned short*)(memory + 8);
    unsigned short half = *(volatile unsigned short*)(halves + k), old;
    do {
        old = half;
        asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;"
                     : "=h"(half)
                     : "l"(halves + k), "h"(old), "h"((unsigned short)(old ^ x))
                     : "memory");
    } while (half != old);
}

// 128 bits at once.
extern "C" __global__ void wide_swap(const unsigned* a, u64* memory) {
    INDEX
    const u64 x = a[i] | 1;
    u64 low = 0, high = 0, old_low, old_high;
    for (;;) {
        asm volatile(
            "{ .reg .b128 expected, desired, seen;\n\t"
            "mov.b128 expected, {%3, %4};\n\tmov.b128 desired, {%5, %6};\n\t"
            "atom.global.cas.b128 seen, [%2], expected, desired;\n\tmov.b128 {%0, %1}, seen; }"
            : "=l"(old_low), "=l"(old_high)
            : "l"(memory), "l"(low), "l"(high), "l"(low + x), "l"(high ^ (x << 7))
            : "memory");
        if (old_low == low && old_high == high) break;
        low = old_low;
        high = old_high;
    }
}

// Several thousand lanes in a histogram: global counters, and shared ones added up at the end.
extern "C" __global__ void histogram(const unsigned* a, unsigned* direct, unsigned* privatised) {
    INDEX
    __shared__ unsigned bins[64];
    if (threadIdx.x < 64) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int k = 0; k < 4; ++k) {
        const unsigned bin = (a[i] >> (k * 6)) % 64;
        atomicAdd(direct + bin, 1u);
        atomicAdd(bins + bin, 1u);
    }
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(privatised + threadIdx.x, bins[threadIdx.x]);
}
