// Solve tridiagonal systems whose ends are joined: one warp per ring of 32 unknowns, one lane per row.
//
// For now, each lane computes its unknown from those of its neighbours over and over again. That converges so slowly
// that 40 passes are not enough.

constexpr unsigned ALL = 0xffffffff;

// Row i of a system is down[i] x[i - 1] + middle[i] x[i] + up[i] x[i + 1] = right[i]; the neighbours of row 0 are
// rows 31 and 1, and the neighbours of row 31 are rows 30 and 0. A block is one warp and solves system blockIdx.x.
extern "C" __global__ void solve_ring(const float* down, const float* middle, const float* up, const float* right,
                                      float* x)
{
    int lane = threadIdx.x;
    int i = 32 * blockIdx.x + lane;
    float a = down[i];
    float b = middle[i];
    float c = up[i];
    float r = right[i];
    float solution = 0.0f;
    for (int pass = 0; pass < 40; pass++) {
        float before = __shfl_sync(ALL, solution, (lane + 31) % 32);
        float after = __shfl_sync(ALL, solution, (lane + 1) % 32);
        solution = (r - a * before - c * after) / b;
    }
    x[i] = solution;
}
