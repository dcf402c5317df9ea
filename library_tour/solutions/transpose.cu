// Rotate a row-major picture by a quarter turn clockwise. Element (row, column) goes to row `column` and column
// `rows - 1 - row` of the output.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void rotate(const float* in, float* out, int rows, int columns)
{
    __shared__ float tile[TILE][TILE + 1];

    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            tile[y][threadIdx.x] = in[size_t(row) * columns + column];
    }
    __syncthreads();
    // Each lane takes a row of the input. The warp takes a column, which is a row of the output.
    int row = blockIdx.y * TILE + threadIdx.x;
    for (int x = threadIdx.y; x < TILE; x += BLOCK_ROWS) {
        int out_row = blockIdx.x * TILE + x;
        if (row < rows && out_row < columns)
            out[size_t(out_row) * rows + (rows - 1 - row)] = tile[threadIdx.x][x];
    }
}
