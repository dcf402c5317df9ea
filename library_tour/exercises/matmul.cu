// For each of n points, find the squared distance to the nearest of m places. A block has 256 threads.
//
// The result is right, but every warp of a block loads all places from global memory.

extern "C" __global__ void nearest(const float2* points, const float2* places, float* out, int n, int m)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float2 point = points[i];
    float least = 1e30f;
    for (int j = 0; j < m; j++) {
        float x = places[j].x - point.x;
        float y = places[j].y - point.y;
        least = min(least, x * x + y * y);
    }
    out[i] = least;
}
