// Multiply two square matrices whose size is a multiple of 32. A block has 32 x 8 threads and computes a tile of 32 x
// 32 elements.
//
// The result is right, but each thread reads its column of b's tile four times.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;
// Rows of the tile per thread: a thread's row r is row `threadIdx.y + 8 r` of the tile.
constexpr int EACH = TILE / BLOCK_ROWS;

extern "C" __global__ void multiply(const float* a, const float* b, float* c, int size)
{
    __shared__ float of_a[TILE][TILE];
    __shared__ float of_b[TILE][TILE];

    int x = threadIdx.x, top = blockIdx.y * TILE, left = blockIdx.x * TILE;
    float sum[EACH] = {};
    for (int first = 0; first < size; first += TILE) {
        for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
            of_a[y][x] = a[(top + y) * size + first + x];
            of_b[y][x] = b[(first + y) * size + left + x];
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < EACH; r++) {
#pragma unroll 1
            for (int k = 0; k < TILE; k++)
                sum[r] += of_a[threadIdx.y + r * BLOCK_ROWS][k] * of_b[k][x];
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < EACH; r++)
        c[(top + threadIdx.y + r * BLOCK_ROWS) * size + left + x] = sum[r];
}
