// All reads of memory go through the L2 cache, where new lines evict old ones. An array that a kernel reads again and
// again is evicted if more other data passes through than the cache can hold. Part of L2 can be set aside for data that
// the host marks as persisting with an access policy on the stream. The kernel does not change.
//
//   weigh<false>   reads many values once, and with them an array of weights over and over
//   weigh<true>    reads the values with __ldcs, which tells the cache to evict them first: each is read only once
//   add_up         reads one array over and over, to show how much of L2 is left for it
//
// Values and weights are words in groups of four. Each thread writes its own sum, modulo 2^32. A block has 256 threads.

constexpr int BLOCK = 256;

__device__ unsigned sum(uint4 group)
{
    return group.x + group.y + group.z + group.w;
}

__device__ unsigned sum_of_products(uint4 group, uint4 weights)
{
    return group.x * weights.x + group.y * weights.y + group.z * weights.z + group.w * weights.w;
}

// The index that is `step` after another one, in an array that is read circularly. `step` is less than its length.
__device__ unsigned next(unsigned index, unsigned step, unsigned length)
{
    index += step;
    return index < length ? index : index - length;
}

// Lengths are numbers of groups, less than 2^31.
template <bool evict_first>
__global__ void weigh(const uint4* __restrict__ values, const uint4* __restrict__ weights, unsigned* sums,
                      unsigned length, unsigned weights_length)
{
    unsigned thread = blockIdx.x * BLOCK + threadIdx.x, threads = gridDim.x * BLOCK;
    unsigned index = thread % weights_length, step = threads % weights_length;
    unsigned total = 0;
    for (unsigned i = thread; i < length; i += threads) {
        uint4 group = evict_first ? __ldcs(values + i) : values[i];
        total += sum_of_products(group, weights[index]);
        index = next(index, step, weights_length);
    }
    sums[thread] = total;
}

extern "C" __global__ void add_up(const uint4* __restrict__ array, unsigned* sums, unsigned reads, unsigned length)
{
    unsigned thread = blockIdx.x * BLOCK + threadIdx.x, threads = gridDim.x * BLOCK;
    unsigned index = thread % length, step = threads % length;
    unsigned total = 0;
    for (unsigned i = thread; i < reads; i += threads) {
        total += sum(array[index]);
        index = next(index, step, length);
    }
    sums[thread] = total;
}
