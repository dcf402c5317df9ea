// Split n points, stored as x y z x y z ..., into three arrays. A block has 128 threads.
//
// The result is right, but the lanes of a warp read elements that are 12 bytes apart.

constexpr int BLOCK = 128;

extern "C" __global__ void split(const float* points, float* x, float* y, float* z, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    x[i] = points[3 * i];
    y[i] = points[3 * i + 1];
    z[i] = points[3 * i + 2];
}
