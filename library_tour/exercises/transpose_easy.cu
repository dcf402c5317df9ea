// Add a square matrix and its transpose. A block has 32 x 8 threads and writes a tile of 32 x 32 elements.
//
// The result is right, but the lanes of a warp all read from one bank of shared memory.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void add_transpose(const float* in, float* out, int size)
{
    __shared__ float tile[TILE][TILE];

    // The tile on the other side of the diagonal.
    int column = blockIdx.y * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.x * TILE + y;
        if (row < size && column < size)
            tile[y][threadIdx.x] = in[row * size + column];
    }
    __syncthreads();
    column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < size && column < size)
            out[row * size + column] = in[row * size + column] + tile[threadIdx.x][y];
    }
}
