// Replace each cell of a plate with the average of its four neighbours. Where a neighbour is outside the plate, the
// cell itself is used instead.
//
// The starting code finds neighbours by their index in memory, even across the edges of the plate.

extern "C" __global__ void step(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    int i = row * columns + column, last = rows * columns - 1;
    float left = in[max(i - 1, 0)];
    float right = in[min(i + 1, last)];
    float above = in[max(i - columns, 0)];
    float below = in[min(i + columns, last)];
    out[i] = 0.25f * (above + below + left + right);
}
