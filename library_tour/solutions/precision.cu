// Compute the discriminants b b - 4 a c of n quadratic equations, accurate to two units in the last place.

extern "C" __global__ void discriminant(const double* a, const double* b, const double* c, double* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double product = __dmul_rn(4 * a[i], c[i]);
        double lost = fma(-4 * a[i], c[i], product);  // the rounded product minus the exact one
        double difference = fma(b[i], b[i], -product);
        out[i] = difference + lost;
    }
}
