// Rotate a row-major picture by a quarter turn clockwise. Element (row, column) goes to row `column` and column
// `rows - 1 - row` of the output.
//
// The result is right, but each lane of a warp writes to a different row of the output.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void rotate(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            out[size_t(column) * rows + (rows - 1 - row)] = in[size_t(row) * columns + column];
    }
}
