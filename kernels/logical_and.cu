// Are all numbers of an array true, that is, not zero? *all begins at 1, and whoever finds a zero sets it to 0. An array
// without zeros is read once and hardly anything is written, so that reading is the limit.
//
//   and_atomic          every thread joins its truth value to the result by an atomic
//   and_tree            the tree of a sum with & in place of +: shuffles in a warp, shared memory for the warps' results,
//                       an atomic a block
//   and_vote            __syncthreads_and() joins a block's truth values at a barrier; only a block with a zero writes
//   and_grid<1>         a fixed grid strides over the array, and a thread takes four numbers at a time
//   and_grid<loads>     the same with several loads of a thread in flight before the first value is used
//   and_early<loads>    a thread that finds a zero says so at once; each round of loads also reads the result so far, and
//                       the thread ends where that is false
//   and_skips_shuffle   WRONG: val = val && __shfl_down_sync(...) leaves the shuffle out where val is false already
//
// Truth values are joined, not numbers: 1 & 2 is 0, though both are true. Blocks are whole warps. The grids cover
// numbers, or groups of four; the array begins at a multiple of 16 bytes.

// Whether all threads of a warp have a true value, in its lane 0.
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

// Every thread of the block calls this. The write is atomic, since threads of other blocks may read *all meanwhile.
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

// With & in place of &&, which would make each of these tests a branch.
__device__ bool all_of(int4 group)
{
    return (group.x != 0) & (group.y != 0) & (group.z != 0) & (group.w != 0);
}

// Whether what one thread of a fixed grid reads is all true. A block takes tiles of `loads` groups a thread, and in a
// tile the threads' groups lie side by side. With `early`, a thread ends at its first zero, or where *all is 0 already.
template <int loads, bool early>
__device__ bool strided_and(const int* x, int* all, unsigned n)
{
    const int4* groups = reinterpret_cast<const int4*>(x);
    unsigned count = n / 4;
    unsigned tile = loads * blockDim.x;
    unsigned first = blockIdx.x * blockDim.x + threadIdx.x;

    // One of the last numbers, which fill no group.
    bool value = first >= n % 4 || x[4 * count + first] != 0;
    unsigned start = blockIdx.x * tile;
    for (; start + tile <= count; start += gridDim.x * tile) {
        int4 group[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            group[k] = __ldcs(groups + start + threadIdx.x + k * blockDim.x);  // read once: L2 need not keep it
        // Asked behind the other loads and answered by L2, so that no time passes until the answer is there. Volatile,
        // so that it is asked anew each time.
        bool go_on = !early || *static_cast<volatile int*>(all);
#pragma unroll
        for (int k = 0; k < loads; k++)
            value &= all_of(group[k]);
        if (early && !value)
            atomicAnd(all, 0);  // at once, while the others still read
        if (early && !(go_on && value))
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

// Without the barrier of a block, at which a thread that has ended would wait.
template <int loads>
__global__ void and_early(const int* x, int* all, unsigned n)
{
    if (!strided_and<loads, true>(x, all, n))
        atomicAnd(all, 0);
}

// A block of one warp; x has a number for each lane.
extern "C" __global__ void and_skips_shuffle(const int* x, int* all)
{
    int value = x[threadIdx.x] != 0;
    for (int step = 16; step > 0; step /= 2)
        value = value && __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x == 0)
        *all = value;
}
