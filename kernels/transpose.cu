// Transpose a row-major matrix. For coalesced access, adjacent threads must read adjacent elements, and they must also
// write adjacent elements. A tile in shared memory, where the order of access matters less, makes both possible.
//
//   transpose_naive          reads along rows and writes along columns: each lane of a warp writes to a different row
//   transpose_tile<0>        transposes a tile in shared memory, so that loads and stores both run along rows. However,
//                            each column of the tile lies in a single bank
//   transpose_tile<1>        the rows of the tile are one element longer, so a column spreads over all 32 banks
//   transpose_registers      16-byte loads and stores, no tile: a thread transposes 4 x 4 elements in its registers
//   transpose_vector<false>  4 x 4 elements per thread, then a tile of 64 x 64 without padding, whose 16-byte words are
//                            permuted within their row: each block reads and writes longer parts of rows
//   transpose_vector<true>   the same kernel with blocks that follow one another down the columns of the input, so that
//                            blocks that run at the same time write whole rows of the output. On an H200 that is 3 %
//                            faster: scattered stores cost its memory more than scattered loads
//   copy_tile                copies through the tile without transposing: shows the cost of shared memory itself
//   copy_plain               copies without a tile: shows the highest rate of 4-byte loads and stores
//
// The kernels without vectors have blocks of 32 x 8 threads, which move 32 x 32 elements, four per thread. Kernels with
// 16-byte loads need rows and columns in multiples of four. Indices have 64 bits, since a matrix may have more than
// 2^31 elements.

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
    // In the output, the block's coordinates are swapped too.
    int out_column = blockIdx.y * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int out_row = blockIdx.x * TILE + y;
        if (out_row < columns && out_column < rows)
            out[size_t(out_row) * rows + out_column] = tile[threadIdx.x][y];
    }
}

// The rows of a 4 x 4 square.
struct Square {
    float4 row[4];
};

// Read 4 x 4 elements, with four loads in flight.
__device__ Square load_square(const float* in, int row, int column, int columns)
{
    Square square;
    for (int i = 0; i < 4; i++)
        square.row[i] = *reinterpret_cast<const float4*>(in + size_t(row + i) * columns + column);
    return square;
}

// Only the order in which registers are used changes, which takes no instructions.
__device__ Square turned(const Square& s)
{
    return {make_float4(s.row[0].x, s.row[1].x, s.row[2].x, s.row[3].x),
            make_float4(s.row[0].y, s.row[1].y, s.row[2].y, s.row[3].y),
            make_float4(s.row[0].z, s.row[1].z, s.row[2].z, s.row[3].z),
            make_float4(s.row[0].w, s.row[1].w, s.row[2].w, s.row[3].w)};
}

// Works with any block shape. A warp of 8 x 4 threads reads 128 contiguous bytes of each row, and writes 64.
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

// A block has 16 x 16 threads. Blocks with consecutive blockIdx.x tend to run at the same time, although CUDA
// guarantees no order. blockIdx.x counts tiles along the rows, or down the columns.
template <bool down>
__global__ void transpose_vector(const float* in, float* out, int rows, int columns)
{
    constexpr int tile_size = 64;
    constexpr int words = tile_size / 4;  // 16-byte words in a row of the tile
    __shared__ float4 tile[tile_size][words];

    int tile_row = tile_size * (down ? blockIdx.x : blockIdx.y);
    int tile_column = tile_size * (down ? blockIdx.y : blockIdx.x);

    int row = tile_row + 4 * threadIdx.y;
    int column = tile_column + 4 * threadIdx.x;
    if (row < rows && column < columns) {
        Square square = turned(load_square(in, row, column, columns));
        // Adjacent threads write to the same column of words. The permutation by x spreads it over all banks.
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
