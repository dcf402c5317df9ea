// Temporary arrays, allocated and freed in stream order. The result is x + 2 x + ... + steps x, and each term is first
// stored in a temporary array.
//
//   store_multiple   writes a multiple of every element into the temporary array
//   add_to           adds the temporary array to the total
//
// In a stream, a temporary array may be freed right after add_to is queued, before either kernel has run: the free is
// work in the stream too. Another stream does not follow this order unless it waits for an event.

extern "C" __global__ void store_multiple(const unsigned* x, unsigned* term, unsigned factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        term[i] = factor * x[i];
}

extern "C" __global__ void add_to(unsigned* total, const unsigned* term, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        total[i] += term[i];
}
