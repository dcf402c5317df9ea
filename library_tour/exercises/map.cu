// Evaluate the polynomial coefficients[0] + coefficients[1] x + coefficients[2] x^2 + ..., which has `count`
// coefficients, for each of the n elements of x.
//
// The result is right, but every pass of the loop loads an element and its value from memory, and stores the value.

extern "C" __global__ void evaluate(const float* x, const float* coefficients, int count, float* values, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    values[i] = 0.0f;
    for (int k = count - 1; k >= 0; k--)
        values[i] = values[i] * x[i] + coefficients[k];
}
