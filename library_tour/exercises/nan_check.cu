// Tell for each of n numbers in half precision, which are given by their bits, whether it is a NaN: 1, or 0 if it is not.
//
// So far, infinities are taken for NaNs, since all bits of their exponent are set, too.

extern "C" __global__ void half_nan(const unsigned short* bits, int* found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = (bits[i] & 0x7c00) == 0x7c00;
}
