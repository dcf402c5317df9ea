// Atomics of block scope, for synchronisation.cu.
#include <cuda/atomic>
using OfBlock = cuda::atomic_ref<int, cuda::thread_scope_block>;
using OfDevice = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ bool first() { return threadIdx.x == 0; }

// Not extern "C", because the types would then take a second run of the compiler's front end.
#define KERNEL(NAME) __global__ void NAME(int* x, int* y)
// Several blocks at one word, at least one with block scope.
KERNEL(adds) { atomicAdd_block(x, 1); }
KERNEL(results) { y[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd_block(x, 1); }
KERNEL(one_thread_each) { if (first()) atomicExch_block(x, blockIdx.x + 1); }
KERNEL(swaps) { atomicCAS_block(x, threadIdx.x, blockIdx.x); }
KERNEL(references) { OfBlock(*x).fetch_add(1, cuda::memory_order_relaxed); }
KERNEL(stores) { if (first()) OfBlock(*x).store(blockIdx.x + 7, cuda::memory_order_relaxed); }
KERNEL(mixed) { if (blockIdx.x % 2) atomicAdd(x, 1); else atomicAdd_block(x, 1); }
KERNEL(mixed_the_other_way) { if (blockIdx.x % 2) atomicAdd_block(x, 1); else atomicAdd(x, 1); }
KERNEL(mixed_references) {
    if (blockIdx.x == 0) OfBlock(*x).fetch_add(1, cuda::memory_order_relaxed);
    else OfDevice(*x).fetch_add(1, cuda::memory_order_relaxed);
}
KERNEL(block_then_device) { atomicAdd_block(x, 1); __syncthreads(); if (first()) atomicAdd(x, 1); }
KERNEL(loads) {
    if (blockIdx.x == 0 && first()) y[0] = OfBlock(*x).load(cuda::memory_order_relaxed);
    else if (first()) atomicAdd(x, 1);
}
KERNEL(scattered) { atomicAdd_block(&x[(threadIdx.x * 7 + blockIdx.x) % 64], 1); }
// The update with which block 1 races is not the last one before, which is its own.
KERNEL(updated_before) {
    int i = threadIdx.x;
    if (blockIdx.x == 0) atomicAdd(&x[i], 1);
    __syncthreads();
    if (blockIdx.x == 1) atomicAdd(&x[i], 1);
    __syncthreads();
    if (blockIdx.x == 1) atomicAdd_block(&x[i], 1);
}
KERNEL(updated_before_by_one_thread) {
    if (blockIdx.x == 0 && first()) atomicAdd(x, 1);
    __syncthreads();
    if (blockIdx.x == 1 && first()) atomicAdd(x, 1);
    __syncthreads();
    if (blockIdx.x == 1 && first()) atomicAdd_block(x, 1);
}
// The same where it is right.
KERNEL(device_adds) { atomicAdd(x, 1); }
KERNEL(system_adds) { atomicAdd_system(x, 1); }
KERNEL(device_and_system) { if (blockIdx.x % 2) atomicAdd(x, 1); else atomicAdd_system(x, 1); }
KERNEL(own_words) { atomicAdd_block(&x[blockIdx.x], 1); }
KERNEL(own_references) { OfBlock(x[blockIdx.x]).fetch_add(1, cuda::memory_order_relaxed); }
KERNEL(own_words_of_both_scopes) { atomicAdd_block(&x[blockIdx.x], 1); atomicAdd(&x[blockIdx.x], 1); }
KERNEL(own_loads) {
    OfBlock mine(x[blockIdx.x]);
    if (first()) mine.store(1, cuda::memory_order_relaxed);
    y[blockIdx.x * blockDim.x + threadIdx.x] = mine.load(cuda::memory_order_relaxed);
}
KERNEL(shared) {
    __shared__ int sum;
    if (first()) sum = 0;
    __syncthreads();
    atomicAdd_block(&sum, 1);
    OfBlock(sum).fetch_add(1, cuda::memory_order_relaxed);
    __syncthreads();
    if (first()) y[blockIdx.x] = sum;
}
KERNEL(handed_on) {
    // Each block adds when the block before it has published that it is done.
    if (first()) while (atomicAdd(y, 0) != blockIdx.x) __nanosleep(1000);
    __threadfence();
    __syncthreads();
    atomicAdd_block(x, 1);
    __threadfence();
    __syncthreads();
    if (first()) atomicAdd(y, 1);
}
KERNEL(last_block_sums) {
    __shared__ bool last;
    atomicAdd_block(&x[blockIdx.x], 1);
    __threadfence();
    __syncthreads();
    if (first()) last = atomicAdd(y, 1) == gridDim.x - 1;
    __syncthreads();
    __threadfence();
    if (last) atomicAdd_block(&x[threadIdx.x % gridDim.x], 1);
}
