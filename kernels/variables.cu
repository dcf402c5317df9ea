// The kind of a variable determines which threads see it, how long it lives, and what each access costs.
//
//   steps_device     each thread keeps its state in a __device__ array: global memory, read and written in each step
//   steps_dynamic    in dynamic shared memory, whose size is set at launch: up to 48 KiB, or more after opting in
//   steps_static<n>  in a static __shared__ array of n words: at most 48 KiB, which the compiler checks
//   steps_register   in a local variable, which the compiler keeps in a register
//   reverse          a block reverses its part of an array in shared memory, which all its threads see
//   reverse_unset    reads shared memory that no thread of the block has written. Wrong on purpose: the memory contains
//                    the values of an earlier block, or anything else
//   count_threads    adds to a __device__ counter, which keeps its value from one launch to the next
//   line             computes a x + b, where a and b are in a __constant__ array that the host writes
//
// A step of Marsaglia's 32-bit random number generator takes three shifts and three exclusive ors. States in memory are
// volatile, so that the compiler does not keep them in registers. A block has BLOCK threads.

constexpr int BLOCK = 256;
constexpr int MOST = 1 << 20;

__device__ unsigned states[MOST];
__device__ unsigned long long threads_so_far = 1000;
__constant__ float coefficients[2] = {1.0f, 0.0f};

__device__ unsigned next(unsigned state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

__device__ int place()
{
    return blockIdx.x * BLOCK + threadIdx.x;
}

extern "C" __global__ void steps_device(const unsigned* seeds, unsigned* ends, int steps)
{
    volatile unsigned& state = states[place()];
    state = seeds[place()];
    for (int i = 0; i < steps; i++)
        state = next(state);
    ends[place()] = state;
}

extern "C" __global__ void steps_dynamic(const unsigned* seeds, unsigned* ends, int steps)
{
    extern __shared__ unsigned dynamic[];
    volatile unsigned& state = dynamic[threadIdx.x];
    state = seeds[place()];
    for (int i = 0; i < steps; i++)
        state = next(state);
    ends[place()] = state;
}

template <int words>
__global__ void steps_static(const unsigned* seeds, unsigned* ends, int steps)
{
    __shared__ unsigned fixed[words];
    volatile unsigned& state = fixed[threadIdx.x];
    state = seeds[place()];
    for (int i = 0; i < steps; i++)
        state = next(state);
    ends[place()] = state;
}

extern "C" __global__ void steps_register(const unsigned* seeds, unsigned* ends, int steps)
{
    unsigned state = seeds[place()];
    for (int i = 0; i < steps; i++)
        state = next(state);
    ends[place()] = state;
}

extern "C" __global__ void reverse(const unsigned* in, unsigned* out)
{
    __shared__ unsigned part[BLOCK];
    part[threadIdx.x] = in[place()];
    __syncthreads();
    out[place()] = part[BLOCK - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_unset(const unsigned* in, unsigned* out)
{
    __shared__ unsigned part[BLOCK];
    out[place()] = part[BLOCK - 1 - threadIdx.x];
}

extern "C" __global__ void count_threads()
{
    atomicAdd(&threads_so_far, 1ull);
}

extern "C" __global__ void line(const float* x, float* y, int n)
{
    int i = place();
    if (i < n)
        y[i] = coefficients[0] * x[i] + coefficients[1];
}
