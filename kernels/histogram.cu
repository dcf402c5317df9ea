// Count how many values fall into each of many bins. All threads want to add to few counters: what is shared among
// fewer threads, or lies nearer to them, is added to faster.
//
//   histogram_racy       reads, adds and stores: of two threads that do so at once, one is lost. Wrong
//   histogram_atomic     atomic additions to the counters in global memory: right, and everyone waits for everyone
//   histogram_private    counters of its own for each block, still in global memory
//   histogram_scoped     the same through cuda::atomic_ref: atomic for the threads of the block alone
//   histogram_shared     the block's counters in shared memory
//   histogram_cub        CUB's block histogram, which sorts a tile of values and counts runs
//   histogram_columns    every counter 32 times, once for each lane of a warp and in that lane's own bank: no two lanes
//                        ever want the same bank, whatever the values are. And 16 bytes at once, several loads in flight
//
// Values in [0, 1) fall into `bins` bins of equal width; the counter after the last one counts those outside. A block
// adds its counters to the result, which starts at zero, by one atomic each. The third and fourth use `work`, bins + 1
// counters a block; the others leave it alone, so that all are launched alike. Blocks have 256 threads.

#if __has_include(<cub/block/block_histogram.cuh>)
#include <cub/block/block_histogram.cuh>
#include <cuda/atomic>
#define HAS_CCCL
#endif

constexpr int BLOCK = 256;

template <int bins>
__device__ int bin_of(float value)
{
    return value >= 0.0f && value < 1.0f ? int(value * bins) : bins;
}

// Of a grid that strides over the values.
__device__ int first()
{
    return blockIdx.x * BLOCK + threadIdx.x;
}

__device__ int stride()
{
    return gridDim.x * BLOCK;
}

template <int bins>
__global__ void histogram_racy(const float* values, unsigned* counts, unsigned* work, int n)
{
    for (int i = first(); i < n; i += stride())
        counts[bin_of<bins>(values[i])]++;
}

template <int bins>
__global__ void histogram_atomic(const float* values, unsigned* counts, unsigned* work, int n)
{
    for (int i = first(); i < n; i += stride())
        atomicAdd(&counts[bin_of<bins>(values[i])], 1);
}

// Set a block's own counters to zero, and let nobody count before.
template <int counters>
__device__ void clear(unsigned* mine)
{
    for (int i = threadIdx.x; i < counters; i += BLOCK)
        mine[i] = 0;
    __syncthreads();
}

// Add a block's own counters to the result, once everybody has counted.
template <int counters>
__device__ void merge(unsigned* counts, const unsigned* mine)
{
    __syncthreads();
    for (int i = threadIdx.x; i < counters; i += BLOCK)
        if (mine[i])
            atomicAdd(&counts[i], mine[i]);
}

template <int bins>
__global__ void histogram_private(const float* values, unsigned* counts, unsigned* work, int n)
{
    unsigned* mine = work + blockIdx.x * (bins + 1);
    clear<bins + 1>(mine);
    for (int i = first(); i < n; i += stride())
        atomicAdd(&mine[bin_of<bins>(values[i])], 1);
    merge<bins + 1>(counts, mine);
}

template <int bins>
__global__ void histogram_shared(const float* values, unsigned* counts, unsigned* work, int n)
{
    __shared__ unsigned mine[bins + 1];
    clear<bins + 1>(mine);
    for (int i = first(); i < n; i += stride())
        atomicAdd(&mine[bin_of<bins>(values[i])], 1);
    merge<bins + 1>(counts, mine);
}

#ifdef HAS_CCCL
template <int bins>
__global__ void histogram_scoped(const float* values, unsigned* counts, unsigned* work, int n)
{
    unsigned* mine = work + blockIdx.x * (bins + 1);
    clear<bins + 1>(mine);
    for (int i = first(); i < n; i += stride()) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_block> counter(mine[bin_of<bins>(values[i])]);
        counter.fetch_add(1, cuda::memory_order_relaxed);
    }
    merge<bins + 1>(counts, mine);
}

template <int bins>
__global__ void histogram_cub(const float* values, unsigned* counts, unsigned* work, int n)
{
    constexpr int items = 4;
    using BlockHistogram = cub::BlockHistogram<int, BLOCK, items, bins + 2>;
    __shared__ typename BlockHistogram::TempStorage storage;
    __shared__ unsigned mine[bins + 2];  // the last one is for what lies behind the end of the values

    clear<bins + 2>(mine);
    for (int tile = blockIdx.x * items * BLOCK; tile < n; tile += items * stride()) {
        int bin[items];
        for (int i = 0; i < items; i++) {
            int place = tile + i * BLOCK + threadIdx.x;
            bin[i] = place < n ? bin_of<bins>(values[place]) : bins + 1;
        }
        BlockHistogram(storage).Composite(bin, mine);
        __syncthreads();
    }
    merge<bins + 1>(counts, mine);
}
#endif

// `columns` is 32, or less where shared memory is dear; `loads` are in flight a thread.
template <int bins, int columns, int loads>
__global__ void __launch_bounds__(BLOCK) histogram_columns(const float* values, unsigned* counts, unsigned* work, int n)
{
    __shared__ unsigned mine[(bins + 1) * columns];
    clear<(bins + 1) * columns>(mine);

    unsigned* column = mine + threadIdx.x % columns;
    auto count = [column](float value) { atomicAdd(&column[bin_of<bins>(value) * columns], 1); };

    const float4* groups = reinterpret_cast<const float4*>(values);
    unsigned tiles = n / (4 * loads * BLOCK);
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 group[loads];
#pragma unroll
        for (int i = 0; i < loads; i++)
            group[i] = __ldcs(groups + (tile * loads + i) * BLOCK + threadIdx.x);
#pragma unroll
        for (int i = 0; i < loads; i++) {
            count(group[i].x);
            count(group[i].y);
            count(group[i].z);
            count(group[i].w);
        }
    }
    for (unsigned i = tiles * 4 * loads * BLOCK + first(); i < n; i += stride())
        count(values[i]);

    __syncthreads();
    for (int bin = threadIdx.x; bin <= bins; bin += BLOCK) {
        unsigned sum = 0;
        // Each thread begins in another column, or they would all want the same bank.
        for (int i = 0; i < columns; i++)
            sum += mine[bin * columns + (i + threadIdx.x) % columns];
        if (sum)
            atomicAdd(&counts[bin], sum);
    }
}
