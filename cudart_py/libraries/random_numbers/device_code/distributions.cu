// Distributions that cuRAND does not generate, from its uniform numbers in (0, 1]. Each thread handles one number.

// Exponentially distributed numbers, by inversion. The zero makes -0 a 0.
template <class Real> __global__ void make_exponential(Real* numbers, long long count, double scale)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count)
        numbers[i] = Real(0) - Real(scale) * log(numbers[i]);
}

// Uniform numbers in (low, high].
template <class Real> __global__ void stretch(Real* numbers, long long count, double low, double high)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i < count)
        numbers[i] = Real(low) + Real(high - low) * numbers[i];
}
