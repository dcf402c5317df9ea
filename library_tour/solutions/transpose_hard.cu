// Transpose a square matrix in place. A block has 32 x 8 threads, and the grid has one block per tile of 32 x 32
// elements.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

// Load the part of a tile that is inside the matrix. The tile starts at row `top` and column `left`.
__device__ void load(float (*tile)[TILE + 1], const float* matrix, int size, int top, int left)
{
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (top + y < size && left + threadIdx.x < size)
            tile[y][threadIdx.x] = matrix[(top + y) * size + left + threadIdx.x];
}

// Store the transpose of a tile.
__device__ void store_transposed(const float (*tile)[TILE + 1], float* matrix, int size, int top, int left)
{
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS)
        if (top + y < size && left + threadIdx.x < size)
            matrix[(top + y) * size + left + threadIdx.x] = tile[threadIdx.x][y];
}

extern "C" __global__ void transpose_in_place(float* matrix, int size)
{
    __shared__ float above[TILE][TILE + 1];
    __shared__ float below[TILE][TILE + 1];

    // The whole block returns, so all of its threads reach the barrier, or none do.
    if (blockIdx.x < blockIdx.y)
        return;
    int top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    load(above, matrix, size, top, left);
    load(below, matrix, size, left, top);
    __syncthreads();
    store_transposed(below, matrix, size, top, left);
    // On the diagonal, both are the same tile, which is stored twice.
    store_transposed(above, matrix, size, left, top);
}
