// Price a call option for many current share prices, each from its own simulated paths. The start values are the outer
// stage, and the paths from each of them are the inner stage. One launch computes all option prices. The threads can be
// assigned to the two stages in several ways:
//
//   nested_threads   one thread per start value, which simulates all paths from it, one after another
//   nested_warps     one warp per start value; its lanes share the paths
//   nested_blocks    several blocks per start value: x is the start value, and y numbers the blocks that share it.
//                    Launched once per start value, it is the version without nesting
//
// The most even assignment wins: each thread has the same number of paths, and there are enough threads for all
// multiprocessors. The index of a path, outer * inner + i, determines its random numbers, so all kernels simulate the
// same paths. They store the sum of the payoffs and the sum of their squares: nested_blocks per block, the others per
// start value.

#include "block_sum.cuh"
#include "option_path.cuh"

// The start values low + step * j. A launch prices `count` of them, starting at index `first`, with `inner` paths each.
struct Stages {
    float low, step;
    unsigned first, count, inner;
};

// Sum the payoffs of the paths begin, begin + every, ... from a start value: x is the sum, y the sum of squares.
template <class Scheme>
__device__ float2 sum_of_payoffs(Option option, const Stages& stages, unsigned outer, unsigned begin, unsigned every,
                                 unsigned long long seed)
{
    option.start = stages.low + stages.step * outer;
    float2 sums = make_float2(0.0f, 0.0f);
    for (unsigned i = begin; i < stages.inner; i += every) {
        float gained = payoff<Scheme>(option, outer * stages.inner + i, seed);
        sums.x += gained;
        sums.y += gained * gained;
    }
    return sums;
}

template <class Scheme>
__global__ void nested_threads(Option option, Stages stages, unsigned long long seed, double2* sums)
{
    unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
    if (place >= stages.count)
        return;
    unsigned outer = stages.first + place;
    float2 mine = sum_of_payoffs<Scheme>(option, stages, outer, 0, 1, seed);
    sums[outer] = make_double2(mine.x, mine.y);
}

template <class Scheme>
__global__ void nested_warps(Option option, Stages stages, unsigned long long seed, double2* sums)
{
    unsigned lane = threadIdx.x % 32;
    unsigned place = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (place >= stages.count)
        return;
    unsigned outer = stages.first + place;
    float2 mine = sum_of_payoffs<Scheme>(option, stages, outer, lane, 32, seed);
    double total = warp_sum<double>(mine.x);
    double squares = warp_sum<double>(mine.y);
    if (lane == 0)
        sums[outer] = make_double2(total, squares);
}

template <class Scheme>
__global__ void nested_blocks(Option option, Stages stages, unsigned long long seed, double2* sums)
{
    unsigned outer = stages.first + blockIdx.x;
    unsigned begin = blockIdx.y * blockDim.x + threadIdx.x;
    float2 mine = sum_of_payoffs<Scheme>(option, stages, outer, begin, gridDim.y * blockDim.x, seed);
    double total = block_sum<double>(mine.x);
    __syncthreads();
    double squares = block_sum<double>(mine.y);
    if (threadIdx.x == 0)
        sums[size_t(outer) * gridDim.y + blockIdx.y] = make_double2(total, squares);
}
