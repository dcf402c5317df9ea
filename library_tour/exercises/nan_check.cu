// For each of n half-precision numbers, given by their bits, write 1 if it is a NaN, and 0 if it is not.
//
// So far, infinities are taken for NaNs, because all bits of their exponent are set too.

extern "C" __global__ void half_nan(const unsigned short* bits, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = (bits[i] & 0x7c00) == 0x7c00;
}
