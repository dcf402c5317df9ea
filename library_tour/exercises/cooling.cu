// Add up the differences between adjacent elements: the sum of |a[i + 1] - a[i]|. The total starts at zero.
//
// The result is right, but the differences are written to `scratch` and then read back.

// Add up n elements of anything that can be indexed, in a grid-stride loop.
template <class Input>
__device__ void add(Input in, float* total, int n)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    atomicAdd(total, sum);
}

extern "C" __global__ void variation(const float* a, float* scratch, float* total, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n - 1; i += gridDim.x * blockDim.x)
        scratch[i] = fabsf(a[i + 1] - a[i]);
    add(scratch, total, n - 1);
}
