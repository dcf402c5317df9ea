// Add up the differences between adjacent elements: the sum of |a[i + 1] - a[i]|. The total starts at zero.

// Add up n elements of anything that can be indexed, in a grid-stride loop.
template <class Input>
__device__ void add(Input in, float* total, int n)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += in[i];
    atomicAdd(total, sum);
}

struct Differences {
    const float* a;

    __device__ float operator[](int i) const { return fabsf(a[i + 1] - a[i]); }
};

extern "C" __global__ void variation(const float* a, float*, float* total, int n)
{
    add(Differences{a}, total, n - 1);
}
