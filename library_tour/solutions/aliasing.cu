// Divide each element of a table by the sum of its column, in place, and write the sums too. The table has PLANES rows
// of n elements. Each thread handles one column.

constexpr int PLANES = 8;

extern "C" __global__ void shares(float* table, float* sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float column[PLANES];
    float sum = 0.0f;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++) {
        column[plane] = table[plane * n + i];
        sum += column[plane];
    }
    sums[i] = sum;
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        table[plane * n + i] = column[plane] / sum;
}
