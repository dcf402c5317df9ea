// Take two steps of a rod at once: in a step, each cell becomes (left + 2 cell + right) / 4. At the ends, the cell
// itself takes the place of a missing neighbour. A block has 256 threads.

constexpr int BLOCK = 256;

// Return cell i of the rod after a step, from a piece of the rod that begins at cell `first`.
__device__ float after_a_step(const float* piece, int first, int i, int n)
{
    return 0.25f * (piece[max(i - 1, 0) - first] + 2.0f * piece[i - first] + piece[min(i + 1, n - 1) - first]);
}

extern "C" __global__ void two_steps(const float* in, float* out, int n)
{
    __shared__ float before[BLOCK + 4];
    __shared__ float after[BLOCK + 2];

    int start = blockIdx.x * BLOCK;
    for (int k = threadIdx.x; k < BLOCK + 4; k += BLOCK)
        before[k] = in[min(max(start - 2 + k, 0), n - 1)];
    __syncthreads();
    for (int k = threadIdx.x; k < BLOCK + 2; k += BLOCK)
        after[k] = after_a_step(before, start - 2, min(max(start - 1 + k, 0), n - 1), n);
    __syncthreads();
    int i = start + threadIdx.x;
    if (i < n)
        out[i] = after_a_step(after, start - 1, i, n);
}
