// Compute y = a x for a matrix in CSR format: row i consists of the elements offsets[i] to offsets[i + 1] - 1. The
// launch has 32 threads per row.
//
// The result is right, but one thread adds up a whole row, and 31 of 32 threads have nothing to do. The lanes of a warp
// load elements that are far apart.

extern "C" __global__ void multiply(const int* offsets, const int* columns, const float* values, const float* x,
                                    float* y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    for (int k = offsets[row]; k < offsets[row + 1]; k++)
        sum += values[k] * x[columns[k]];
    y[row] = sum;
}
