// Multiply n elements of x by a factor, starting at index `offset`. Each warp should start at a sector boundary.
//
// The result is right, but with most offsets every warp starts inside a sector and touches a fifth one.

extern "C" __global__ void scale(float* x, float factor, int offset, int n)
{
    int i = offset + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < offset + n)
        x[i] *= factor;
}
