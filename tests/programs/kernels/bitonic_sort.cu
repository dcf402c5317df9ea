// Sort numbers, a power of two of them, by a bitonic network: runs that rise and fall are merged to longer ones.
//
//   sort_tiles    sorts each 1,024 numbers in shared memory, rising and falling in turn
//   merge_far     one step of a merge whose partners lie 1,024 or more apart, in global memory
//   merge_tiles   the rest of a merge, in shared memory

constexpr int TILE = 1024;

__device__ void order(unsigned& low, unsigned& high, bool rises)
{
    if (low > high == rises) {
        unsigned kept = low;
        low = high;
        high = kept;
    }
}

__device__ void merge_in(unsigned* tile, int distance, unsigned length)
{
    for (; distance > 0; distance /= 2) {
        const int place = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
        const bool rises = (blockIdx.x * TILE + place & length) == 0;
        __syncthreads();
        order(tile[place], tile[place + distance], rises);
    }
    __syncthreads();
}

extern "C" __global__ void sort_tiles(unsigned* keys)
{
    __shared__ unsigned tile[TILE];
    const int t = threadIdx.x;
    keys += blockIdx.x * TILE;
    tile[t] = keys[t];
    tile[t + TILE / 2] = keys[t + TILE / 2];
    for (unsigned length = 2; length <= TILE; length *= 2)
        merge_in(tile, length / 2, length);
    keys[t] = tile[t];
    keys[t + TILE / 2] = tile[t + TILE / 2];
}

extern "C" __global__ void merge_far(unsigned* keys, int distance, unsigned length)
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    const int place = 2 * t - (t & (distance - 1));
    order(keys[place], keys[place + distance], (place & length) == 0);
}

extern "C" __global__ void merge_tiles(unsigned* keys, unsigned length)
{
    __shared__ unsigned tile[TILE];
    const int t = threadIdx.x;
    keys += blockIdx.x * TILE;
    tile[t] = keys[t];
    tile[t + TILE / 2] = keys[t + TILE / 2];
    merge_in(tile, TILE / 2, length);
    keys[t] = tile[t];
    keys[t + TILE / 2] = tile[t + TILE / 2];
}
