// The price of a put option by finite differences. In x = ln S, u = e^{r (T - t)} F solves the heat equation with drift
// sigma^2 / 2 u_xx + mu u_x = -u_t, from the payoff at T back to today. The Crank-Nicolson scheme takes the mean of the
// space derivatives at both ends of a step, A u_new = B u_old, with tridiagonal matrices A and B = 2 - A. So a step
// solves A v = u_old, and u_new = 2 v - u_old: v is the value in the middle of the step. Every kernel does that for
// many independent systems (volatilities). The kernels differ in how they solve A v = u.
//
//   thomas                 one thread per system: Gaussian elimination row by row, then back substitution
//   cyclic_reduction       one block per system: every other row eliminates the unknowns of both neighbours, until one
//                          row remains, then back substitution. The strides 2, 4, 8, ... cause bank conflicts
//   parallel_reduction     parallel cyclic reduction: every row eliminates the unknowns of its neighbours. There is no
//                          back substitution, so half as many levels, but n log n operations
//   permuted_reduction     the same, but after each level the even rows move to the first half and the odd ones to the
//                          second, so that each half is a tridiagonal system of neighbours again (Abbas-Turki and
//                          Graillat, 2017)
//   warp_eliminating       one warp per system: a lane eliminates seven of its eight unknowns in registers, and
//                          shuffles reduce the remaining 32 rows. No barriers
//   warp_factored          the same, but everything that depends on the matrix alone is computed before the first step
//   advance                the rest of a step if a library solves: u_new = 2 v - u_old, and the next right-hand side
//
// A system has `cells` cells and thus cells + 1 nodes. The first and last nodes are the boundary. A matrix has the same
// three coefficients in each row, because the grid and the volatility are the same everywhere, but only warp_factored
// uses the fact that it is the same in each step. `edges` are the boundary values in the middle of the steps, of shape
// (systems, 2, edge_steps), or (systems, 2, 1) where they are the same in all steps.

#include "warp_tridiagonal.cuh"

template <class Number>
struct Matrix {
    Number down, middle, up;
};

// A block has 32 threads, each with a column in shared memory: 3 * (cells + 1) * 32 elements.
template <class Number>
__global__ void thomas(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                       int edge_steps, int systems, int cells, int steps)
{
    extern __shared__ char shared[];
    Number* u = reinterpret_cast<Number*>(shared) + threadIdx.x;
    Number* up = u + (cells + 1) * 32;
    Number* v = up + (cells + 1) * 32;
    int system = blockIdx.x * 32 + threadIdx.x;
    if (system >= systems)
        return;
    Matrix<Number> matrix = matrices[system];
    const Number* low = edges + size_t(2 * system) * edge_steps;
    const Number* high = low + edge_steps;
    for (int i = 0; i <= cells; i++)
        u[i * 32] = in[size_t(system) * (cells + 1) + i];
    up[0] = 0;
    for (int step = 0; step < steps; step++) {
        int at = min(step, edge_steps - 1);
        v[0] = low[at];
        v[cells * 32] = high[at];
        for (int i = 1; i < cells; i++) {
            Number scale = reciprocal(matrix.middle - matrix.down * up[(i - 1) * 32]);
            up[i * 32] = matrix.up * scale;
            v[i * 32] = (u[i * 32] - matrix.down * v[(i - 1) * 32]) * scale;
        }
        for (int i = cells - 1; i > 0; i--)
            v[i * 32] -= up[i * 32] * v[(i + 1) * 32];
        for (int i = 0; i <= cells; i++)
            u[i * 32] = 2 * v[i * 32] - u[i * 32];
    }
    for (int i = 0; i <= cells; i++)
        out[size_t(system) * (cells + 1) + i] = u[i * 32];
}

// The rows of the system that a block keeps in shared memory.
template <class Number>
struct Rows {
    Number *down, *middle, *up, *right;  // coefficients and right-hand side, which becomes the solution

    // Returns n rows in dynamic shared memory.
    __device__ static Rows shared(int n)
    {
        extern __shared__ char memory[];
        Number* first = reinterpret_cast<Number*>(memory);
        return {first, first + n, first + 2 * n, first + 3 * n};
    }
};

// One thread per row; all threads of the block must call this. Row i belongs to node i + 1.
template <class Number, class Solve>
__device__ void steps_of_block(Solve solve, const Number* in, Number* out, const Matrix<Number>* matrices,
                               const Number* edges, int edge_steps, int cells, int steps)
{
    int n = cells - 1;
    int i = threadIdx.x;
    Rows<Number> rows = Rows<Number>::shared(n);
    Matrix<Number> matrix = matrices[blockIdx.x];
    const Number* low = edges + size_t(2 * blockIdx.x) * edge_steps;
    const Number* high = low + edge_steps;
    const Number* mine = in + size_t(blockIdx.x) * (cells + 1);
    Number u = i < n ? mine[i + 1] : 0;
    Number first = mine[0];
    Number last = mine[cells];
    for (int step = 0; step < steps; step++) {
        int at = min(step, edge_steps - 1);
        if (i < n) {
            rows.down[i] = i > 0 ? matrix.down : 0;
            rows.middle[i] = matrix.middle;
            rows.up[i] = i < n - 1 ? matrix.up : 0;
            rows.right[i] = u - (i == 0 ? matrix.down * low[at] : 0) - (i == n - 1 ? matrix.up * high[at] : 0);
        }
        __syncthreads();
        solve(rows, n);
        if (i < n)
            u = 2 * rows.right[i] - u;
        first = 2 * low[at] - first;
        last = 2 * high[at] - last;
    }
    Number* result = out + size_t(blockIdx.x) * (cells + 1);
    if (i < n)
        result[i + 1] = u;
    if (i == 0) {
        result[0] = first;
        result[cells] = last;
    }
}

template <class Number>
__global__ void cyclic_reduction(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                                 int edge_steps, int systems, int cells, int steps)
{
    auto solve = [](Rows<Number> rows, int n) {
        int stride = 1;
        // Down: every second remaining row eliminates the unknowns of its neighbours.
        for (; 2 * stride <= n; stride *= 2) {
            int i = 2 * stride * (threadIdx.x + 1) - 1;
            if (i < n) {
                int j = i - stride;
                Number factor = rows.down[i] * reciprocal(rows.middle[j]);
                Number middle = rows.middle[i] - factor * rows.up[j];
                Number right = rows.right[i] - factor * rows.right[j];
                rows.down[i] = -factor * rows.down[j];
                if (i + stride < n) {
                    int k = i + stride;
                    factor = rows.up[i] * reciprocal(rows.middle[k]);
                    middle -= factor * rows.down[k];
                    right -= factor * rows.right[k];
                    rows.up[i] = -factor * rows.up[k];
                }
                rows.middle[i] = middle;
                rows.right[i] = right;
            }
            __syncthreads();
        }
        // Up: with the solutions of its neighbours, each of the other rows has only one unknown left.
        for (; stride > 0; stride /= 2) {
            int i = 2 * stride * threadIdx.x + stride - 1;
            if (i < n) {
                Number right = rows.right[i];
                if (i >= stride)
                    right -= rows.down[i] * rows.right[i - stride];
                if (i + stride < n)
                    right -= rows.up[i] * rows.right[i + stride];
                rows.right[i] = right * reciprocal(rows.middle[i]);
            }
            __syncthreads();
        }
    };
    steps_of_block(solve, in, out, matrices, edges, edge_steps, cells, steps);
}

// Eliminate from row i the unknowns of its neighbours j and k. A neighbour outside the system has a coefficient of 0.
template <class Number>
__device__ void reduce(const Rows<Number>& rows, int i, int j, int k, Number& down, Number& middle, Number& up,
                       Number& right)
{
    Number lower = rows.down[i] * reciprocal(rows.middle[j]);
    Number upper = rows.up[i] * reciprocal(rows.middle[k]);
    down = -lower * rows.down[j];
    middle = rows.middle[i] - lower * rows.up[j] - upper * rows.down[k];
    up = -upper * rows.up[k];
    right = rows.right[i] - lower * rows.right[j] - upper * rows.right[k];
}

template <class Number>
__global__ void parallel_reduction(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                                   int edge_steps, int systems, int cells, int steps)
{
    auto solve = [](Rows<Number> rows, int n) {
        int i = threadIdx.x;
        Number down, middle, up, right;
        for (int stride = 1; stride < n; stride *= 2) {
            if (i < n)
                reduce(rows, i, max(i - stride, 0), min(i + stride, n - 1), down, middle, up, right);
            __syncthreads();
            if (i < n) {
                rows.down[i] = down;
                rows.middle[i] = middle;
                rows.up[i] = up;
                rows.right[i] = right;
            }
            __syncthreads();
        }
        if (i < n)
            rows.right[i] *= reciprocal(rows.middle[i]);  // read only by this thread
    };
    steps_of_block(solve, in, out, matrices, edges, edge_steps, cells, steps);
}

template <class Number>
__global__ void permuted_reduction(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                                   int edge_steps, int systems, int cells, int steps)
{
    auto solve = [](Rows<Number> rows, int n) {
        int* row_at = reinterpret_cast<int*>(rows.right + n);  // the row that is now at this place
        int i = threadIdx.x;
        int place = i / 2 + i % 2 * ((n + 1) / 2);
        Number down, middle, up, right;
        int row = i;
        for (int size = 1; size < n; size *= 2) {
            if (i < n)
                reduce(rows, i, max(i - 1, 0), min(i + 1, n - 1), down, middle, up, right);
            __syncthreads();
            if (i < n) {
                rows.down[place] = down;
                rows.middle[place] = middle;
                rows.up[place] = up;
                rows.right[place] = right;
                row_at[place] = row;
            }
            __syncthreads();
            if (i < n)
                row = row_at[i];
        }
        Number solution = i < n ? rows.right[i] * reciprocal(rows.middle[i]) : 0;
        __syncthreads();
        if (i < n)
            rows.right[row] = solution;
        __syncthreads();
    };
    steps_of_block(solve, in, out, matrices, edges, edge_steps, cells, steps);
}

// The rows of a warp in shared memory. Four coefficients of a lane are contiguous, so that one load reads them. The
// rows of the upper boundary and beyond it say that the unknown equals the right-hand side.
template <class Number>
struct WarpRows {
    struct alignas(4 * sizeof(Number)) Four {
        Number of[4];
    };
    Four down[CELLS / 4][32], middle[CELLS / 4][32], up[CELLS / 4][32];

    __device__ void set(const Matrix<Number>& matrix, int cells)
    {
        int lane = threadIdx.x;
        for (int i = 0; i < CELLS; i++) {
            bool inside = CELLS * lane + i + 1 < cells;
            down[i / 4][lane].of[i % 4] = inside ? matrix.down : 0;
            middle[i / 4][lane].of[i % 4] = inside ? matrix.middle : 1;
            up[i / 4][lane].of[i % 4] = inside ? matrix.up : 0;
        }
    }

    // After the barrier other lanes may have written the rows, so the compiler must read them again in each step.
    __device__ LaneRows<Number> of_lane() const
    {
        __syncwarp();
        int lane = threadIdx.x;
        LaneRows<Number> rows;
        for (int i = 0; i < CELLS / 4; i++) {
            Four lower = down[i][lane];
            Four own = middle[i][lane];
            Four upper = up[i][lane];
            for (int k = 0; k < 4; k++) {
                rows.down[4 * i + k + 1] = lower.of[k];
                rows.middle[4 * i + k + 1] = own.of[k];
                rows.up[4 * i + k + 1] = upper.of[k];
            }
        }
        rows.up[0] = up[CELLS / 4 - 1][max(lane - 1, 0)].of[3];
        return rows;
    }
};

// One warp per block, so that each has its own multiprocessor. The number of cells is a multiple of CELLS, from 16
// to 256, so that the upper boundary is the last node of a lane other than the first.
template <class Number, bool anew>
__device__ void steps_of_warp(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                              int edge_steps, int cells, int steps)
{
    __shared__ WarpRows<Number> shared;
    int lane = threadIdx.x;
    int lanes = cells / CELLS;
    in += size_t(blockIdx.x) * (cells + 1);
    out += size_t(blockIdx.x) * (cells + 1);
    // Lane 0 reads the lower boundary values and the others the upper ones, which only the last lane uses.
    edges += size_t(2 * blockIdx.x + (lane > 0)) * edge_steps;

    Number u[CELLS + 1], v[CELLS + 1];
    for (int i = 0; i <= CELLS; i++)
        v[i] = u[i] = lane < lanes ? in[CELLS * lane + i] : 0;
    shared.set(matrices[blockIdx.x], cells);
    LaneRows<Number> rows = shared.of_lane();
    Factors<Number> factors;
    if (!anew)
        solve<true>(rows, factors, v, edges[0]);

    Number edge = edges[0];
    for (int step = 0; step < steps; step++) {
        Number next = edges[min(step + 1, edge_steps - 1)];  // read a step ahead
        for (int i = 1; i <= CELLS; i++)
            v[i] = u[i];
        if (lane == lanes - 1)
            v[CELLS] = edge;
        if (anew)
            rows = shared.of_lane();
        solve<anew>(rows, factors, v, edge);
        for (int i = 0; i <= CELLS; i++)
            u[i] = 2 * v[i] - u[i];
        edge = next;
    }

    for (int i = 0; i <= CELLS; i++)
        if (lane < lanes && (i > 0 || lane == 0))
            out[CELLS * lane + i] = u[i];
}

template <class Number>
__global__ void warp_eliminating(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                                 int edge_steps, int systems, int cells, int steps)
{
    steps_of_warp<Number, true>(in, out, matrices, edges, edge_steps, cells, steps);
}

template <class Number>
__global__ void warp_factored(const Number* in, Number* out, const Matrix<Number>* matrices, const Number* edges,
                              int edge_steps, int systems, int cells, int steps)
{
    steps_of_warp<Number, false>(in, out, matrices, edges, edge_steps, cells, steps);
}

// Called after a library has solved `steps` steps, with one thread per node. If there was a step, u is updated from its
// solution v. Then v is overwritten by the right-hand side of the next step. blockIdx.y is the system; v has no
// boundary nodes.
template <class Number>
__global__ void advance(Number* u, Number* v, const Matrix<Number>* matrices, const Number* edges, int edge_steps,
                        int cells, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int system = blockIdx.y;
    if (i > cells)
        return;
    u += size_t(system) * (cells + 1) + i;
    v += size_t(system) * (cells - 1) + i - 1;
    Matrix<Number> matrix = matrices[system];
    const Number* low = edges + size_t(2 * system) * edge_steps;
    const Number* high = low + edge_steps;
    int last = min(steps, edge_steps) - 1;
    int next = min(steps, edge_steps - 1);
    if (steps > 0)
        *u = 2 * (i == 0 ? low[last] : i == cells ? high[last] : *v) - *u;
    if (i > 0 && i < cells)
        *v = *u - (i == 1 ? matrix.down * low[next] : 0) - (i == cells - 1 ? matrix.up * high[next] : 0);
}
