// Evaluate the polynomial coefficients[0] + coefficients[1] x + coefficients[2] x^2 + ... of `count` coefficients for
// each of n numbers.
//
// The result is right, but in every pass of the loop a number and its value are loaded from memory, and the value is
// stored again.

extern "C" __global__ void evaluate(const float* x, const float* coefficients, int count, float* values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    values[i] = 0.0f;
    for (int k = count - 1; k >= 0; k--)
        values[i] = values[i] * x[i] + coefficients[k];
}
