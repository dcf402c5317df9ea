// Managed memory has one address for the host and all devices. The kernel is the same wherever the pages are: a load
// from a page that is elsewhere is slower, but the instruction is the same.
//
//   advance   replaces each element with the one `steps` later in a sequence of pseudorandom numbers
//
// The sequence is x -> factor x + summand modulo 2^32. Each input is read once, however many steps follow, so `steps`
// sets how long the kernel computes per byte that it reads.

extern "C" __global__ void advance(const unsigned* in, unsigned* out, int n, unsigned factor, unsigned summand,
                                   int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned x = in[i];
    for (int step = 0; step < steps; step++)
        x = factor * x + summand;
    out[i] = x;
}
