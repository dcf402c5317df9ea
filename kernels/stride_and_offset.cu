// Global memory is read and written in sectors of 32 bytes. A warp that reads 32 neighbouring floats touches four
// sectors; the further apart the floats lie, the larger the part of each sector that is transferred and not used.
//
//   copy_stride   copies every stride-th element: from a stride of 8 on, each float lies in a sector of its own
//   copy_offset   copies all elements from an offset on: a warp that starts inside a sector touches a fifth one

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
