// Global memory is read and written in 32-byte sectors. A warp that reads 32 adjacent floats touches four sectors. The
// farther apart the floats are, the more of each sector is transferred without being used.
//
//   copy_stride   copies elements 0, stride, 2 * stride, ...: if the stride is at least 8, each has its own sector
//   copy_offset   copies all elements from an offset onwards: a warp that starts inside a sector touches a fifth one

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
