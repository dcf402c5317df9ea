// Products of four warps by wgmma: 64 rows of a, 16 columns of b, both in shared memory without swizzling.
#pragma once
#include <cuda/ptx>

// Of a matrix in shared memory with rows of 16 halves: units of 8 halves, eight rows of a unit one behind the other.
__device__ inline int place(int row, int column)
{
    return row / 8 * 128 + column / 8 * 64 + row % 8 * 8 + column % 8;
}

__device__ inline unsigned long long descriptor(const void *start)
{
    // The two units of a row lie 128 bytes apart, groups of eight rows 256.
    unsigned long long address = __cvta_generic_to_shared(start);
    return (address & 0x3FFFF) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

__device__ inline void multiply(float (&d)[8], unsigned long long a, unsigned long long b, int adds)
{
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, p, 1, -1, 0, 0; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
                 : "l"(a), "l"(b), "r"(adds));
}
