// Poisson's equation between a transform and its inverse: a division in Fourier space.
//
//   poisson   divides each element of a spectrum by -(kx^2 + ky^2), and by the number of points, so that the
//             transforms need not. The mean, which the equation leaves undetermined, becomes zero
//
// The spectrum belongs to real elements on a square with sides of length 2 pi. It has the first n / 2 + 1 of n columns.
//
//   multiply  multiplies each row of a spectrum by the response of a filter, for n waves per row
//
//   window    is a callback, which a transform of rows of n elements calls for each element that it loads. It multiplies
//             the element by sin^2(pi k / n), where k is its place in the row

// cuFFT links only code without kernels.
#ifndef ONLY_CALLBACKS

extern "C" __global__ void poisson(double2* spectrum, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int columns = n / 2 + 1;
    if (row >= n || column >= columns)
        return;
    double kx = column;
    double ky = row <= n / 2 ? row : row - n;
    double square = kx * kx + ky * ky;
    double factor = square > 0.0 ? -1.0 / (square * n * n) : 0.0;
    double2* element = spectrum + size_t(row) * columns + column;
    element->x *= factor;
    element->y *= factor;
}

extern "C" __global__ void multiply(float2* spectrum, const float2* response, int n, long long count)
{
    long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    if (i >= count)
        return;
    float2 element = spectrum[i], factor = response[i % n];
    spectrum[i] = make_float2(element.x * factor.x - element.y * factor.y, element.x * factor.y + element.y * factor.x);
}

#endif

__device__ double2 window(void* x, unsigned long long i, void* data, void*)
{
    int n = *static_cast<int*>(data);
    double wave = sinpi(static_cast<double>(i % n) / n);
    double2 element = static_cast<double2*>(x)[i];
    return make_double2(wave * wave * element.x, wave * wave * element.y);
}
