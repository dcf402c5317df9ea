// Replace each cell of a plate with (above + 2 cell + below) / 4. Where there is no cell above or below, the cell
// itself is used instead.

constexpr int HEIGHT = 8;

extern "C" __global__ void smooth_down(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int top = HEIGHT * (blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= columns || top >= rows)
        return;
    float above = in[max(top - 1, 0) * columns + column];
    float cell = in[top * columns + column];
    for (int row = top; row < min(top + HEIGHT, rows); row++) {
        float below = in[min(row + 1, rows - 1) * columns + column];
        out[row * columns + column] = 0.25f * (above + 2.0f * cell + below);
        above = cell;
        cell = below;
    }
}
