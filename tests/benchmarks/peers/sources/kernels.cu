// Five kernels that simulator.py compares with the same in C++ and in OpenCL.
//
//   saxpy       y = a x + y, one element a thread
//   collatz     the steps from a number to 1: a loop whose length differs from thread to thread
//   bodies      the acceleration of each body by all others, from one array of float4
//   transpose   tiles of 32 x 32 through shared memory
//   matmul      tiles of 16 x 16 through shared memory

extern "C" __global__ void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void collatz(int n, int* steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int count = 0;
    for (long long v = i + 1; v != 1; count++)
        v = v & 1 ? 3 * v + 1 : v >> 1;
    steps[i] = count;
}

extern "C" __global__ void bodies(int n, const float4* all, float4* out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = all[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        float4 other = all[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f), s = other.w * r * r * r;
        x += dx * s;
        y += dy * s;
        z += dz * s;
    }
    out[i] = make_float4(x, y, z, 0);
}

extern "C" __global__ void transpose(int n, const float* in, float* out)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void matmul(int n, const float* a, const float* b, float* c)
{
    __shared__ float left[16][16], right[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx;
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        left[ty][tx] = a[row * n + t + tx];
        right[ty][tx] = b[(t + ty) * n + column];
        __syncthreads();
        for (int k = 0; k < 16; k++)
            sum += left[ty][k] * right[k][tx];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
