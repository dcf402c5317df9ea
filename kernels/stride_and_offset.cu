// Memory comes in pieces of 32 bytes. A warp that wants 32 numbers of 4 bytes side by side gets them in four pieces;
// the further apart they lie, the more of every piece is thrown away.
//
//   copy_stride   every stride-th element is copied: at 8 and above, each number costs a piece of its own
//   copy_offset   all elements from an offset on: a warp that starts inside a piece needs a fifth one

extern "C" __global__ void copy_stride(const float* in, float* out, int n, int stride)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[size_t(i) * stride] = in[size_t(i) * stride];
}

extern "C" __global__ void copy_offset(const float* in, float* out, int n, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i + offset] = in[i + offset];
}
