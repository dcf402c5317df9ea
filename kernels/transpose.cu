// Transpose a row-major matrix. Neighbouring threads must touch neighbouring addresses both when they read and when
// they write; a tile in shared memory, where order costs nothing, lets them.
//
//   transpose_naive          reads along rows, writes down columns: every thread of a warp writes to another row
//   transpose_tile<0>        turns a tile in shared memory, so that both sides run along rows; but a column of the tile
//                            lies in one single bank
//   transpose_tile<1>        rows of the tile one element longer, so that a column lies in 32 different banks
//   transpose_registers      16 bytes at once and no tile: a thread turns 4 x 4 elements in its own registers
//   transpose_vector<false>  4 x 4 elements a thread, then through a tile of 64 x 64 without padding, whose 16-byte words
//                            change places within their row: long pieces of rows on both sides
//   transpose_vector<true>   the same with blocks that start down the columns of the input, so that what is written at
//                            one time is whole rows of the output. On an H200 that is 3 % faster: its memory minds
//                            scattered writes more than scattered reads
//   copy_tile                through the tile, but not turned: what shared memory itself costs
//   copy_plain               not turned, no tile: what there is to reach with 4 bytes at once
//
// Blocks of the first and last ones are 32 x 8 threads and turn 32 x 32 elements, four a thread. Those that move 16
// bytes at once need rows and columns in multiples of four. Indices are 64 bits wide: a matrix may have more than 2^31
// elements.

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

// Rows of a 4 x 4 block.
struct Square {
    float4 row[4];
};

// Read 4 x 4 elements, four loads in flight.
__device__ Square load_square(const float* in, int row, int column, int columns)
{
    Square square;
    for (int i = 0; i < 4; i++)
        square.row[i] = *reinterpret_cast<const float4*>(in + size_t(row + i) * columns + column);
    return square;
}

// Which registers hold what is all that changes: it costs no instruction.
__device__ Square turned(const Square& s)
{
    return {make_float4(s.row[0].x, s.row[1].x, s.row[2].x, s.row[3].x),
            make_float4(s.row[0].y, s.row[1].y, s.row[2].y, s.row[3].y),
            make_float4(s.row[0].z, s.row[1].z, s.row[2].z, s.row[3].z),
            make_float4(s.row[0].w, s.row[1].w, s.row[2].w, s.row[3].w)};
}

// Any block shape. A warp of 8 x 4 threads reads pieces of 128 bytes and writes pieces of 64.
extern "C" __global__ void transpose_registers(const float* in, float* out, int rows, int columns)
{
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int row = 4 * (blockIdx.y * blockDim.y + threadIdx.y);
    if (row >= rows || column >= columns)
        return;
    Square square = turned(load_square(in, row, column, columns));
    for (int i = 0; i < 4; i++)
        *reinterpret_cast<float4*>(out + size_t(column + i) * rows + row) = square.row[i];
}

// A block is 16 x 16 threads. Blocks start in the order of blockIdx.x, so the grid's x counts tiles along rows, or down
// columns.
template <bool down>
__global__ void transpose_vector(const float* in, float* out, int rows, int columns)
{
    constexpr int tile_size = 64;
    constexpr int words = tile_size / 4;  // of 16 bytes in a row of the tile
    __shared__ float4 tile[tile_size][words];

    int tile_row = tile_size * (down ? blockIdx.x : blockIdx.y);
    int tile_column = tile_size * (down ? blockIdx.y : blockIdx.x);

    int row = tile_row + 4 * threadIdx.y;
    int column = tile_column + 4 * threadIdx.x;
    if (row < rows && column < columns) {
        Square square = turned(load_square(in, row, column, columns));
        // Neighbouring threads write to one column of words: x in the place spreads them over all banks.
        for (int i = 0; i < 4; i++)
            tile[4 * threadIdx.x + i][threadIdx.y ^ threadIdx.x] = square.row[i];
    }
    __syncthreads();
    int out_column = tile_row + 4 * threadIdx.x;
    for (int y = threadIdx.y; y < tile_size; y += words) {
        int out_row = tile_column + y;
        if (out_row < columns && out_column < rows)
            *reinterpret_cast<float4*>(out + size_t(out_row) * rows + out_column) = tile[y][threadIdx.x ^ y / 4];
    }
}
