// A load or store of a warp moves every 32-byte sector that its 32 lanes touch. 32 adjacent 4-byte elements are in 4
// sectors, whatever the order of the lanes. Elements that are far apart are in up to 32 sectors.
//
// One element per thread. A segment is the 32 elements that a warp reads at a time:
//   copy_neighbours      lane i reads element i of the segment
//   copy_any_order       the lanes read the segment in a different order
//   copy_pairs           two lanes read the same element
//   copy_broadcast       all lanes read the same element
//
// `each` elements per thread:
//   copy_contiguous      a thread copies adjacent elements, so that the lanes are `each` elements apart
//   copy_block_strided   a block copies the same elements; in each iteration its threads take adjacent ones
//   copy_groups          copy_block_strided with 16-byte loads and stores, four elements each
//
// Sums of a row-major matrix whose rows are `stride` elements apart:
//   sum_columns          a thread walks down a column: the lanes read adjacent elements
//   sum_rows             a thread walks along a row: the lanes are one row apart
//   sum_rows_by_warps    a warp walks along a row and then adds the sums of its lanes
//
// An array has at most 2^31 - 2^16 elements.

__device__ int thread()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

extern "C" __global__ void copy_neighbours(const unsigned* in, unsigned* out, int n)
{
    int i = thread();
    if (i < n)
        out[i] = in[i];
}

// May read up to 31 elements after the first n, so `in` must have n + 32 elements.
extern "C" __global__ void copy_any_order(const unsigned* in, unsigned* out, int n)
{
    int i = thread();
    int lane = i % 32;
    if (i < n)
        out[i] = in[i - lane + (5 * lane + 3) % 32];
}

extern "C" __global__ void copy_pairs(const unsigned* in, unsigned* out, int n)
{
    int i = thread();
    if (i < n)
        out[i] = in[i / 2];
}

extern "C" __global__ void copy_broadcast(const unsigned* in, unsigned* out, int n)
{
    int i = thread();
    if (i < n)
        out[i] = in[i / 32];
}

// All loads come before the first store, so that all of them are in flight at once.
template <int each>
__device__ void copy_from(const unsigned* in, unsigned* out, int n, int first, int step)
{
    unsigned value[each];
#pragma unroll
    for (int k = 0; k < each; k++)
        if (first + k * step < n)
            value[k] = in[first + k * step];
#pragma unroll
    for (int k = 0; k < each; k++)
        if (first + k * step < n)
            out[first + k * step] = value[k];
}

template <int each>
__global__ void copy_contiguous(const unsigned* in, unsigned* out, int n)
{
    copy_from<each>(in, out, n, each * thread(), 1);
}

template <int each>
__global__ void copy_block_strided(const unsigned* in, unsigned* out, int n)
{
    copy_from<each>(in, out, n, each * blockIdx.x * blockDim.x + threadIdx.x, blockDim.x);
}

template <int each>
__global__ void copy_groups(const unsigned* in, unsigned* out, int n)
{
    constexpr int groups = each / 4;
    const uint4* from = reinterpret_cast<const uint4*>(in);
    uint4* to = reinterpret_cast<uint4*>(out);
    int first = groups * blockIdx.x * blockDim.x + threadIdx.x;

    uint4 group[groups];
#pragma unroll
    for (int k = 0; k < groups; k++)
        if (first + k * blockDim.x < n / 4)
            group[k] = from[first + k * blockDim.x];
#pragma unroll
    for (int k = 0; k < groups; k++)
        if (first + k * blockDim.x < n / 4)
            to[first + k * blockDim.x] = group[k];

    // The last elements, at most three.
    if (thread() < n % 4)
        out[n / 4 * 4 + thread()] = in[n / 4 * 4 + thread()];
}

extern "C" __global__ void sum_columns(const unsigned* in, unsigned* sums, int rows, int columns, int stride)
{
    int column = thread();
    if (column >= columns)
        return;
    unsigned sum = 0;
    for (int row = 0; row < rows; row++)
        sum += in[size_t(row) * stride + column];
    sums[column] = sum;
}

extern "C" __global__ void sum_rows(const unsigned* in, unsigned* sums, int rows, int columns, int stride)
{
    int row = thread();
    if (row >= rows)
        return;
    unsigned sum = 0;
    for (int column = 0; column < columns; column++)
        sum += in[size_t(row) * stride + column];
    sums[row] = sum;
}

extern "C" __global__ void sum_rows_by_warps(const unsigned* in, unsigned* sums, int rows, int columns, int stride)
{
    int row = thread() / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    unsigned sum = 0;
    for (int column = lane; column < columns; column += 32)
        sum += in[size_t(row) * stride + column];
    for (int distance = 16; distance > 0; distance /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, distance);
    if (lane == 0)
        sums[row] = sum;
}
