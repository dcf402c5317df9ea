// A launch has a grid of blocks and a block of threads, each with one to three dimensions: kernel<<<grid, block>>>(...)
// takes two integers or two dim3 values. The shape determines which threads exist, and the kernel what each one does.
//
//   number_threads   every thread writes its number: blocks are numbered with x fastest, then y, then z, and so are the
//                    threads of a block; 32 consecutive threads of a block form a warp
//   matrix_add       one thread per element of a matrix: x runs along the row, whose elements are adjacent in memory
//   cool             one step of cooling, for n cells and any number of threads, in a grid-stride loop
//   empty_kernel     for launches that will be refused
//
// cooled is __host__ __device__: one function for both processors, here also evaluated at compile time. stride_over
// takes the body of its loop as a lambda, which captures the kernel's parameters.

__host__ __device__ constexpr float cooled(float temperature)
{
    const float ambient = 20.0f, rate = 0.5f;
    return temperature + rate * (ambient - temperature);
}

static_assert(cooled(42.0f) == 31.0f && cooled(24.0f) == 22.0f && cooled(50.0f) == 35.0f, "halfway to 20");

// Call body(i) for this thread's share of the indices below n. All threads of the grid together cover each index once.
template <class Body>
__device__ void stride_over(unsigned n, Body body)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        body(i);
}

// `numbers` has one element per thread, in the layout of the grid: one plane per z, one row per y.
extern "C" __global__ void number_threads(unsigned* numbers)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    unsigned width = gridDim.x * blockDim.x;
    unsigned height = gridDim.y * blockDim.y;

    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    numbers[(z * height + y) * width + x] = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
}

extern "C" __global__ void matrix_add(const float* a, const float* b, float* sum, unsigned rows, unsigned columns)
{
    unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns) {
        size_t i = size_t(row) * columns + column;
        sum[i] = a[i] + b[i];
    }
}

extern "C" __global__ void cool(const float* before, float* after, unsigned n)
{
    stride_over(n, [=](unsigned i) { after[i] = cooled(before[i]); });
}

extern "C" __global__ void empty_kernel() {}
