// Evaluate the polynomial coefficients[0] + coefficients[1] x + coefficients[2] x^2 + ..., which has `count`
// coefficients, for each of the n elements of x.

extern "C" __global__ void evaluate(const float* x, const float* coefficients, int count, float* values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float element = x[i];
    float value = 0.0f;
    for (int k = count - 1; k >= 0; k--)
        value = value * element + coefficients[k];
    values[i] = value;
}
