// Count how many values fall into each of a few bins. Atomic additions to one counter are performed one after another,
// so a counter is faster if fewer threads share it, or if it is closer to them.
//
//   histogram_racy       reads, adds and stores without atomics: a data race that loses counts. Wrong on purpose
//   histogram_atomic     atomic additions to counters in global memory that all threads share
//   histogram_unordered  private counters per block, still in global memory, but no barrier keeps a thread from adding
//                        before they are set to zero, or from merging before all have added. Wrong on purpose
//   histogram_private    the same counters with both barriers
//   histogram_scoped     the same counters through cuda::atomic_ref, whose type names the threads that may use a
//                        counter at the same time: those of the block, the device, or the whole system, hosts included
//   histogram_cub        CUB's BlockHistogram, which sorts a tile and counts runs: equally fast for all values
//   histogram_shared     private counters in shared memory; the hardware merges lanes that add one to a counter
//   histogram_vector     histogram_shared with 16-byte loads, several in flight, so that memory bandwidth is the limit
//
// Two more operations of cuda::atomic_ref:
//   histogram_remove     removes values from the counts again, with fetch_sub
//   empty_bins           begins with a mask of ones and clears the bit of each value's bin, with fetch_and
//
// Values in [0, 1) fall into `bins` bins of equal width. One more counter after the last bin counts the values outside.
// Each block adds its counters to the result, which starts at zero, with one atomic per counter. Kernels with private
// counters in global memory keep them in `work`, bins + 1 counters per block. The others ignore it, so that all have
// the same parameters. A block has 256 threads, and n is at most 2^31 - 10^6.

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

// The first index and the stride of a thread in a grid-stride loop over the values.
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

// Set the private counters of a block to zero. The barrier comes before the counting.
template <int counters>
__device__ void clear(unsigned* mine)
{
    for (int i = threadIdx.x; i < counters; i += BLOCK)
        mine[i] = 0;
    __syncthreads();
}

// Add the private counters of a block to the result. The barrier comes after the counting.
template <int counters>
__device__ void merge(unsigned* counts, const unsigned* mine)
{
    __syncthreads();
    for (int i = threadIdx.x; i < counters; i += BLOCK)
        if (mine[i])
            atomicAdd(&counts[i], mine[i]);
}

template <int bins>
__global__ void histogram_unordered(const float* values, unsigned* counts, unsigned* work, int n)
{
    unsigned* mine = work + blockIdx.x * (bins + 1);
    for (int i = threadIdx.x; i < bins + 1; i += BLOCK)
        mine[i] = 0;
    for (int i = first(); i < n; i += stride())
        atomicAdd(&mine[bin_of<bins>(values[i])], 1);
    for (int i = threadIdx.x; i < bins + 1; i += BLOCK)
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
template <int bins, cuda::thread_scope scope>
__global__ void histogram_scoped(const float* values, unsigned* counts, unsigned* work, int n)
{
    unsigned* mine = work + blockIdx.x * (bins + 1);
    clear<bins + 1>(mine);
    for (int i = first(); i < n; i += stride()) {
        cuda::atomic_ref<unsigned, scope> counter(mine[bin_of<bins>(values[i])]);
        counter.fetch_add(1, cuda::memory_order_relaxed);
    }
    merge<bins + 1>(counts, mine);
}

template <int bins>
__global__ void histogram_remove(const float* values, unsigned* counts, int n)
{
    for (int i = first(); i < n; i += stride()) {
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(counts[bin_of<bins>(values[i])]);
        counter.fetch_sub(1, cuda::memory_order_relaxed);
    }
}

// Bin b has bit b % 32 of word b / 32.
template <int bins>
__global__ void empty_bins(const float* values, unsigned* mask, int n)
{
    for (int i = first(); i < n; i += stride()) {
        int bin = bin_of<bins>(values[i]);
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> word(mask[bin / 32]);
        word.fetch_and(~(1u << bin % 32), cuda::memory_order_relaxed);
    }
}

template <int bins>
__global__ void histogram_cub(const float* values, unsigned* counts, unsigned* work, int n)
{
    constexpr int items = 4;
    using BlockHistogram = cub::BlockHistogram<int, BLOCK, items, bins + 2>;
    __shared__ typename BlockHistogram::TempStorage storage;
    __shared__ unsigned mine[bins + 2];  // the last counter is for lanes beyond the end of the values

    clear<bins + 2>(mine);
    for (int tile = blockIdx.x * items * BLOCK; tile < n; tile += items * stride()) {
        int bin[items];
        for (int i = 0; i < items; i++) {
            int index = tile + i * BLOCK + threadIdx.x;
            bin[i] = index < n ? bin_of<bins>(values[index]) : bins + 1;
        }
        BlockHistogram(storage).Composite(bin, mine);
        __syncthreads();
    }
    merge<bins + 1>(counts, mine);
}
#endif

// Each thread loads `loads` groups of four values at a time, one grid stride apart, then single groups, and then at
// most one of the last n % 4 values.
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
