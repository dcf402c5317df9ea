// Asynchronous copies from global to shared memory: cp.async of 4, 8 and 16 bytes, shorter sources filled up
// with zeros, groups waited for one after another, and mbarriers, alone and with copies that arrive on them.
#include "rows.cuh"

#define ROW(name, value) PUT(value);

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

extern "C" __global__ void async_copies(const unsigned* a, unsigned* out, int n) {
    LANE
    __shared__ __align__(16) unsigned words[512];
    const int t = threadIdx.x;
    for (int k = 0; k < 4; ++k) words[t + 128 * k] = 0xeeeeeeee;
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(words + t)), "l"(a + n - 1 - i) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    ROW("cp.async of 4 bytes", words[(t + 1) % 128])
    __syncthreads();
    if (t < 64)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared_address(words + 2 * t)), "l"(a + 2 * t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (t < 32)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(words + 128 + 4 * t)), "l"(a + 4 * t) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (t < 32)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(words + 256 + 4 * t)),
                     "l"(a + 4 * t), "r"(t % 5 * 4 % 17)
                     : "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(words + 384 + t)), "l"(a + t),
                 "r"(t % 3)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    ROW("cp.async of 8 bytes", words[t]) ROW("cp.async of 16 bytes", words[128 + t])
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    ROW("cp.async of 16 bytes, shorter source", words[256 + t]) ROW("cp.async of 4 bytes, shorter source", words[384 + t])
}

// Phases of a barrier in shared memory: every lane arrives, waits for the phase, reads a neighbour's word.
extern "C" __global__ void barriers_in_memory(const unsigned* a, unsigned* out, int n) {
    LANE
    __shared__ __align__(8) unsigned long long barrier[2];
    __shared__ unsigned words[128];
    const int t = threadIdx.x;
    const unsigned first = shared_address(barrier), second = shared_address(barrier + 1);
    if (t == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(first) : "memory");
        asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(second) : "memory");
    }
    __syncthreads();
    unsigned x = a[i];
    for (unsigned phase = 0; phase < 3; ++phase) {
        words[t] = x;
        unsigned long long state;
        asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(first) : "memory");
        unsigned done = 0;
        while (!done)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                         : "=r"(done)
                         : "r"(first), "l"(state)
                         : "memory");
        x = words[(t + 1 + phase) % 128] * 3 + phase;
        __syncthreads();
    }
    ROW("mbarrier.arrive and test_wait", x)
    // Half of the block produces, the other half waits for the phase's parity.
    unsigned r = 0;
    for (unsigned phase = 0; phase < 2; ++phase) {
        if (t < 64) {
            words[t] = a[i] + phase;
            asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(second) : "memory");
        } else {
            unsigned done = 0;
            while (!done)
                asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                             : "=r"(done)
                             : "r"(second), "r"(phase)
                             : "memory");
            r = r * 5 + words[t - 64];
        }
        __syncthreads();
    }
    ROW("mbarrier.try_wait.parity", r)
    __syncthreads();
    if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(first) : "memory");
}

// Copies that arrive on a barrier when they are done.
extern "C" __global__ void arriving_copies(const unsigned* a, unsigned* out, int n) {
    LANE
    __shared__ __align__(8) unsigned long long barrier;
    __shared__ __align__(16) unsigned words[128];
    const int t = threadIdx.x;
    const unsigned address = shared_address(&barrier);
    if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(address) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(words + t)), "l"(a + (i * 5) % n) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address) : "memory");
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(address)
                     : "memory");
    ROW("cp.async.mbarrier.arrive", words[127 - t])
}
