// Sum the columns of a row-major matrix in single precision, with one thread per column, accurate to one ulp.
//
// For now, the rounding error of each addition is lost for good.

extern "C" __global__ void sum_columns(const float* x, float* sums, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    float total = 0.0f;
    for (int row = 0; row < rows; row++)
        total += x[row * columns + column];
    sums[column] = total;
}
