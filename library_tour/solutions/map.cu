// Evaluate the polynomial coefficients[0] + coefficients[1] x + coefficients[2] x^2 + ... of `count` coefficients for
// each of n numbers.

extern "C" __global__ void evaluate(const float* x, const float* coefficients, int count, float* values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float number = x[i];
    float value = 0.0f;
    for (int k = count - 1; k >= 0; k--)
        value = value * number + coefficients[k];
    values[i] = value;
}
