// Reverse n elements, eight per thread.
//
// The result is right, but the lanes of a warp read and write elements that are eight elements apart.

constexpr int EACH = 8;

extern "C" __global__ void reverse(const unsigned* in, unsigned* out, int n)
{
    int first = EACH * (blockIdx.x * blockDim.x + threadIdx.x);
    for (int k = 0; k < EACH; k++) {
        int i = first + k;
        if (i < n)
            out[n - 1 - i] = in[i];
    }
}
