// Sum the columns of a row-major matrix in single precision, with one thread per column, accurate to one ulp.

extern "C" __global__ void sum_columns(const float* x, float* sums, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    float total = 0.0f, excess = 0.0f;
    for (int row = 0; row < rows; row++) {
        float term = x[row * columns + column] - excess;
        float next = total + term;
        excess = (next - total) - term;  // how much more than the term was added
        total = next;
    }
    sums[column] = total;
}
