// Half precision and bfloat16, single and in pairs.
#include "rows.cuh"

typedef unsigned short half_bits;
typedef unsigned int pair_bits;

#define UNARY(name, tidy)                                       \
    {                                                           \
        half_bits r;                                            \
        asm volatile(name " %0, %1;" : "=h"(r) : "h"(x));       \
        PUT(tidy(r));                                           \
    }
#define BINARY(name, tidy)                                                \
    {                                                                     \
        half_bits r;                                                      \
        asm volatile(name " %0, %1, %2;" : "=h"(r) : "h"(x), "h"(y));     \
        PUT(tidy(r));                                                     \
    }
#define TERNARY(name, tidy)                                                        \
    {                                                                              \
        half_bits r;                                                               \
        asm volatile(name " %0, %1, %2, %3;" : "=h"(r) : "h"(x), "h"(y), "h"(z));  \
        PUT(tidy(r));                                                              \
    }

extern "C" __global__ void half(const half_bits* a, const half_bits* b, const half_bits* c, half_bits* out,
                                int n) {
    LANE
    const half_bits x = a[i], y = b[i], z = c[i];
    BINARY("add.f16", one_nan_f16)
    BINARY("add.rn.f16", one_nan_f16)
    BINARY("add.ftz.f16", one_nan_f16)
    BINARY("add.sat.f16", one_nan_f16)
    BINARY("sub.rn.f16", one_nan_f16)
    BINARY("sub.ftz.sat.f16", one_nan_f16)
    BINARY("mul.rn.f16", one_nan_f16)
    BINARY("mul.ftz.f16", one_nan_f16)
    BINARY("mul.sat.f16", one_nan_f16)
    BINARY("min.f16", one_nan_f16)
    BINARY("max.f16", one_nan_f16)
    BINARY("min.ftz.f16", one_nan_f16)
    BINARY("max.NaN.f16", one_nan_f16)
    BINARY("min.NaN.f16", one_nan_f16)
    BINARY("max.ftz.NaN.xorsign.abs.f16", one_nan_f16)
    UNARY("neg.f16", one_nan_f16)
    UNARY("abs.f16", one_nan_f16)
    UNARY("neg.ftz.f16", one_nan_f16)
    UNARY("abs.ftz.f16", one_nan_f16)
    TERNARY("fma.rn.f16", one_nan_f16)
    TERNARY("fma.rn.ftz.f16", one_nan_f16)
    TERNARY("fma.rn.sat.f16", one_nan_f16)
    TERNARY("fma.rn.relu.f16", one_nan_f16)
    TERNARY("fma.rn.ftz.sat.f16", one_nan_f16)
}

extern "C" __global__ void bfloat(const half_bits* a, const half_bits* b, const half_bits* c, half_bits* out,
                                  int n) {
    LANE
    const half_bits x = a[i], y = b[i], z = c[i];
    BINARY("add.rn.bf16", one_nan_bf16)
    BINARY("sub.rn.bf16", one_nan_bf16)
    BINARY("mul.rn.bf16", one_nan_bf16)
    BINARY("min.bf16", one_nan_bf16)
    BINARY("max.bf16", one_nan_bf16)
    BINARY("min.NaN.bf16", one_nan_bf16)
    BINARY("max.NaN.xorsign.abs.bf16", one_nan_bf16)
    UNARY("neg.bf16", one_nan_bf16)
    UNARY("abs.bf16", one_nan_bf16)
    TERNARY("fma.rn.bf16", one_nan_bf16)
    TERNARY("fma.rn.relu.bf16", one_nan_bf16)
}

__device__ pair_bits one_nan_f16_pair(pair_bits v) {
    return one_nan_f16(v & 0xffff) | one_nan_f16(v >> 16) << 16;
}
__device__ pair_bits one_nan_bf16_pair(pair_bits v) {
    return one_nan_bf16(v & 0xffff) | one_nan_bf16(v >> 16) << 16;
}

#define PAIR(name, tidy)                                                           \
    {                                                                              \
        pair_bits r;                                                               \
        asm volatile(name " %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));              \
        PUT(tidy(r));                                                              \
    }
#define PAIR_FMA(name, tidy)                                                       \
    {                                                                              \
        pair_bits r;                                                               \
        asm volatile(name " %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));  \
        PUT(tidy(r));                                                              \
    }

extern "C" __global__ void pairs(const pair_bits* a, const pair_bits* b, const pair_bits* c, pair_bits* out,
                                 int n) {
    LANE
    const pair_bits x = a[i], y = b[i], z = c[i];
    PAIR("add.rn.f16x2", one_nan_f16_pair)
    PAIR("sub.ftz.f16x2", one_nan_f16_pair)
    PAIR("mul.sat.f16x2", one_nan_f16_pair)
    PAIR("min.f16x2", one_nan_f16_pair)
    PAIR("max.NaN.f16x2", one_nan_f16_pair)
    PAIR("add.rn.bf16x2", one_nan_bf16_pair)
    PAIR("mul.rn.bf16x2", one_nan_bf16_pair)
    PAIR("max.bf16x2", one_nan_bf16_pair)
    PAIR_FMA("fma.rn.f16x2", one_nan_f16_pair)
    PAIR_FMA("fma.rn.relu.f16x2", one_nan_f16_pair)
    PAIR_FMA("fma.rn.bf16x2", one_nan_bf16_pair)
}
