// Matrices for the solvers, made where they are needed, and what the solvers leave to be done.
//
//   hilbert            1 / (i + j + 1): as hard as a matrix gets, its condition number grows like 33^n
//   vandermonde        the powers of points on [-1, 1]: a polynomial's coefficients from its values
//   keep_triangle<T>   zeros above the diagonal (or below), where a factorization leaves what was there before
//
// Matrices are stored row by row.

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

// A word is as long as an element: 4, 8 or 16 bytes.
template <class Word>
__global__ void keep_triangle(Word* matrix, long long rows, long long columns, bool lower)
{
    long long column = blockIdx.x * blockDim.x + threadIdx.x;
    long long row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns && (lower ? column > row : column < row))
        matrix[row * columns + column] = Word();
}
