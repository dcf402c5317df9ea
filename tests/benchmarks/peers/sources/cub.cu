// CUB's own reduction, histogram and transform, and Thrust's, through plain C functions: course.py compiles this to a
// shared library with nvcc and measures them as it measures the course's kernels, in the same process and on the same
// arrays.
//
// Each returns cudaSuccess (0) or the error. With a null `storage` it only says in `bytes` how much of that it needs.

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_transform.cuh>
#include <thrust/execution_policy.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/transform.h>
#include <thrust/tuple.h>

extern "C" int cub_sum(void* storage, size_t* bytes, const float* values, float* total, int n)
{
    return cub::DeviceReduce::Sum(storage, *bytes, values, total, n);
}

extern "C" int cub_histogram(void* storage, size_t* bytes, const float* values, unsigned* counts, int bins, int n)
{
    return cub::DeviceHistogram::HistogramEven(storage, *bytes, values, counts, bins + 1, 0.0f, 1.0f, n);
}

struct Cool {
    __device__ float operator()(float temperature) const { return temperature + 0.25f * (20.0f - temperature); }
};

extern "C" int cub_transform(void* storage, size_t* bytes, float* temperatures, int n)
{
    return cub::DeviceTransform::Transform(storage, *bytes, temperatures, temperatures, n, Cool{});
}

// Returns when the device has finished.
extern "C" int thrust_transform(void* storage, size_t* bytes, float* temperatures, int n)
{
    if (storage)
        thrust::transform(thrust::cuda::par, temperatures, temperatures + n, temperatures, Cool{});
    else
        *bytes = 1;
    return cudaGetLastError();
}

// Returns when the work is queued.
extern "C" int thrust_transform_nosync(void* storage, size_t* bytes, float* temperatures, int n)
{
    if (storage)
        thrust::transform(thrust::cuda::par_nosync, temperatures, temperatures + n, temperatures, Cool{});
    else
        *bytes = 1;
    return cudaGetLastError();
}

struct Difference {
    template <class Pair>
    __device__ float operator()(Pair pair) const
    {
        return fabsf(thrust::get<0>(pair) - thrust::get<1>(pair));
    }
};

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

extern "C" int cub_difference(void* storage, size_t* bytes, const float* a, const float* b, float* largest, int n)
{
    auto differences = thrust::make_transform_iterator(thrust::make_zip_iterator(a, b), Difference{});
    return cub::DeviceReduce::Reduce(storage, *bytes, differences, largest, n, Larger{}, 0.0f);
}

extern "C" int cub_version()
{
    return CUB_VERSION;
}
