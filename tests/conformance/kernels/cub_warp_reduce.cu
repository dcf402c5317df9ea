// cub::WarpReduce over whole warps and over eight lanes each, for types of one, four and eight bytes and a
// structure, and by segments that start where a flag says.
#include <cub/warp/warp_reduce.cuh>

struct Extent {
    int low;
    double high;
};
struct Joined {
    __device__ Extent operator()(const Extent& x, const Extent& y) const {
        return Extent{x.low < y.low ? x.low : y.low, x.high > y.high ? x.high : y.high};
    }
};
struct Smaller {
    template <class Value>
    __device__ Value operator()(Value x, Value y) const { return x < y ? x : y; }
};

extern "C" __global__ void warp_reduce(const int* a, int* sums, int* eights, double* doubles, int* lows, double* highs,
                                       int* bytes, int* segments) {
    using Whole = cub::WarpReduce<int>;
    using Eight = cub::WarpReduce<int, 8>;
    using Doubles = cub::WarpReduce<double>;
    using Extents = cub::WarpReduce<Extent>;
    using Bytes = cub::WarpReduce<signed char>;
    __shared__ Whole::TempStorage whole[4];
    __shared__ Eight::TempStorage eight[16];
    __shared__ Doubles::TempStorage of_doubles[4];
    __shared__ Extents::TempStorage of_extents[4];
    __shared__ Bytes::TempStorage of_bytes[4];
    const int i = blockIdx.x * 128 + threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int x = a[i];
    const int sum = Whole(whole[warp]).Sum(x);
    const int of_eight = Eight(eight[threadIdx.x / 8]).Sum(x);
    const double total = Doubles(of_doubles[warp]).Sum(x * 0.25);
    const Extent extent = Extents(of_extents[warp]).Reduce(Extent{x, x * 0.5}, Joined());
    const int least = Bytes(of_bytes[warp]).Reduce((signed char)x, Smaller());
    __syncwarp();
    const int of_segment = Whole(whole[warp]).HeadSegmentedSum(x, lane % 7 == 0 || lane == 30);
    if (lane == 0) {
        sums[i / 32] = sum;
        doubles[i / 32] = total;
        lows[i / 32] = extent.low;
        highs[i / 32] = extent.high;
        bytes[i / 32] = least;
    }
    if (threadIdx.x % 8 == 0) eights[i / 8] = of_eight;
    if (lane % 7 == 0 || lane == 30) segments[i] = of_segment;
}
