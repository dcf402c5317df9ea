// For each of n points, find the squared distance to the nearest of m places. A block has 256 threads.

constexpr int THREADS = 256;

extern "C" __global__ void nearest(const float2* points, const float2* places, float* out, int n, int m)
{
    __shared__ float2 tile[THREADS];

    int i = blockIdx.x * THREADS + threadIdx.x;
    float2 point = points[min(i, n - 1)];
    float least = 1e30f;
    for (int start = 0; start < m; start += THREADS) {
        int index = start + threadIdx.x;
        if (index < m)
            tile[threadIdx.x] = places[index];
        __syncthreads();  // the tile is complete
        int count = min(THREADS, m - start);
        for (int j = 0; j < count; j++) {
            float x = tile[j].x - point.x;
            float y = tile[j].y - point.y;
            least = min(least, x * x + y * y);
        }
        __syncthreads();  // no thread reads it any more
    }
    if (i < n)
        out[i] = least;
}
