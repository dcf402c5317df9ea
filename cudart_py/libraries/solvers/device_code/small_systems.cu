// Matrices with at most 32 rows, each of which is the work of one warp.

// Factors `count` real, positive definite matrices A = L L^T, of which only the lower triangles are read. The n rows of
// each matrix begin `leading` elements apart, and the matrices `stride` elements apart. L is row-major and contiguous,
// with zeros above the diagonal. A lane computes one row of L. As in LAPACK, a status is 0, or the order of the first
// leading minor that is not positive; L is then incomplete. Each block has FACTORING_WARPS warps.
constexpr int FACTORING_WARPS = 4;
template <class Real>
__global__ void factor_small(const Real* from, long long leading, long long stride, Real* to, int n, int* statuses,
                             long long count)
{
    constexpr unsigned ALL = 0xffffffff;
    __shared__ Real tiles[FACTORING_WARPS][32][33]; // the padding column prevents bank conflicts of accesses to a column
    int row = threadIdx.x % 32;
    long long matrix = blockIdx.x * static_cast<long long>(FACTORING_WARPS) + threadIdx.x / 32;
    if (matrix >= count)
        return;
    auto& tile = tiles[threadIdx.x / 32];
    from += matrix * stride;
    to += matrix * n * n;

    for (int i = 0; i < n; i++) {
        if (row <= i)
            tile[i][row] = from[i * leading + row];
    }
    __syncwarp();

    int status = 0;
    for (int column = 0; column < n; column++) {
        bool below = column <= row && row < n;
        Real value = below ? tile[row][column] : Real();
        for (int k = 0; below && k < column; k++)
            value -= tile[row][k] * tile[column][k];
        Real pivot = __shfl_sync(ALL, value, column);
        if (!(pivot > 0)) { // including NaN
            status = column + 1;
            break;
        }
        Real root = sqrt(pivot);
        if (below)
            tile[row][column] = row == column ? root : value / root;
        __syncwarp();
    }
    if (row == 0)
        statuses[matrix] = status;

    for (int i = 0; i < n; i++) {
        if (row < n)
            to[i * n + row] = row <= i ? tile[i][row] : Real();
    }
}

// Solves P L U x = b in place for `count` real systems. The n x n factors are LAPACK's: column-major, L with an implied
// diagonal of ones, and pivots that are counted from 1. A warp solves one system, and each of its lanes holds the element
// of one row.
template <class Real>
__global__ void solve_small(const Real* factors, const int* pivots, Real* x, int n, long long count)
{
    constexpr unsigned ALL = 0xffffffff;
    long long system = (blockIdx.x * (long long)blockDim.x + threadIdx.x) / 32;
    if (system >= count)
        return;
    int row = threadIdx.x % 32;
    factors += system * n * n;
    x += system * n;

    // The interchanges of rows, applied to the numbers of the rows.
    int pivot = row < n ? pivots[system * n + row] - 1 : row;
    int original = row;
    for (int step = 0; step < n; step++) {
        int other = __shfl_sync(ALL, pivot, step);
        int from = row == step ? other : row == other ? step : row;
        original = __shfl_sync(ALL, original, from);
    }
    Real value = row < n ? x[original] : Real();

    for (int column = 0; column < n; column++) {
        Real solved = __shfl_sync(ALL, value, column);
        if (row > column && row < n)
            value -= factors[column * n + row] * solved;
    }
    for (int column = n - 1; column >= 0; column--) {
        if (row == column)
            value /= factors[column * n + row];
        Real solved = __shfl_sync(ALL, value, column);
        if (row < column)
            value -= factors[column * n + row] * solved;
    }
    if (row < n)
        x[row] = value;
}
