// Sum the rows of a tile of 32 x 32 elements in shared memory. A block is one warp.
//
// The result is right, but at each step all lanes read from the same bank.

constexpr int SIDE = 32;

extern "C" __global__ void sum_rows(const unsigned* in, unsigned* sums)
{
    __shared__ unsigned tile[SIDE][SIDE];

    int lane = threadIdx.x;
    for (int row = 0; row < SIDE; row++)
        tile[row][lane] = in[row * SIDE + lane];
    __syncwarp();  // the barrier for a warp
    unsigned sum = 0;
    for (int k = 0; k < SIDE; k++)
        sum += tile[lane][k];
    sums[lane] = sum;
}
