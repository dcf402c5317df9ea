// Count how many values fall into each of many bins. All threads want to add to few counters: what is shared among
// fewer threads, or lies nearer to them, is added to faster.
//
//   histogram_racy       reads, adds and stores: of two threads that do so at once, one is lost. Wrong
//   histogram_atomic     atomic additions to the counters in global memory: right, and everyone waits for everyone
//   histogram_private    counters of its own for each block, still in global memory
//   histogram_scoped     the same through cuda::atomic_ref, for the block's threads alone; clearer, not faster
//   histogram_cub        CUB's block histogram, which sorts a tile and counts runs: takes the same for any values
//   histogram_shared     the block's counters in shared memory, where hardware merges lanes that add 1 to one counter
//   histogram_vector     so memory is what is waited for: 16 bytes at once, several loads in flight
//
// Values in [0, 1) fall into `bins` bins of equal width; the counter after the last one counts those outside. A block
// adds its counters to the result, which starts at zero, by one atomic each. The third and fourth use `work`, bins + 1
// counters a block; the others leave it alone, so that all are launched alike. Blocks have 256 threads; n is a
// million or more below 2^31.

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

// `loads` groups of four at once, each a whole grid behind the one before; then single groups, while there are any; then
// the last three values at most.
template <int bins, int loads>
__global__ void histogram_vector(const float* values, unsigned* counts, unsigned* work, int n)
{
    __shared__ unsigned mine[bins + 1];
    clear<bins + 1>(mine);

    auto count = [](float value) { atomicAdd(&mine[bin_of<bins>(value)], 1); };
    auto count_group = [=](float4 group) {
        count(group.x);
        count(group.y);
        count(group.z);
        count(group.w);
    };
    const float4* groups = reinterpret_cast<const float4*>(values);
    int i = first();
    for (; i + (loads - 1) * stride() < n / 4; i += loads * stride()) {
        float4 group[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            group[k] = groups[i + k * stride()];
#pragma unroll
        for (int k = 0; k < loads; k++)
            count_group(group[k]);
    }
    for (; i < n / 4; i += stride())
        count_group(groups[i]);
    if (first() < n % 4)
        count(values[n / 4 * 4 + first()]);

    merge<bins + 1>(counts, mine);
}
