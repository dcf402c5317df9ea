// Multiply two square row-major matrices. A block has 32 x 8 threads.
//
// The result is right, but adjacent lanes compute elements of the same column.

extern "C" __global__ void multiply(const float* a, const float* b, float* c, int size)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= size || column >= size)
        return;
    float sum = 0;
    for (int k = 0; k < size; k++)
        sum += a[row * size + k] * b[k * size + column];
    c[row * size + column] = sum;
}
