// Barriers that functions make for their callers, and what parts of warps do together.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

__device__ __forceinline__ void meet() {
    __syncthreads();  // BUG inlined_barriers
}
__device__ __noinline__ void meet_elsewhere(int* out) {
    __syncthreads();  // BUG called_barriers
    out[threadIdx.x] += 1;
}
extern "C" __global__ void inlined_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        meet();
        out[threadIdx.x] += 1;
    } else {
        out[threadIdx.x] = 2;
        meet();
        out[threadIdx.x] += 2;
    }
}
extern "C" __global__ void called_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        meet_elsewhere(out);
    } else {
        out[threadIdx.x] = 2;
        meet_elsewhere(out);
    }
}
// The second barrier's threads wait while thread 0 is still between the two.
extern "C" __global__ void waits_between_barriers(int* flag, int* out) {
    auto block = cg::this_thread_block();
    block.sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        while (*(volatile int*)flag == 0) {}
        out[0] = 1;
    }
    if (blockIdx.x == 1 && threadIdx.x == 0) atomicExch(flag, 1);
    block.sync();
    out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
extern "C" __global__ void calls_in_turn(int* out, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = 1;
    meet_elsewhere(out);
    if (threadIdx.x < n) out[threadIdx.x] = 1;
    meet_elsewhere(out);
}
