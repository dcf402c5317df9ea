// Warp operations: shuffles in four modes with every width and out-of-range sources, votes, matches,
// reductions; full warps, parts of a warp inside divergent code, and a last warp that is not full.
#include "rows.cuh"

#define ROW(name, value) PUT(value);
#define ALL 0xffffffffu

// The value and, in bit 40, whether the source lane was in range.
#define SHUFFLE(name, amount, clamp)                                                                      \
    {                                                                                                     \
        unsigned r, valid;                                                                                \
        asm volatile("{ .reg .pred p; " name " %0|p, %2, %3, %4, 0xffffffff; selp.u32 %1, 1, 0, p; }"     \
                     : "=r"(r), "=r"(valid)                                                               \
                     : "r"(x), "r"(amount), "r"(clamp));                                                  \
        PUT((unsigned long long)valid << 40 | r);                                                         \
    }

extern "C" __global__ void shuffles(const unsigned* a, unsigned long long* out, int n) {
    LANE
    const unsigned x = a[i], lane = threadIdx.x % 32;
    SHUFFLE("shfl.sync.up.b32", 1, 0) SHUFFLE("shfl.sync.down.b32", 3, 31)
    SHUFFLE("shfl.sync.bfly.b32", 5, 31) SHUFFLE("shfl.sync.idx.b32", 9, 31)
    // c holds the segment's mask in its upper byte and the limit in its lower one: widths 16, 8, 4, 2.
    SHUFFLE("shfl.sync.up.b32", 2, 0x1000) SHUFFLE("shfl.sync.down.b32", 2, 0x101f)
    SHUFFLE("shfl.sync.bfly.b32", 12, 0x181f) SHUFFLE("shfl.sync.idx.b32", 13, 0x1c1f)
    SHUFFLE("shfl.sync.down.b32", 1, 0x1e1f) SHUFFLE("shfl.sync.up.b32", 7, 0x1800)
    // Limits inside a segment, and amounts that differ from lane to lane.
    SHUFFLE("shfl.sync.down.b32", 4, 20) SHUFFLE("shfl.sync.bfly.b32", 16, 19) SHUFFLE("shfl.sync.idx.b32", 25, 7)
    SHUFFLE("shfl.sync.idx.b32", x, 31) SHUFFLE("shfl.sync.down.b32", lane % 5, 31)
    SHUFFLE("shfl.sync.up.b32", x & 3, 0) SHUFFLE("shfl.sync.idx.b32", lane * 7, 0x101f)
    SHUFFLE("shfl.sync.up.b32", 40, 0) SHUFFLE("shfl.sync.bfly.b32", 33, 31)
    const double d = x * 0.37;
    ROW("__shfl_down_sync of a double", __double_as_longlong(__shfl_down_sync(ALL, d, 5)))
    ROW("__shfl_xor_sync of 64 bits, width 8", __shfl_xor_sync(ALL, (unsigned long long)x << 7, 6, 8))
    ROW("__shfl_sync, width 4, negative lane", __shfl_sync(ALL, x, -1, 4))
}

extern "C" __global__ void votes(const unsigned* a, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], lane = threadIdx.x % 32;
    ROW("vote.sync.ballot", __ballot_sync(ALL, x & 1)) ROW("vote.sync.any", __any_sync(ALL, (x & 31) == 3))
    ROW("vote.sync.all", __all_sync(ALL, (x & 15) != 3)) ROW("vote.sync.uni", __uni_sync(ALL, (x & 15) != 3))
    ROW("vote.sync.uni, false everywhere", __uni_sync(ALL, n == 0))
    ROW("match.any.sync.b32", __match_any_sync(ALL, x & 7))
    ROW("match.any.sync.b64", __match_any_sync(ALL, (unsigned long long)(x & 3) << 33))
    int same;
    ROW("match.all.sync.b32", __match_all_sync(ALL, i / 48, &same)) ROW("match.all.sync.b32 predicate", same)
    ROW("match.all.sync.b64", __match_all_sync(ALL, (unsigned long long)(x >> 31), &same))
    ROW("match.all.sync.b64 predicate", same) ROW("redux.sync.add.u32", __reduce_add_sync(ALL, x))
    ROW("redux.sync.add.s32", __reduce_add_sync(ALL, (int)x)) ROW("redux.sync.min.u32", __reduce_min_sync(ALL, x))
    ROW("redux.sync.max.u32", __reduce_max_sync(ALL, x)) ROW("redux.sync.min.s32", __reduce_min_sync(ALL, (int)x))
    ROW("redux.sync.max.s32", __reduce_max_sync(ALL, (int)x)) ROW("redux.sync.and.b32", __reduce_and_sync(ALL, x | 0xff00))
    ROW("redux.sync.or.b32", __reduce_or_sync(ALL, x & 0xf0f)) ROW("redux.sync.xor.b32", __reduce_xor_sync(ALL, x))
    ROW("activemask of a full warp", __activemask())
    unsigned elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
    ROW("one lane elected", __popc(__ballot_sync(ALL, elected)))
    ROW("lane", lane)
}

// Both sides of a branch work among themselves; each names exactly its own lanes.
extern "C" __global__ void parts(const unsigned* a, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], lane = threadIdx.x % 32;
    const unsigned mask = __ballot_sync(ALL, x & 1), mine = x & 1 ? mask : ~mask;
    unsigned r[6] = {0, 0, 0, 0, 0, 0};
    if (x & 1) {
        r[0] = __shfl_sync(mine, x, __ffs(mine) - 1);
        r[1] = __ballot_sync(mine, x & 2);
        r[2] = __reduce_add_sync(mine, x & 0xffff);
        r[3] = __match_any_sync(mine, x & 6);
        r[4] = __any_sync(mine, (x & 0xff) == 1);
        __syncwarp(mine);
        r[5] = __reduce_max_sync(mine, x);
    } else {
        r[0] = __shfl_sync(mine, x, 31 - __clz(mine));
        r[1] = __ballot_sync(mine, x & 4);
        r[2] = __reduce_min_sync(mine, x & 0xffff);
        r[3] = __match_any_sync(mine, x & 2);
        r[4] = __all_sync(mine, (x & 0xff) != 0);
        __syncwarp(mine);
        r[5] = __reduce_xor_sync(mine, x);
    }
    ROW("shuffle in a branch", r[0]) ROW("ballot in a branch", r[1]) ROW("sum or least in a branch", r[2])
    ROW("match in a branch", r[3]) ROW("any or all in a branch", r[4]) ROW("max or xor in a branch", r[5])
    // A loop that lanes leave one by one, each time with the mask of those that stay.
    unsigned left = ALL, total = 0;
    for (unsigned k = 0; k < 8; ++k) {
        const bool stay = lane >= k * 3;
        left = __ballot_sync(left, stay);
        if (!stay) break;
        total = total * 3 + __popc(left) + __shfl_sync(left, x & 15, 31);
    }
    ROW("loop with a shrinking mask", total)
}

// Blocks of 80 lanes: the last warp has 16.
extern "C" __global__ void short_warp(const unsigned* a, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], mask = threadIdx.x < 64 ? ALL : 0xffffu;
    ROW("ballot", __ballot_sync(mask, x & 1)) ROW("shuffle down", __shfl_down_sync(mask, x, 1, 16))
    ROW("sum", __reduce_add_sync(mask, x)) ROW("match", __match_any_sync(mask, x & 3))
    ROW("barrier's count", __syncthreads_count(x & 1))
}

// The tree that every reduction uses; integers, and floats whose sums are exact.
extern "C" __global__ void trees(const unsigned* a, unsigned* out, int n) {
    LANE
    unsigned x = a[i];
    float f = (float)(x & 0xfff) * 0.125f;
    for (int step = 16; step > 0; step /= 2) {
        x += __shfl_down_sync(ALL, x, step);
        f += __shfl_xor_sync(ALL, f, step);
    }
    ROW("sum by shuffles down", threadIdx.x % 32 == 0 ? x : 0) ROW("sum by butterflies", __float_as_uint(f))
}
