// For each of n half-precision numbers, given as bits, write 1 if it is a NaN, and 0 if it is not.

constexpr int MAGNITUDE = 0x7fff;  // all bits except the sign
constexpr int INFINITE = 0x7c00;

extern "C" __global__ void half_nan(const unsigned short* bits, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = (bits[i] & MAGNITUDE) > INFINITE;
}
