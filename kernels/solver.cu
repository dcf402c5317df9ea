// Matrices for the solvers, made where they are needed, and what the solvers leave to be done.
//
//   hilbert            1 / (i + j + 1): as hard as a matrix gets, its condition number grows like 33^n
//   vandermonde        the powers of points on [-1, 1]: a polynomial's coefficients from its values
//   take_triangle<T>   copies a triangle of a matrix from column by column to row by row, with zeros beside it, where a
//                      factorization leaves other things
//
// The first two are stored row by row.

extern "C" __global__ void hilbert(double* matrix, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < n && column < n)
        matrix[size_t(row) * n + column] = 1.0 / (row + column + 1);
}

extern "C" __global__ void vandermonde(const double* points, double* matrix, int rows, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    double power = 1.0;
    for (int column = 0; column < columns; column++) {
        matrix[size_t(row) * columns + column] = power;
        power *= points[row];
    }
}

// A word is as long as an element: 4, 8 or 16 bytes. Blocks of 32 x 8 threads turn tiles of 32 x 32.
template <class Word>
__global__ void take_triangle(const Word* columns, long long leading, Word* rows, long long height, long long width,
                              bool lower)
{
    __shared__ Word tile[32][33]; // a column more, so that a tile's columns begin in different banks
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
