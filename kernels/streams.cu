// Work for streams: pieces of an array that are copied in, processed and copied out, and kernels that run side by side.
//
//   generate   each element goes through `steps` steps of a linear congruential generator, x = a x + c. It stays in a
//              register, so the number of steps sets how long the kernel takes compared with the copies
//   spin       the same steps with few blocks, which leave most of the device free for kernels in other streams. With
//              many steps it takes so long that work that does not wait for it finishes first
//
// The kernels do not depend on streams. A launch takes its stream as the fourth value, as in kernel<<<grid, block, 0,
// stream>>>. A copy takes it as the last argument: cudaMemcpyAsync(to, from, bytes, kind, stream).

__device__ unsigned generated(unsigned x, unsigned a, unsigned c, int steps)
{
    for (int step = 0; step < steps; step++)
        x = a * x + c;
    return x;
}

extern "C" __global__ void generate(unsigned* numbers, unsigned a, unsigned c, int steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        numbers[i] = generated(numbers[i], a, c, steps);
}

// A grid-stride loop, so that a few blocks can process any number of elements.
extern "C" __global__ void spin(const unsigned* in, unsigned* out, unsigned a, unsigned c, int steps, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = generated(in[i], a, c, steps);
}
