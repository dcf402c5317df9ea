// Local variables live in registers, which have no addresses. An array is kept in registers only if every index is known
// when the kernel is compiled. Otherwise it is in local memory, a part of device memory that belongs to the thread and
// is accessed through the caches. There, word k of each lane is adjacent to word k of the next lane: lanes that
// use the same index touch 128 contiguous bytes, and lanes that use different indices touch more sectors.
//
//   count_in_loop        compares a value with each k in a loop: the index varies, and the counters are in local memory
//   count_unrolled<1>    the same loop unrolled: each index is a constant, and the counters are in registers
//   count_unrolled<8>    the same, with so few registers that 8 blocks fit on a multiprocessor: the compiler spills what
//                        does not fit to local memory
//   count_by_value       the value is the index: one update instead of 32 comparisons, but in local memory again
//   count_shared         a block's counters in shared memory. Each thread's counters are in one bank: no bank conflicts
//
// Each thread counts how often each value from 0 to 31 occurs among its values, which come in groups of four, and writes
// its counters: counts[value * threads + thread]. A block has 256 threads.

constexpr int BLOCK = 256;
constexpr int COUNTERS = 32;

template <class Count>
__device__ void for_each_value(const uint4* values, int groups, Count count)
{
    for (int i = blockIdx.x * BLOCK + threadIdx.x; i < groups; i += gridDim.x * BLOCK) {
        uint4 group = values[i];
        count(group.x);
        count(group.y);
        count(group.z);
        count(group.w);
    }
}

// The loop is unrolled, so that its index is a constant and needs no local memory.
template <class Counter>
__device__ void write(unsigned* counts, Counter counter)
{
    int thread = blockIdx.x * BLOCK + threadIdx.x;
#pragma unroll
    for (int k = 0; k < COUNTERS; k++)
        counts[k * gridDim.x * BLOCK + thread] = counter(k);
}

extern "C" __global__ void count_in_loop(const uint4* __restrict__ values, unsigned* counts, int groups)
{
    unsigned counters[COUNTERS] = {};
    for_each_value(values, groups, [&](unsigned value) {
#pragma unroll 1
        for (int k = 0; k < COUNTERS; k++)
            counters[k] += value == k;
    });
    write(counts, [&](int k) { return counters[k]; });
}

template <int blocks>
__global__ void __launch_bounds__(BLOCK, blocks)
    count_unrolled(const uint4* __restrict__ values, unsigned* counts, int groups)
{
    unsigned counters[COUNTERS] = {};
    for_each_value(values, groups, [&](unsigned value) {
#pragma unroll
        for (int k = 0; k < COUNTERS; k++)
            counters[k] += value == k;
    });
    write(counts, [&](int k) { return counters[k]; });
}

extern "C" __global__ void count_by_value(const uint4* __restrict__ values, unsigned* counts, int groups)
{
    unsigned counters[COUNTERS] = {};
    for_each_value(values, groups, [&](unsigned value) { counters[value]++; });
    write(counts, [&](int k) { return counters[k]; });
}

extern "C" __global__ void count_shared(const uint4* __restrict__ values, unsigned* counts, int groups)
{
    __shared__ unsigned counters[COUNTERS][BLOCK];
#pragma unroll
    for (int k = 0; k < COUNTERS; k++)
        counters[k][threadIdx.x] = 0;
    for_each_value(values, groups, [&](unsigned value) { counters[value][threadIdx.x]++; });
    write(counts, [&](int k) { return counters[k][threadIdx.x]; });
}
