// Global memory is read and written in sectors of 32 bytes. A warp that reads 32 neighbouring floats touches four
// sectors. The further apart the floats lie, the more of each sector is transferred but not used.
//
//   copy_stride   copies elements 0, stride, 2 * stride, ...: from a stride of 8 on, each has a sector of its own
//   copy_offset   copies all elements from an offset on: a warp that begins inside a sector touches a fifth one

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
