// Copies by cp.async, and functions that tell the last block, the threads of the last warp, and the last thread.
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT_ALL asm volatile("cp.async.wait_all;" ::: "memory")
static __device__ void copy(void* to, const void* from) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(from) : "memory");
}
__device__ bool last_block(int* count) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    bool is_last = last;
    __syncthreads();
    return is_last;
}
__device__ bool last_warp(int* count) {
    int before = 0;
    if (threadIdx.x % 32 == 0) before = atomicAdd(count, 1);
    return __shfl_sync(-1u, before, 0) == gridDim.x * blockDim.x / 32 - 1;
}
__device__ bool last_thread(int* count) { return atomicAdd(count, 1) == gridDim.x * blockDim.x - 1; }
