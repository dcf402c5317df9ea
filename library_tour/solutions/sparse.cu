// Compute y = a x for a matrix in CSR format: row i consists of the elements offsets[i] to offsets[i + 1] - 1. The
// launch has one warp per row.

extern "C" __global__ void multiply(const int* offsets, const int* columns, const float* values, const float* x,
                                    float* y, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = offsets[row] + lane; k < offsets[row + 1]; k += 32)
        sum += values[k] * x[columns[k]];
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0)
        y[row] = sum;
}
