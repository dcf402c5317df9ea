// CUB's own reduction and histogram behind plain C functions: scripts/course_bars.py compiles this to a shared library
// with nvcc and measures them as it measures the course's kernels, in the same process and on the same arrays.
//
// Each returns cudaSuccess (0) or the error. With a null `storage` it only says in `bytes` how much of that it needs.

#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>

extern "C" int cub_sum(void* storage, size_t* bytes, const float* values, float* total, int n)
{
    return cub::DeviceReduce::Sum(storage, *bytes, values, total, n);
}

extern "C" int cub_histogram(void* storage, size_t* bytes, const float* values, unsigned* counts, int bins, int n)
{
    return cub::DeviceHistogram::HistogramEven(storage, *bytes, values, counts, bins + 1, 0.0f, 1.0f, n);
}

extern "C" int cub_version()
{
    return CUB_VERSION;
}
