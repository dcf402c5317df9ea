// Write the moving sums of each column: the sum of an element and the WINDOW - 1 elements above it. Each thread handles
// one column and keeps the last WINDOW elements, so that it loads each element once.

constexpr int WINDOW = 7;

extern "C" __global__ void moving_sums(const float* __restrict__ in, float* __restrict__ out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    float last[WINDOW] = {};
    float sum = 0.0f;
    for (int row = 0; row < rows; row++) {
        float element = in[row * columns + column];
        sum += element - last[0];
#pragma unroll
        for (int k = 0; k < WINDOW - 1; k++)
            last[k] = last[k + 1];
        last[WINDOW - 1] = element;
        out[row * columns + column] = sum;
    }
}
