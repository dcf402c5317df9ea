// Copies a triangle of a column-major matrix into a row-major matrix. The other triangle, where a factorization leaves
// unrelated numbers, is filled with zeros.

// Word has the size of an element: 4, 8 or 16 bytes. Blocks of 32 x 8 threads transpose tiles of 32 x 32 elements.
template <class Word>
__global__ void take_triangle(const Word* columns, long long leading, Word* rows, long long height, long long width,
                              bool lower)
{
    __shared__ Word tile[32][33]; // the padding column prevents bank conflicts of accesses to a column
    long long top = blockIdx.y * 32ll;
    long long left = blockIdx.x * 32ll;
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        long long row = top + threadIdx.x;
        long long column = left + i;
        if (row < height && column < width && (lower ? column <= row : column >= row))
            tile[i][threadIdx.x] = columns[column * leading + row];
    }
    __syncthreads();
    for (int i = threadIdx.y; i < 32; i += blockDim.y) {
        long long row = top + i;
        long long column = left + threadIdx.x;
        if (row < height && column < width)
            rows[row * width + column] = (lower ? column <= row : column >= row) ? tile[threadIdx.x][i] : Word();
    }
}
