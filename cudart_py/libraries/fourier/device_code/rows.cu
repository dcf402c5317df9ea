// A kernel that transforms rows of contiguous elements with a device function of cuFFTDx, and calls the callbacks of the
// transform as it loads and stores them. The macros describe that function: its name, the length of a row, the threads
// for a row, the rows of a block, the elements that each thread keeps in registers, and the distance between these.
// FFT_LOAD and FFT_STORE are the names of the callbacks, where there are any.

extern "C" __device__ void FFT_EXECUTE(float2* elements, float2* shared);

#ifdef FFT_LOAD
__device__ float2 FFT_LOAD(void* x, unsigned long long i, void* data, void* shared);
#define LOAD_ELEMENT(i) FFT_LOAD(source, i, load_data, nullptr)
#else
#define LOAD_ELEMENT(i) static_cast<const float2*>(source)[i]
#endif

#ifdef FFT_STORE
__device__ void FFT_STORE(void* out, unsigned long long i, float2 element, void* data, void* shared);
#define STORE_ELEMENT(i, element) FFT_STORE(target, i, element, store_data, nullptr)
#else
#define STORE_ELEMENT(i, element) static_cast<float2*>(target)[i] = make_float2(factor * element.x, factor * element.y)
#endif

// The last elements of some threads can be outside of a row.
#define IS_INSIDE(e) (FFT_THREADS * FFT_ELEMENTS == FFT_LENGTH || threadIdx.x + e * FFT_STRIDE < FFT_LENGTH)

// The distances are between the beginnings of rows, in elements. All rows of a block take part in the transform, even
// those past the last row, because its threads wait for each other.
extern "C" __global__ void __launch_bounds__(FFT_THREADS * FFT_ROWS)
    cudart_py_rows(void* source, long long distance, void* target, long long target_distance, long long rows,
                   float factor, void* load_data, void* store_data)
{
    extern __shared__ float2 shared[];
    float2 elements[FFT_ELEMENTS] = {};
    long long row = blockIdx.x * static_cast<long long>(FFT_ROWS) + threadIdx.y;

    // One condition for all elements of a thread, so that it can wait for several loads at once.
    if (row < rows) {
        long long first = row * distance + threadIdx.x;
#pragma unroll
        for (int e = 0; e < FFT_ELEMENTS; ++e)
            if (IS_INSIDE(e))
                elements[e] = LOAD_ELEMENT(first + e * FFT_STRIDE);
    }
    FFT_EXECUTE(elements, shared);
    if (row < rows) {
        long long first = row * target_distance + threadIdx.x;
#pragma unroll
        for (int e = 0; e < FFT_ELEMENTS; ++e)
            if (IS_INSIDE(e))
                STORE_ELEMENT(first + e * FFT_STRIDE, elements[e]);
    }
}
