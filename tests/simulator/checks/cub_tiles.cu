// The partial tile of CUB's DeviceRadixSortSingleTileKernel: nobody loads the values of its padding.
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
extern "C" __global__ void sort(const unsigned* keys_in, unsigned* keys_out, const unsigned* values_in,
                                unsigned* values_out, int n) {
    typedef cub::BlockRadixSort<unsigned, 64, 4, unsigned, 6> Sort;
    typedef cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE> Load;
    __shared__ union { typename Sort::TempStorage sort; typename Load::TempStorage load; } storage;
    unsigned keys[4], values[4];
    Load(storage.load).Load(keys_in, keys, n, 0xffffffffu);
    __syncthreads();
    Load(storage.load).Load(values_in, values, n);
    __syncthreads();
    Sort(storage.sort).SortBlockedToStriped(keys, values, 0, 8);
    for (int k = 0; k < 4; k++) {
        int place = k * 64 + threadIdx.x;
        if (place < n) { keys_out[place] = keys[k]; values_out[place] = values[k]; }
    }
}
extern "C" __global__ void scan(unsigned* out, const unsigned* in, int n) {
    typedef cub::BlockLoad<unsigned, 64, 4, cub::BLOCK_LOAD_TRANSPOSE> Load;
    typedef cub::BlockStore<unsigned, 64, 4, cub::BLOCK_STORE_TRANSPOSE> Store;
    typedef cub::BlockScan<unsigned, 64> Scan;
    __shared__ union { Load::TempStorage load; Store::TempStorage store; Scan::TempStorage scan; } storage;
    unsigned values[4];
    Load(storage.load).Load(in, values, n);
    __syncthreads();
    Scan(storage.scan).ExclusiveSum(values, values);
    __syncthreads();
    Store(storage.store).Store(out, values, n);
}
extern "C" __global__ void total(unsigned* out, const unsigned* in, int n) {
    __shared__ cub::WarpReduce<unsigned>::TempStorage storage;
    unsigned value;
    if (threadIdx.x < n) value = in[threadIdx.x];
    unsigned sum = cub::WarpReduce<unsigned>(storage).Sum(value, n);
    if (threadIdx.x == 0) *out = sum;
}
