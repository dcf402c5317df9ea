// Add 10 to each element of an image that is stored in row-major order. A block of 32 x 8 threads handles a tile of 32
// columns and 8 rows.
//
// The result is right, but the threads are numbered down the columns of the tile.

constexpr int TILE = 32;
constexpr int TILE_ROWS = 8;

extern "C" __global__ void brighten(const unsigned* in, unsigned* out, int rows, int columns)
{
    int thread = threadIdx.y * TILE + threadIdx.x;
    int column = blockIdx.x * TILE + thread / TILE_ROWS;
    int row = blockIdx.y * TILE_ROWS + thread % TILE_ROWS;
    if (row < rows && column < columns)
        out[row * columns + column] = in[row * columns + column] + 10;
}
