// Tridiagonal systems of up to 256 unknowns, solved by one warp each, in registers and with shuffles.
//
// A lane owns CELLS cells of the grid and the upper node of each: nodes 1 to CELLS of the arrays below. Node 0 is the
// last node of the lane before, or the lower boundary. First a lane eliminates all of its unknowns but the last, which
// needs no other lane. The remaining 32 rows are solved by parallel cyclic reduction, and then each lane solves for its
// own unknowns.

#pragma once

// The hardware's approximation, with an error of at most one unit in the last place.
__device__ float reciprocal(float x)
{
    float result;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
    return result;
}

__device__ double reciprocal(double x)
{
    return 1.0 / x;
}

constexpr int CELLS = 8;
constexpr int LEVELS = 5;  // until the 32 rows of a warp are independent

// The rows of nodes 0 to 8; node 0 uses only `up`. The elimination changes them.
template <class Number>
struct LaneRows {
    Number down[CELLS + 1], middle[CELLS + 1], up[CELLS + 1];
};

// The results of the elimination that depend on the matrix alone. Nodes 1 to 7: multiples of a row that are subtracted
// from the rows before and after it, and the row divided by its `middle`. Node 8: multiples of the rows 1, 2, 4, 8 and
// 16 lanes away that are subtracted, the coefficient of the lower boundary, and the reciprocal of the last `middle`.
template <class Number>
struct Factors {
    Number to_lower[CELLS], to_upper[CELLS];
    Number scale[CELLS], down[CELLS], up[CELLS];
    Number below[LEVELS], above[LEVELS];
    Number boundary, last;
};

// In the matrix, eliminate unknown i from rows j and k, which come before and after it.
template <class Number>
__device__ void eliminate(LaneRows<Number>& rows, Factors<Number>& factors, int i, int j, int k)
{
    Number scale = reciprocal(rows.middle[i]);
    Number down = rows.down[i] * scale;
    Number up = rows.up[i] * scale;
    factors.scale[i] = scale;
    factors.down[i] = down;
    factors.up[i] = up;
    factors.to_lower[i] = rows.up[j] * scale;
    factors.to_upper[i] = rows.down[k] * scale;
    rows.middle[j] -= down * rows.up[j];
    rows.up[j] *= -up;
    rows.middle[k] -= up * rows.down[k];
    rows.down[k] *= -down;
}

// Solve for nodes 1 to 8. v is the right-hand side on entry and the solution on return; `edge` is the lower boundary
// value. With `anew`, the factors are computed from the rows; otherwise the factors of an earlier call are used.
template <bool anew, class Number>
__device__ void solve(LaneRows<Number>& rows, Factors<Number>& factors, Number (&v)[CELLS + 1], Number edge)
{
    constexpr unsigned ALL = 0xffffffff;
    int lane = threadIdx.x;

    // Unknowns 1, 3, 5, 7, then 2, 6, then 4. The contribution to the row of node 0 is kept for the lane before.
    v[0] = 0;
    if (anew)
        rows.middle[0] = 0;
#pragma unroll
    for (int stride = 1; stride < CELLS; stride *= 2)
#pragma unroll
        for (int i = stride; i < CELLS; i += 2 * stride) {
            if (anew)
                eliminate(rows, factors, i, i - stride, i + stride);
            v[i - stride] -= factors.to_lower[i] * v[i];
            v[i + stride] -= factors.to_upper[i] * v[i];
        }

    // Parallel cyclic reduction of the rows of node 8. A lane at either end gets its own values from a shuffle. The
    // last lane must not add them here; later the coefficient is zero where there is no neighbour.
    Number added = __shfl_down_sync(ALL, v[0], 1);
    Number a, b, c;
    if (anew) {
        Number middle = __shfl_down_sync(ALL, rows.middle[0], 1);
        Number up = __shfl_down_sync(ALL, rows.up[0], 1);
        factors.boundary = lane == 0 ? rows.down[CELLS] : 0;
        a = lane == 0 ? 0 : rows.down[CELLS];
        b = rows.middle[CELLS] + (lane < 31 ? middle : 0);
        c = lane < 31 ? up : 0;
    }
    Number right = v[CELLS] - factors.boundary * edge;
    right += lane < 31 ? added : 0;
#pragma unroll
    for (int level = 0; level < LEVELS; level++) {
        int away = 1 << level;
        Number below = __shfl_up_sync(ALL, right, away);
        Number above = __shfl_down_sync(ALL, right, away);
        if (anew) {
            // All shuffles except those of the reciprocal come first, because they need not wait for it.
            Number a_below = __shfl_up_sync(ALL, a, away);
            Number c_above = __shfl_down_sync(ALL, c, away);
            Number c_below = __shfl_up_sync(ALL, c, away);
            Number a_above = __shfl_down_sync(ALL, a, away);
            Number scale = reciprocal(b);
            Number lower = __shfl_up_sync(ALL, scale, away);
            Number upper = __shfl_down_sync(ALL, scale, away);
            factors.below[level] = a * lower;
            factors.above[level] = c * upper;
            b -= a * c_below * lower;
            b -= c * a_above * upper;
            a *= -a_below * lower;
            c *= -c_above * upper;
        }
        right -= factors.below[level] * below;
        right -= factors.above[level] * above;
    }
    if (anew)
        factors.last = reciprocal(b);
    v[CELLS] = right * factors.last;
    Number before = __shfl_up_sync(ALL, v[CELLS], 1);
    v[0] = lane == 0 ? edge : before;

    // Back: unknown 4, then 2 and 6, then 1, 3, 5, 7.
#pragma unroll
    for (int stride = CELLS / 2; stride > 0; stride /= 2)
#pragma unroll
        for (int i = stride; i < CELLS; i += 2 * stride)
            v[i] = v[i] * factors.scale[i] - factors.up[i] * v[i + stride] - factors.down[i] * v[i - stride];
}
