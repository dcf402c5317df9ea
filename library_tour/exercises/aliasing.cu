// Divide each element of a table by the sum of its column, in place, and write the sums too. The table has PLANES rows
// of n elements. Each thread handles one column.
//
// The result is right, but each thread performs 23 loads and 17 stores. Many of the loads repeat earlier ones.

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
