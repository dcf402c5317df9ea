// Transpose a row-major matrix. Neighbouring threads must touch neighbouring addresses both when they read and when
// they write; a tile in shared memory, where order costs nothing, lets them.
//
//   transpose_naive     reads along rows, writes down columns: every thread of a warp writes to another row
//   transpose_tile<0>   turns a tile in shared memory, so that both sides run along rows; but a column of the tile
//                       lies in one single bank
//   transpose_tile<1>   rows of the tile one element longer, so that a column lies in 32 different banks
//   copy_tile           through the tile, but not turned: what shared memory itself costs
//   copy_plain          not turned, no tile: what there is to reach
//
// A block is 32 x 8 threads and turns 32 x 32 elements, four a thread. Indices are 64 bits wide: a matrix may have
// more than 2^31 elements.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void copy_plain(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            out[size_t(row) * columns + column] = in[size_t(row) * columns + column];
    }
}

extern "C" __global__ void copy_tile(const float* in, float* out, int rows, int columns)
{
    __shared__ float tile[TILE][TILE];

    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            tile[y][threadIdx.x] = in[size_t(row) * columns + column];
    }
    __syncthreads();
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            out[size_t(row) * columns + column] = tile[y][threadIdx.x];
    }
}

extern "C" __global__ void transpose_naive(const float* in, float* out, int rows, int columns)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            out[size_t(column) * rows + row] = in[size_t(row) * columns + column];
    }
}

template <int padding>
__global__ void transpose_tile(const float* in, float* out, int rows, int columns)
{
    __shared__ float tile[TILE][TILE + padding];

    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < rows && column < columns)
            tile[y][threadIdx.x] = in[size_t(row) * columns + column];
    }
    __syncthreads();
    // The tile's place in the output: its block coordinates change places too.
    int out_column = blockIdx.y * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int out_row = blockIdx.x * TILE + y;
        if (out_row < columns && out_column < rows)
            out[size_t(out_row) * rows + out_column] = tile[threadIdx.x][y];
    }
}
