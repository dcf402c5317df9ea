// cub::BlockReduce in its three algorithms: sums, a maximum, several items a lane, a partly filled block. The
// floats are multiples of 1/8, so that their sums are exact in the order of any release.
#include <cub/block/block_reduce.cuh>

struct Largest {
    __device__ int operator()(int x, int y) const { return x > y ? x : y; }
};

template <cub::BlockReduceAlgorithm algorithm>
__device__ void reduce(const int* a, const float* b, int* integers, float* floats, int count) {
    using Integers = cub::BlockReduce<int, 128, algorithm>;
    using Floats = cub::BlockReduce<float, 128, algorithm>;
    __shared__ union {
        typename Integers::TempStorage integers;
        typename Floats::TempStorage floats;
    } storage;
    const int i = blockIdx.x * 128 + threadIdx.x;
    const int sum = Integers(storage.integers).Sum(a[i]);
    __syncthreads();
    const int largest = Integers(storage.integers).Reduce(a[i], Largest());
    __syncthreads();
    int items[3] = {a[i], a[i] * 2, i};
    const int of_items = Integers(storage.integers).Sum(items);
    __syncthreads();
    const int partial = Integers(storage.integers).Sum(a[i], count);
    __syncthreads();
    const float total = Floats(storage.floats).Sum(b[i]);
    __syncthreads();
    if (threadIdx.x == 0) {
        integers[0] = sum;
        integers[1] = largest;
        integers[2] = of_items;
        integers[3] = partial;
        floats[0] = total;
    }
}

extern "C" __global__ void block_reduce(const int* a, const float* b, int* integers, float* floats, int count) {
    integers += blockIdx.x * 12;
    floats += blockIdx.x * 3;
    reduce<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(a, b, integers, floats, count);
    __syncthreads();
    reduce<cub::BLOCK_REDUCE_RAKING>(a, b, integers + 4, floats + 1, count);
    __syncthreads();
    reduce<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(a, b, integers + 8, floats + 2, count);
}
