// Work for streams: pieces of an array that are copied in, computed and copied out, and kernels that leave room.
//
//   generate   a number takes so many steps of a linear congruential generator, x = a x + c, one after the other. It
//              stays in a register, so that the number of steps says how long a kernel takes beside the copies
//   spin       the same by few blocks, which leave most of the device free for kernels of other streams. With many
//              steps it takes long enough that work which does not wait for it comes first
//
// The kernels know nothing of streams. A stream is the fourth value of a launch, kernel<<<grid, block, 0, stream>>>, and
// copies have one of their own: cudaMemcpyAsync(to, from, bytes, kind, stream).

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

// Threads stride over the numbers, so that a few blocks do for any of them.
extern "C" __global__ void spin(const unsigned* in, unsigned* out, unsigned a, unsigned c, int steps, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = generated(in[i], a, c, steps);
}
