// Are all elements of an array true, that is, not zero? *all is initially 1, and a thread that finds a zero sets it to
// 0. An array without zeros is read once and hardly anything is written, so the read bandwidth is the limit.
//
//   and_atomic          every thread combines its truth value with the result, using an atomic
//   and_tree            the reduction tree of a sum with & in place of +: shuffles in a warp, shared memory for the
//                       results of the warps, one atomic per block
//   and_vote            __syncthreads_and() combines the truth values of a block; only a block with a zero writes
//   and_grid<1>         a fixed grid strides over the array, and each thread takes four elements at a time
//   and_grid<loads>     and_grid<1> with several loads per thread in flight before the first value is used
//   and_early<loads>    a thread that finds a zero writes immediately; each round also reads the result so far, and the
//                       thread returns once that is false
//   and_skips_shuffle   wrong on purpose: value = value && __shfl_down_sync(...) skips the shuffle if value is false
//
// Combine truth values, not elements: 1 & 2 is 0, although both are true. Blocks consist of whole warps. A grid covers
// all elements, or groups of four. The array begins at a multiple of 16 bytes.

// Whether the values of all lanes of a warp are true. Only lane 0 has the result.
__device__ int warp_and(int value)
{
    for (int step = 16; step > 0; step /= 2)
        value &= __shfl_down_sync(0xffffffff, value, step);
    return value;
}

extern "C" __global__ void and_atomic(const int* x, int* all, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        atomicAnd(all, x[i] != 0);
}

extern "C" __global__ void and_tree(const int* x, int* all, unsigned n)
{
    __shared__ int of_warps[32];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;

    int value = warp_and(i >= n || x[i] != 0);
    if (lane == 0)
        of_warps[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = warp_and(lane < blockDim.x / 32 ? of_warps[lane] : 1);
        if (lane == 0)
            atomicAnd(all, value);
    }
}

// Every thread of the block calls this. The write is atomic, since other blocks may read *all at the same time.
__device__ void join(int* all, bool value)
{
    if (!__syncthreads_and(value) && threadIdx.x == 0)
        atomicAnd(all, 0);
}

extern "C" __global__ void and_vote(const int* x, int* all, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    join(all, i >= n || x[i] != 0);
}

// Combined with &, because && would turn each of these tests into a branch.
__device__ bool all_of(int4 group)
{
    return (group.x != 0) & (group.y != 0) & (group.z != 0) & (group.w != 0);
}

// Whether all elements that one thread of a fixed grid reads are true. A block takes tiles of `loads` groups per thread.
// In each round of loads, its threads read adjacent groups. With `early`, a thread returns at its first zero, or when
// *all is already 0.
template <int loads, bool early>
__device__ bool strided_and(const int* x, int* all, unsigned n)
{
    const int4* groups = reinterpret_cast<const int4*>(x);
    unsigned count = n / 4;
    unsigned tile = loads * blockDim.x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x;

    // At most one of the last n % 4 elements, which do not fill a group.
    bool value = first >= n % 4 || x[4 * count + first] != 0;
    unsigned start = blockIdx.x * tile;
    for (; start + tile <= count; start += gridDim.x * tile) {
        int4 group[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            group[k] = __ldcs(groups + start + threadIdx.x + k * blockDim.x);  // read once: L2 need not keep it
        // This load follows the others, so waiting for it takes no extra time. It is volatile, so that it reads memory
        // each time.
        bool proceed = !early || *static_cast<volatile int*>(all);
#pragma unroll
        for (int k = 0; k < loads; k++)
            value &= all_of(group[k]);
        if (early && !value)
            atomicAnd(all, 0);  // immediately, while other threads are still reading
        if (early && !(proceed && value))
            return value;
    }
    for (unsigned i = start + threadIdx.x; i < min(start + tile, count); i += blockDim.x)
        value &= all_of(groups[i]);
    return value;
}

template <int loads>
__global__ void and_grid(const int* x, int* all, unsigned n)
{
    join(all, strided_and<loads, false>(x, all, n));
}

// There is no vote here, since its barrier would wait for threads that are still reading.
template <int loads>
__global__ void and_early(const int* x, int* all, unsigned n)
{
    if (!strided_and<loads, true>(x, all, n))
        atomicAnd(all, 0);
}

// A block is one warp. x has one element per lane.
extern "C" __global__ void and_skips_shuffle(const int* x, int* all)
{
    int value = x[threadIdx.x] != 0;
    for (int step = 16; step > 0; step /= 2)
        value = value && __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x == 0)
        *all = value;
}
