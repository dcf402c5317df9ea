// cub::BlockHistogram by atomics and by sorting: 256 bins of four bytes a lane, then ten bins.
#include <cub/block/block_histogram.cuh>

template <cub::BlockHistogramAlgorithm algorithm, int bins, class Value>
__device__ void count(const unsigned char* a, unsigned* out) {
    using Histogram = cub::BlockHistogram<Value, 128, 4, bins, algorithm>;
    __shared__ typename Histogram::TempStorage storage;
    __shared__ unsigned counters[bins];
    Value values[4];
    for (int k = 0; k < 4; ++k) values[k] = (Value)(a[(blockIdx.x * 128 + threadIdx.x) * 4 + k] % bins);
    Histogram(storage).Histogram(values, counters);
    __syncthreads();
    for (int bin = threadIdx.x; bin < bins; bin += 128) out[bin] = counters[bin];
    __syncthreads();
}

extern "C" __global__ void block_histogram(const unsigned char* a, unsigned* out) {
    out += blockIdx.x * 532;
    count<cub::BLOCK_HISTO_ATOMIC, 256, unsigned char>(a, out);
    count<cub::BLOCK_HISTO_SORT, 256, unsigned char>(a, out + 256);
    count<cub::BLOCK_HISTO_ATOMIC, 10, int>(a, out + 512);
    count<cub::BLOCK_HISTO_SORT, 10, int>(a, out + 522);
}
