// Test matrices for the solvers, computed on the device in row-major order.
//
//   hilbert       1 / (i + j + 1): an ill-conditioned matrix, whose condition number grows like 33^n
//   vandermonde   the powers of points on [-1, 1], for fitting the coefficients of a polynomial to its values

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
