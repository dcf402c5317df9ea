// Solve tridiagonal systems whose ends are joined: one warp per ring of 32 unknowns, one lane per row.

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
    for (int away = 1; away < 32; away *= 2) {
        int before = (lane + 32 - away) % 32;
        int after = (lane + away) % 32;
        // The multiples of the two neighbouring rows that eliminate their unknowns from this row.
        float scale = 1.0f / b;
        float lower = a * __shfl_sync(ALL, scale, before);
        float upper = c * __shfl_sync(ALL, scale, after);
        b -= lower * __shfl_sync(ALL, c, before) + upper * __shfl_sync(ALL, a, after);
        r -= lower * __shfl_sync(ALL, r, before) + upper * __shfl_sync(ALL, r, after);
        float next_a = -lower * __shfl_sync(ALL, a, before);
        c = -upper * __shfl_sync(ALL, c, after);
        a = next_a;
    }
    // The row 32 lanes away is this row itself.
    x[i] = r / (a + b + c);
}
