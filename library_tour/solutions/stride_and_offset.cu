// Multiply n elements of x by a factor, starting at index `offset`. Each warp starts at a sector boundary.

constexpr int IN_SECTOR = 32 / sizeof(float);

extern "C" __global__ void scale(float* x, float factor, int offset, int n)
{
    int begin = offset / IN_SECTOR * IN_SECTOR;
    int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= offset && i < offset + n)
        x[i] *= factor;
}
