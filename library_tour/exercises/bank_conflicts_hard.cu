// Transpose a tile of 32 x 32 elements through shared memory. The block has 32 x 8 threads.
//
// The result is right, but the lanes of a warp read a column of the tile, which is entirely in one bank.

constexpr int SIDE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void transpose_tile(const unsigned* in, unsigned* out)
{
    __shared__ unsigned tile[SIDE][SIDE];

    int x = threadIdx.x;
    for (int y = threadIdx.y; y < SIDE; y += BLOCK_ROWS)
        tile[y][x] = in[y * SIDE + x];
    __syncthreads();
    for (int y = threadIdx.y; y < SIDE; y += BLOCK_ROWS)
        out[y * SIDE + x] = tile[x][y];
}
