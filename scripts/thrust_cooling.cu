// Newton's law of cooling by Thrust's algorithms and vectors, on the host and on the device, beside the stop `cooling`:
//
//     nvcc -std=c++17 -arch=native scripts/thrust_cooling.cu -o thrust_cooling && ./thrust_cooling
//
// The same calls serve both: the execution policy, thrust::host or thrust::device, says where an algorithm runs, and
// the vectors say where its numbers are. The program exits with 1 where a result is wrong. Without a GPU it says so, and
// runs on the host alone.

#include <cstdio>
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

struct Cooling {
    float ambient;
    float part;

    __host__ __device__ float operator()(float temperature) const { return temperature + part * (ambient - temperature); }
};

// The temperature of a place: its number, from 0 up.
struct Place {
    __host__ __device__ float operator()(int i) const { return float(i); }
};

struct Difference {
    template <class Pair>
    __host__ __device__ float operator()(const Pair& pair) const
    {
        float difference = thrust::get<0>(pair) - thrust::get<1>(pair);
        return difference < 0 ? -difference : difference;
    }
};

// Numbers the places, takes a step, and returns how many of the program's expectations are not met.
template <class Vector, class Policy>
int cool(const char* where, const Policy& policy)
{
    const int n = 1003;
    Vector before(n), after(n);
    thrust::tabulate(policy, before.begin(), before.end(), Place{});
    thrust::transform(policy, before.begin(), before.end(), after.begin(), Cooling{20.0f, 0.5f});

    // Vectors copy between host and device by themselves, and so does thrust::copy.
    thrust::host_vector<float> found(n);
    thrust::copy(after.begin(), after.end(), found.begin());
    int wrong = 0;
    for (int i = 0; i < n; i++)
        wrong += found[i] != i + 0.5f * (20 - i);

    // Each step halves the distance from 20, so that the last place, 1002, changes most: by 491.
    auto first = thrust::make_zip_iterator(thrust::make_tuple(before.begin(), after.begin()));
    float most = thrust::transform_reduce(policy, first, first + n, Difference{}, 0.0f, thrust::maximum<float>());
    wrong += most != 491.0f;
    std::printf("%s: 42 becomes %g; the largest change is %g; %d wrong\n", where, found[42], most, wrong);
    return wrong;
}

int main()
{
    int wrong = cool<thrust::host_vector<float>>("host", thrust::host);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0)
        wrong += cool<thrust::device_vector<float>>("device", thrust::device);
    else
        std::printf("device: there is no GPU\n");
    return wrong > 0;
}
