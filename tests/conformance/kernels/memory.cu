// Memory: every width and vector of ld and st in every state space, narrow values extended by sign or zero,
// generic addresses into each window, cache and ordering qualifiers, structures with padding, local arrays.
#include "rows.cuh"

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;

#define ROW(name, value) PUT(value);
#define LOAD32(name, operand)                                                                   \
    {                                                                                           \
        unsigned r;                                                                             \
        asm volatile(name " %0, [%1];" : "=r"(r) : operand : "memory");                         \
        PUT(r);                                                                                 \
    }

// Lane i reads at byte 8 i, plus 0 to 7 for bytes, 0 to 6 for halves and 4 for words.
extern "C" __global__ void narrow_loads(const u8* a, unsigned* out, int n) {
    LANE
    const u8* p = a + 8 * i;
    LOAD32("ld.global.u8", "l"(p + i % 8)) LOAD32("ld.global.s8", "l"(p + i % 8))
    LOAD32("ld.global.b8", "l"(p + 7)) LOAD32("ld.global.u16", "l"(p + i % 4 * 2))
    LOAD32("ld.global.s16", "l"(p + i % 4 * 2)) LOAD32("ld.global.b16", "l"(p + 6))
    LOAD32("ld.global.u32", "l"(p + 4)) LOAD32("ld.global.s32", "l"(p)) LOAD32("ld.global.b32", "l"(p + 4))
    LOAD32("ld.u8", "l"(p + 1)) LOAD32("ld.s8", "l"(p + 1)) LOAD32("ld.u16", "l"(p + 2)) LOAD32("ld.s16", "l"(p + 2))
    LOAD32("ld.global.nc.u8", "l"(p + 3)) LOAD32("ld.global.nc.s16", "l"(p + 2)) LOAD32("ld.global.nc.u32", "l"(p))
    LOAD32("ld.volatile.global.u32", "l"(p)) LOAD32("ld.volatile.u32", "l"(p + 4))
    LOAD32("ld.relaxed.gpu.global.u32", "l"(p)) LOAD32("ld.acquire.gpu.global.u32", "l"(p + 4))
    LOAD32("ld.acquire.sys.u32", "l"(p)) LOAD32("ld.relaxed.cta.s8", "l"(p + 5))
    LOAD32("ld.global.ca.u32", "l"(p)) LOAD32("ld.global.cg.u32", "l"(p)) LOAD32("ld.global.cs.u32", "l"(p))
    LOAD32("ld.global.lu.u32", "l"(p)) LOAD32("ld.global.cv.u32", "l"(p))
    LOAD32("ld.global.L1::no_allocate.u32", "l"(p)) LOAD32("ld.global.nc.L1::evict_last.u32", "l"(p))
    LOAD32("ld.global.L2::128B.u32", "l"(p + 4)) LOAD32("ldu.global.u32", "l"(a))
}

extern "C" __global__ void wide_loads(const u8* a, u64* out, int n) {
    LANE
    const u8* p = a + 16 * i;
    u64 r;
    asm volatile("ld.global.u64 %0, [%1];" : "=l"(r) : "l"(p + 8));
    ROW("ld.global.u64", r)
    asm volatile("ld.global.s8 %0, [%1+3];" : "=l"(r) : "l"(p));
    ROW("ld.global.s8 into 64 bits", r)
    asm volatile("ld.global.s32 %0, [%1+4];" : "=l"(r) : "l"(p));
    ROW("ld.global.s32 into 64 bits", r)
    asm volatile("ld.global.u16 %0, [%1+-14];" : "=l"(r) : "l"(p + 16));
    ROW("ld.global.u16 into 64 bits, negative offset", r)
    float f;
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(f) : "l"(p));
    ROW("ld.global.f32", __float_as_uint(f))
    double d;
    asm volatile("ld.global.f64 %0, [%1];" : "=d"(d) : "l"(p));
    ROW("ld.global.f64", __double_as_longlong(d))
}

// Vectors: each component is a row.
extern "C" __global__ void vector_loads(const u8* a, u64* out, int n) {
    LANE
    const u8* p = a + 16 * i;
    unsigned x, y, z, w;
    u64 v0, v1;
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p));
    ROW("ld.global.v4.u32 x", x) ROW("ld.global.v4.u32 y", y) ROW("ld.global.v4.u32 z", z)
    ROW("ld.global.v4.u32 w", w)
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p + 8));
    ROW("ld.global.v2.u32", (u64)y << 32 | x)
    asm volatile("ld.global.v4.s8 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p + 4));
    ROW("ld.global.v4.s8 x, y", (u64)y << 32 | x) ROW("ld.global.v4.s8 z, w", (u64)w << 32 | z)
    asm volatile("ld.global.v2.u8 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p + 2));
    ROW("ld.global.v2.u8", (u64)y << 32 | x)
    asm volatile("ld.global.v4.u16 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(p + 8));
    ROW("ld.global.v4.u16 x, y", (u64)y << 32 | x) ROW("ld.global.v4.u16 z, w", (u64)w << 32 | z)
    asm volatile("ld.global.v2.s16 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p + 4));
    ROW("ld.global.v2.s16", (u64)y << 32 | x)
    asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(v0), "=l"(v1) : "l"(p));
    ROW("ld.global.v2.u64 x", v0) ROW("ld.global.v2.u64 y", v1)
    asm volatile("ld.global.nc.v2.u64 {%0, %1}, [%2];" : "=l"(v0), "=l"(v1) : "l"(p));
    ROW("ld.global.nc.v2.u64", v0 ^ v1)
    double d0, d1;
    asm volatile("ld.v2.f64 {%0, %1}, [%2];" : "=d"(d0), "=d"(d1) : "l"(p));
    ROW("ld.v2.f64 x", __double_as_longlong(d0)) ROW("ld.v2.f64 y", __double_as_longlong(d1))
    float f0, f1, f2, f3;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(f0), "=f"(f1), "=f"(f2), "=f"(f3) : "l"(p));
    ROW("ld.global.v4.f32 y, x", (u64)__float_as_uint(f1) << 32 | __float_as_uint(f0))
    ROW("ld.global.v4.f32 w, z", (u64)__float_as_uint(f3) << 32 | __float_as_uint(f2))
}

// Every lane stores into its own 64 bytes, over a background that the test fills in.
extern "C" __global__ void stores(const unsigned* a, u8* memory, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u8* p = memory + 64 * i;
    const unsigned x = a[i], y = x * 2654435761u, z = x ^ y, w = ~x;
    const u64 v = (u64)x << 32 | y;
    asm volatile("st.global.u8 [%0], %1;" ::"l"(p + i % 4), "r"(x) : "memory");
    asm volatile("st.global.s16 [%0], %1;" ::"l"(p + 4 + i % 2 * 2), "r"(y) : "memory");
    asm volatile("st.global.b32 [%0+8], %1;" ::"l"(p), "r"(z) : "memory");
    asm volatile("st.u8 [%0+13], %1;" ::"l"(p), "r"(y) : "memory");
    asm volatile("st.volatile.global.u16 [%0+14], %1;" ::"l"(p), "h"((u16)x) : "memory");
    asm volatile("st.global.v2.u8 [%0+16], {%1, %2};" ::"l"(p), "r"(x), "r"(y) : "memory");
    asm volatile("st.global.v4.u8 [%0+20], {%1, %2, %3, %4};" ::"l"(p), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    asm volatile("st.global.v2.u16 [%0+24], {%1, %2};" ::"l"(p), "r"(x), "r"(z) : "memory");
    asm volatile("st.release.gpu.global.u32 [%0+28], %1;" ::"l"(p), "r"(w) : "memory");
    asm volatile("st.global.v4.u32 [%0+32], {%1, %2, %3, %4};" ::"l"(p), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    asm volatile("st.global.wt.u64 [%0+48], %1;" ::"l"(p), "l"(v) : "memory");
    asm volatile("st.global.v2.f32 [%0+56], {%1, %2};" ::"l"(p), "f"(__uint_as_float(x)), "f"(1.5f) : "memory");
    if (i % 3 == 0) asm volatile("st.relaxed.sys.global.u8 [%0+59], %1;" ::"l"(p), "r"(7) : "memory");
    if (i % 5 == 0) asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v), "l"(~v) : "memory");
}

__constant__ unsigned table[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4};
__constant__ signed char narrow_table[16] = {-1, 2, -3, 4, -5, 6, -7, 8, 127, -128, 11, 12, 13, 14, 15, 16};
__device__ int counters[4] = {10, -20, 30, -40};
__device__ const int* chosen[3] = {counters + 1, counters + 3, counters};
__device__ double scalar = 0.1;

extern "C" __global__ void variables(unsigned* out, int n) {
    LANE
    ROW("ld.const, same address", table[4]) ROW("ld.const, different addresses", table[i % 64])
    ROW("ld.const.s8", narrow_table[i % 16]) ROW("ld.global of a variable", counters[i % 4])
    ROW("pointer in a variable's initial value", *chosen[i % 3])
    ROW("double variable", __double_as_longlong(scalar) >> (i % 2 * 32))
    const unsigned* generic = i % 2 ? table + i % 20 : (const unsigned*)counters + i % 4;
    ROW("generic load of const or global", *generic)
}

struct Mixed {
    char tag;
    double weight;
    short code;
    int values[3];
    float2 pair;
    bool flag;
};

__shared__ __align__(16) unsigned shared_words[256];

extern "C" __global__ void windows(unsigned* global_words, unsigned* out, int n) {
    LANE
    extern __shared__ unsigned dynamic_words[];
    const int t = threadIdx.x;
    unsigned local_words[8];
    for (int k = 0; k < 8; ++k) local_words[k] = i * 100 + k;
    shared_words[t] = 1000 + t;
    dynamic_words[t] = 2000 + t;
    __syncthreads();
    unsigned* where[4] = {global_words + i, shared_words + (t + 7) % 128, dynamic_words + (t + 9) % 128,
                          local_words + i % 8};
    unsigned* p = where[i % 4];
    ROW("generic load of any space", *p)
    ROW("isspacep.global", __isGlobal(p)) ROW("isspacep.shared", __isShared(p)) ROW("isspacep.local", __isLocal(p))
    __syncthreads();
    if (i % 4 == 1 || i % 4 == 2) atomicAdd(p, 5000u + i);
    else *p += 70000;
    __syncthreads();
    ROW("generic store of global", global_words[i]) ROW("generic atomic of shared", shared_words[t])
    ROW("generic atomic of dynamic shared", dynamic_words[t]) ROW("generic store of local", local_words[i % 8])
    unsigned offset = (unsigned)__cvta_generic_to_shared(shared_words + t), value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(offset));
    ROW("cvta.to.shared and ld.shared", value)
    ROW("cvta.shared and ld", *(unsigned*)__cvta_shared_to_generic(offset))
    asm volatile("st.shared.v2.u8 [%0], {%1, %2};" ::"r"(offset), "r"(t), "r"(t + 1) : "memory");
    __syncthreads();
    ROW("st.shared.v2.u8", shared_words[(t + 1) % 128])
    __syncthreads();
    asm volatile("st.volatile.shared.u16 [%0+2], %1;" ::"r"(offset), "h"((u16)(t * 3)) : "memory");
    __syncthreads();
    short narrow;
    asm volatile("ld.shared.s16 %0, [%1+2];" : "=h"(narrow) : "r"(offset));
    ROW("st.shared.u16 and ld.shared.s16", narrow)
    __syncthreads();
    if (t % 4 == 0) asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, 9};" ::"r"(offset), "r"(t), "r"(i), "r"(n) : "memory");
    __syncthreads();
    unsigned first, second;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(first), "=r"(second) : "r"(offset & ~7u));
    ROW("ld.shared.v2.u32", first * 1000 + second)
}

// An array with an index known only at run time lives in local memory; elements of three widths.
extern "C" __global__ void local_arrays(const unsigned* a, unsigned* out, int n) {
    LANE
    unsigned words[16];
    signed char bytes[24];
    double doubles[6];
    for (int k = 0; k < 16; ++k) words[k] = a[(i + k) % n] * (k + 1);
    for (int k = 0; k < 24; ++k) bytes[k] = (signed char)(a[(i + k) % n] >> k);
    for (int k = 0; k < 6; ++k) doubles[k] = i * 0.5 + k;
    const unsigned pick = a[i];
    words[pick % 16] += 17;
    bytes[pick % 24] = -9;
    doubles[pick % 6] *= 3.0;
    unsigned sum = 0;
    for (int k = 0; k < 5; ++k) sum = sum * 31 + words[(pick >> k) % 16] + bytes[(pick >> k) % 24];
    ROW("local words and bytes", sum) ROW("local doubles", (unsigned)(doubles[(pick >> 3) % 6] * 4.0))
    Mixed mixed[3];
    for (int k = 0; k < 3; ++k) {
        mixed[k].tag = (char)(pick + k);
        mixed[k].weight = k * 1.25;
        mixed[k].code = (short)(pick >> k);
        for (int m = 0; m < 3; ++m) mixed[k].values[m] = i * m + k;
        mixed[k].pair = make_float2(i, k);
        mixed[k].flag = pick >> k & 1;
    }
    const Mixed chosen_one = mixed[pick % 3];
    ROW("local structure, integers", chosen_one.tag + chosen_one.code + chosen_one.values[pick % 3] + chosen_one.flag)
    ROW("local structure, floats", (unsigned)(chosen_one.weight * 8.0 + chosen_one.pair.x + chosen_one.pair.y))
}

// Structures and scalars of every alignment by value; an array inside is read with an index of run time.
extern "C" __global__ void parameters(u8 first, Mixed mixed, short second, double third, char fourth,
                                      float4 vector, bool fifth, u64 sixth, unsigned* out, int n) {
    LANE
    ROW("u8", first) ROW("structure's char", mixed.tag) ROW("structure's double", (unsigned)(mixed.weight * 16.0))
    ROW("structure's short", mixed.code) ROW("structure's array", mixed.values[i % 3])
    ROW("structure's float2", __float_as_uint(i % 2 ? mixed.pair.x : mixed.pair.y)) ROW("structure's bool", mixed.flag)
    ROW("short", second) ROW("double", __double_as_longlong(third) >> (i % 2 * 32)) ROW("char", fourth)
    ROW("float4", __float_as_uint((&vector.x)[i % 4])) ROW("bool", fifth) ROW("u64", sixth >> (i % 5 * 8))
}
