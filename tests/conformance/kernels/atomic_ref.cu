// cuda::atomic_ref with its scopes and orders, over global and shared memory and integers, floats and halves
// of eight bytes; message passing by release and acquire.
#include <cuda/atomic>

extern "C" __global__ void atomic_ref(const unsigned* a, unsigned* counters, unsigned long long* wide,
                                      float* floats, unsigned* bins, unsigned* flag, unsigned* message,
                                      unsigned* received) {
    __shared__ unsigned block_bins[10];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned x = a[i];
    if (threadIdx.x < 10) block_bins[threadIdx.x] = 0;
    __syncthreads();
    cuda::atomic_ref<unsigned, cuda::thread_scope_block>(block_bins[x % 10]).fetch_add(1, cuda::memory_order_relaxed);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[0]).fetch_add(x, cuda::memory_order_relaxed);
    cuda::atomic_ref<unsigned, cuda::thread_scope_system>(counters[1]).fetch_max(x);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[2]).fetch_min(x, cuda::memory_order_acq_rel);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[3]).fetch_xor(x, cuda::memory_order_release);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[4]).fetch_or(x & 0xf0f);
    ++cuda::atomic_ref<unsigned, cuda::thread_scope_device>(counters[5]);
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> total(wide[0]);
    total += (unsigned long long)x << 10;
    cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> product(wide[1]);
    unsigned long long seen = product.load(cuda::memory_order_relaxed);
    while (!product.compare_exchange_weak(seen, seen * (x | 1), cuda::memory_order_relaxed)) {}
    cuda::atomic_ref<float, cuda::thread_scope_device>(floats[0]).fetch_add((float)(x & 63) * 0.25f);
    __syncthreads();
    if (threadIdx.x < 10)
        cuda::atomic_ref<unsigned, cuda::thread_scope_device>(bins[threadIdx.x]).fetch_add(block_bins[threadIdx.x]);
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> ready(*flag);
    if (i == 0) {
        for (int k = 0; k < 4; ++k) message[k] = x * 3 + k;
        ready.store(1, cuda::memory_order_release);
    }
    if (threadIdx.x == 32 && blockIdx.x == gridDim.x - 1) {
        while (ready.load(cuda::memory_order_acquire) == 0) {}
        for (int k = 0; k < 4; ++k) received[k] = message[k];
    }
}
