// Replace each cell of a plate with the average of its four neighbours. Where a neighbour is outside the plate, the
// cell itself is used instead.

extern "C" __global__ void step(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || column >= columns)
        return;
    float left = in[row * columns + max(column - 1, 0)];
    float right = in[row * columns + min(column + 1, columns - 1)];
    float above = in[max(row - 1, 0) * columns + column];
    float below = in[min(row + 1, rows - 1) * columns + column];
    out[row * columns + column] = 0.25f * (above + below + left + right);
}
