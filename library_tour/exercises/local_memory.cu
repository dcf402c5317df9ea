// Write the moving sums of each column: the sum of an element and the WINDOW - 1 elements above it. Each thread handles
// one column and keeps the last WINDOW elements, so that it loads each element once.
//
// The result is right, but the index in the ring varies, so the ring is in local memory.

constexpr int WINDOW = 7;

extern "C" __global__ void moving_sums(const float* __restrict__ in, float* __restrict__ out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    float ring[WINDOW] = {};
    float sum = 0.0f;
    for (int row = 0; row < rows; row++) {
        float element = in[row * columns + column];
        sum += element - ring[row % WINDOW];
        ring[row % WINDOW] = element;
        out[row * columns + column] = sum;
    }
}
