// Divide each number of a table by the sum of its column, in place, and write the sums too. The table has PLANES rows of
// n numbers, and a thread has one column.
//
// The result is right, but a thread loads 23 numbers and stores 17, many of which it knows already.

constexpr int PLANES = 8;

extern "C" __global__ void shares(float* table, float* sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    sums[i] = 0.0f;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        sums[i] += table[plane * n + i];
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        table[plane * n + i] /= sums[i];
}
