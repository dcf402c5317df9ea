// The price of a call option from simulated paths of the share price: ds = s (r dt + sigma sqrt(dt) z), with z standard
// normal.
//
//   price<Euler>      Euler's step, s *= 1 + r dt + sigma sqrt(dt) z: biased, because the step is finite
//   price<LogSteps>   a step of the logarithm, exact for any dt: a sum, and one exponential at the end
//
// The random numbers are computed in registers, from the index of the path (option_path.cuh).
//
// In a grid-stride loop, each thread simulates paths and adds up their payoffs in registers. The sums are then added in
// double precision, with shuffles within a warp and in shared memory within a block. Each block stores its sum and, for
// the interval, its sum of squares.

#include "block_sum.cuh"
#include "option_path.cuh"

template <class Scheme>
__global__ void price(Option option, unsigned paths, unsigned long long seed, double2* sums)
{
    float sum = 0.0f;
    float squares = 0.0f;
    for (unsigned path = blockIdx.x * blockDim.x + threadIdx.x; path < paths; path += gridDim.x * blockDim.x) {
        float gained = payoff<Scheme>(option, path, seed);
        sum += gained;
        squares += gained * gained;
    }
    double block_total = block_sum<double>(sum);
    __syncthreads();
    double block_squares = block_sum<double>(squares);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = make_double2(block_total, block_squares);
}
