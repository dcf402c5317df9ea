// The prices of a call option for many prices of its share today, each from simulated paths of its own: the start
// values are the outer stage, the paths from each of them the inner one. All are computed by one launch. Its threads
// can be given to the two stages in several ways:
//
//   nested_threads   one thread a start value, which simulates all paths from it, one after the other
//   nested_warps     one warp a start value, whose lanes share the paths
//   nested_blocks    blocks of their own for each start value: x counts the start values, y the blocks of each.
//                    Launched for one start value after the other, it is the way without nesting
//
// The most even way wins: each thread has the same number of paths, and there are threads enough for all
// multiprocessors. A path's random numbers follow from its index, outer * inner + i, so each way simulates the same
// paths. A way stores the sum of the payoffs and of their squares for each start value, nested_blocks for each block.

#include "block_sum.cuh"
#include "option_path.cuh"

// The start values low + step * j, of which a launch prices `count`, the one with the index `first` and those behind
// it, by `inner` paths each.
struct Stages {
    float low, step;
    unsigned first, count, inner;
};

// Sum every so many payoffs from a start value on: in x the payoffs, in y their squares.
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
