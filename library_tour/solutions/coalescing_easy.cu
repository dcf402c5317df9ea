// Add 10 to each element of an image that is stored in row-major order. A block of 32 x 8 threads handles a tile of 32
// columns and 8 rows.

constexpr int TILE = 32;
constexpr int TILE_ROWS = 8;

extern "C" __global__ void brighten(const unsigned* in, unsigned* out, int rows, int columns)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE_ROWS + threadIdx.y;
    if (row < rows && column < columns)
        out[row * columns + column] = in[row * columns + column] + 10;
}
