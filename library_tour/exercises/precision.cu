// Compute the discriminants b b - 4 a c of n quadratic equations, accurate to two units in the last place.
//
// For now, 4 a c is rounded before it is subtracted. If b b is almost equal to it, little but rounding error remains.

extern "C" __global__ void discriminant(const double* a, const double* b, const double* c, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = b[i] * b[i] - 4 * a[i] * c[i];
}
