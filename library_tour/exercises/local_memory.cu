// Write the moving sums of each column: the sum of a number and the WINDOW - 1 numbers above it. A thread has one column,
// and keeps the last WINDOW numbers, so that it loads each number once.
//
// The result is right, but the place in the ring varies, so that the ring lies in local memory.

constexpr int WINDOW = 7;

extern "C" __global__ void moving_sums(const float* __restrict__ in, float* __restrict__ out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column >= columns)
        return;
    float ring[WINDOW] = {};
    float sum = 0.0f;
    for (int row = 0; row < rows; row++) {
        float number = in[row * columns + column];
        sum += number - ring[row % WINDOW];
        ring[row % WINDOW] = number;
        out[row * columns + column] = sum;
    }
}
