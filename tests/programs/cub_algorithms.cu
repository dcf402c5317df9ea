// Algorithms for whole arrays, made of CUB's and Thrust's parts that every version of their headers has:
//
//   sort_tiles, merge_tiles   pairs of keys and values: a radix sort of each tile, and merges of sorted runs
//   start_scan, scan          sums of all elements so far, in a single pass: blocks look back at those before them
//   dot                       a dot product over iterators that pair and multiply; the last block adds the blocks' sums

#include <cub/agent/single_pass_scan_operators.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cuda/atomic>
#include <cuda/std/functional>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/tuple.h>

constexpr int THREADS = 64, ITEMS = 4, TILE = THREADS * ITEMS;

extern "C" __global__ void __launch_bounds__(THREADS)
sort_tiles(const unsigned* keys_in, const int* values_in, unsigned* keys_out, int* values_out, int n)
{
    using Keys = cub::BlockLoad<unsigned, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using Values = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using Sort = cub::BlockRadixSort<unsigned, THREADS, ITEMS, int>;
    __shared__ union {
        typename Keys::TempStorage keys;
        typename Values::TempStorage values;
        typename Sort::TempStorage sort;
    } shared;
    unsigned keys[ITEMS];
    int values[ITEMS], start = blockIdx.x * TILE;
    Keys(shared.keys).Load(keys_in + start, keys, n - start, ~0u);
    __syncthreads();
    Values(shared.values).Load(values_in + start, values, n - start, -1);
    __syncthreads();
    Sort(shared.sort).SortBlockedToStriped(keys, values);
    cub::StoreDirectStriped<THREADS>(threadIdx.x, keys_out + start, keys, n - start);
    cub::StoreDirectStriped<THREADS>(threadIdx.x, values_out + start, values, n - start);
}

// Each element of two neighbouring runs finds its place by how many of the other run come before it.
extern "C" __global__ void
merge_tiles(const unsigned* keys_in, const int* values_in, unsigned* keys_out, int* values_out, int run, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int first = i / (2 * run) * (2 * run), middle = cuda::std::min(first + run, n);
    bool in_first = i < middle;
    int low = in_first ? middle : first, high = in_first ? cuda::std::min(first + 2 * run, n) : middle, start = low;
    unsigned key = keys_in[i];
    while (low < high) {
        int half = (low + high) / 2;
        if (in_first ? keys_in[half] < key : keys_in[half] <= key)
            low = half + 1;
        else
            high = half;
    }
    int place = i - (in_first ? 0 : run) + (low - start);
    keys_out[place] = key;
    values_out[place] = values_in[i];
}

using State = cub::ScanTileState<int>;

extern "C" __global__ void start_scan(char* storage, int tiles)
{
    State state;
    state.Init(tiles, storage, 0);
    state.InitializeStatus(tiles);
}

extern "C" __global__ void __launch_bounds__(THREADS) scan(const int* in, int* out, int n, char* storage, int tiles)
{
    using Load = cub::BlockLoad<int, THREADS, ITEMS, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<int, THREADS, ITEMS, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    using Scan = cub::BlockScan<int, THREADS>;
    using Prefix = cub::TilePrefixCallbackOp<int, cuda::std::plus<>, State>;
    __shared__ union {
        typename Load::TempStorage load;
        typename Store::TempStorage store;
        struct {
            typename Scan::TempStorage scan;
            typename Prefix::TempStorage prefix;
        } both;
    } shared;
    State state;
    state.Init(tiles, storage, 0);
    int tile = blockIdx.x, start = tile * TILE, items[ITEMS];
    Load(shared.load).Load(in + start, items, n - start, 0);
    __syncthreads();
    if (tile == 0) {
        int sum;
        Scan(shared.both.scan).InclusiveSum(items, items, sum);
        if (threadIdx.x == 0)
            state.SetInclusive(0, sum);
    } else {
        Prefix prefix(state, shared.both.prefix, cuda::std::plus<>{}, tile);
        Scan(shared.both.scan).InclusiveSum(items, items, prefix);
    }
    __syncthreads();
    Store(shared.store).Store(out + start, items, n - start);
}

struct Product {
    __device__ long long operator()(const thrust::tuple<int, int>& pair) const
    {
        return static_cast<long long>(thrust::get<0>(pair)) * thrust::get<1>(pair);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
dot(const int* a, const int* b, long long* sums, unsigned* ended, long long* out, int n)
{
    using Reduce = cub::BlockReduce<long long, THREADS>;
    __shared__ typename Reduce::TempStorage shared;
    __shared__ bool last;
    auto products = thrust::make_transform_iterator(thrust::make_zip_iterator(thrust::make_tuple(a, b)), Product{});
    long long sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        sum += products[i];
    sum = Reduce(shared).Sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        cuda::atomic_ref<unsigned, cuda::thread_scope_device> count(*ended);
        last = count.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    sum = Reduce(shared).Sum(threadIdx.x < gridDim.x ? sums[threadIdx.x] : 0);
    if (threadIdx.x == 0) {
        *out = sum;
        *ended = 0;
    }
}
