// A launch has a grid of blocks and a block of threads, each with one to three dimensions: kernel<<<grid, block>>>(...)
// takes two numbers or two dim3. The shape decides which threads there are; the kernel decides what each of them does.
//
//   number_threads      every thread writes its number: blocks are counted with x fastest, then y, then z, and so are the
//                       threads of a block; 32 consecutive threads of a block make a warp
//   matrix_add          a thread an element of a matrix: x runs along the row, whose elements are neighbours in memory
//   cool                one step of cooling, n cells by any number of threads: each takes every (number of threads)-th
//   nothing             for launches that are to be refused
//
// cooled is __host__ __device__: one function for the code of both processors, here also computed by the compiler itself.
// stride_over takes what is to be done as a lambda, which captures the kernel's parameters.

__host__ __device__ constexpr float cooled(float temperature)
{
    const float ambient = 20.0f, rate = 0.5f;
    return temperature + rate * (ambient - temperature);
}

static_assert(cooled(42.0f) == 31.0f && cooled(24.0f) == 22.0f && cooled(50.0f) == 35.0f, "half the way to 20");

// Call body(i) for the places i of this thread: all threads of the grid together take each place below n once.
template <class Body>
__device__ void stride_over(unsigned n, Body body)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        body(i);
}

// `numbers` has an element for each thread, laid out as the grid is: a plane for each z, a row for each y.
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

extern "C" __global__ void nothing() {}
