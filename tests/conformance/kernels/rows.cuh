// Shared by the row kernels: each instruction of such a kernel writes one row of `out`, a value for every
// lane, so that row r of lane i is out[r * n + i]. The tests read the rows' names, the string that is the
// first argument of each macro, out of the kernel's text: a kernel lists its instructions once.
#pragma once

#define LANE                                          \
    const int i = blockIdx.x * blockDim.x + threadIdx.x; \
    int row = 0;                                      \
    if (i >= n) return;

#define PUT(value) out[row++ * n + i] = (value)

// A row that is a C++ expression; the name is only for the reader.
#define VALUE(name, value) PUT(value);

// One instruction with one to three source operands x, y, z and a destination of type R; F, X, Y, Z are the
// register constraints of inline PTX.
#define UNARY_AS(name, R, F, X)                                  \
    {                                                            \
        R result_;                                               \
        asm volatile(name " %0, %1;" : F(result_) : X(x));       \
        PUT(result_);                                            \
    }
#define BINARY_AS(name, R, F, X, Y)                                         \
    {                                                                       \
        R result_;                                                          \
        asm volatile(name " %0, %1, %2;" : F(result_) : X(x), Y(y));        \
        PUT(result_);                                                       \
    }
#define TERNARY_AS(name, R, F, X, Y, Z)                                              \
    {                                                                                \
        R result_;                                                                   \
        asm volatile(name " %0, %1, %2, %3;" : F(result_) : X(x), Y(y), Z(z));       \
        PUT(result_);                                                                \
    }

// The same NaN for every NaN of a 16-bit format: PTX leaves most payloads open.
__device__ inline unsigned short one_nan_f16(unsigned short bits) {
    return (bits & 0x7fff) > 0x7c00 ? 0x7fff : bits;
}
__device__ inline unsigned short one_nan_bf16(unsigned short bits) {
    return (bits & 0x7fff) > 0x7f80 ? 0x7fff : bits;
}
