// Systems with at most 32 unknowns and one right-hand side each, whose matrices have been factored.

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
