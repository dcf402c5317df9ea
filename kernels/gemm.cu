// The operations that follow a matrix product in a neural network, as separate kernels. Each reads and writes the whole
// matrix.
//
//   add_bias   adds one bias per column
//   gelu       x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//
// cuBLASLt can do both in the epilogue of the product, while its results are still in registers.

extern "C" __global__ void add_bias(float* matrix, const float* bias, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns)
        matrix[size_t(row) * columns + column] += bias[column];
}

extern "C" __global__ void gelu(float* matrix, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    float x = matrix[i];
    matrix[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}
