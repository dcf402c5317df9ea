// Multiply n elements of x by a factor, from index `offset` on, with warps that begin at the start of a sector.

constexpr int IN_SECTOR = 32 / sizeof(float);

extern "C" __global__ void scale(float* x, float factor, int offset, int n)
{
    int begin = offset / IN_SECTOR * IN_SECTOR;
    int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= offset && i < offset + n)
        x[i] *= factor;
}
