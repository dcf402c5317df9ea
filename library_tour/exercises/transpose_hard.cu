// Transpose a square matrix in place. A block has 32 x 8 threads, and the grid has one block per tile of 32 x 32
// elements.
//
// The result is right, but for one of the two elements, each lane of a warp reads and writes a different row.

constexpr int TILE = 32;
constexpr int BLOCK_ROWS = 8;

extern "C" __global__ void transpose_in_place(float* matrix, int size)
{
    int column = blockIdx.x * TILE + threadIdx.x;
    for (int y = threadIdx.y; y < TILE; y += BLOCK_ROWS) {
        int row = blockIdx.y * TILE + y;
        if (row < column && column < size) {
            float above = matrix[row * size + column];
            matrix[row * size + column] = matrix[column * size + row];
            matrix[column * size + row] = above;
        }
    }
}
