// Replace each cell of a plate with (above + 2 cell + below) / 4. Where there is no cell above or below, the cell
// itself is used instead.
//
// A thread moves down eight rows. The result is correct, but each thread loads three cells per row.

constexpr int HEIGHT = 8;

extern "C" __global__ void smooth_down(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int top = HEIGHT * (blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= columns)
        return;
    for (int row = top; row < min(top + HEIGHT, rows); row++) {
        float above = in[max(row - 1, 0) * columns + column];
        float cell = in[row * columns + column];
        float below = in[min(row + 1, rows - 1) * columns + column];
        out[row * columns + column] = 0.25f * (above + 2.0f * cell + below);
    }
}
