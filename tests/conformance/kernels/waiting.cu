// Waiting for others: spin locks within a warp and between blocks, blocks that wait for one another, the last
// block that sums up, fences of every scope.

__device__ void lock(unsigned* mutex) {
    while (atomicCAS(mutex, 0u, 1u) != 0u) __nanosleep(20);
    __threadfence();
}
__device__ void unlock(unsigned* mutex) {
    __threadfence();
    atomicExch(mutex, 0u);
}

// Every lane takes the one lock in turn; the sums are not atomic.
extern "C" __global__ void spin_lock(const unsigned* a, unsigned* mutex, volatile unsigned* sums) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    lock(mutex);
    sums[0] = sums[0] + a[i];
    sums[1] = sums[1] + 1;
    sums[2] = sums[2] ^ (a[i] << 3);
    unlock(mutex);
}

// The form with the work inside the loop, one lock for each of four counters in shared memory.
extern "C" __global__ void shared_locks(const unsigned* a, unsigned* out) {
    __shared__ unsigned mutexes[4];
    __shared__ volatile unsigned counters[4];
    const unsigned x = a[blockIdx.x * blockDim.x + threadIdx.x], k = x % 4;
    if (threadIdx.x < 4) { mutexes[threadIdx.x] = 0; counters[threadIdx.x] = 0; }
    __syncthreads();
    bool done = false;
    while (!done) {
        if (atomicCAS(mutexes + k, 0u, 1u) == 0u) {
            counters[k] = counters[k] + x;
            __threadfence_block();
            atomicExch(mutexes + k, 0u);
            done = true;
        }
    }
    __syncthreads();
    if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = counters[threadIdx.x];
}

// Blocks pass a value on, from the last to the first: block b waits for block b + 1.
extern "C" __global__ void relay(volatile unsigned* flags, volatile unsigned* values) {
    const unsigned b = blockIdx.x;
    if (threadIdx.x == 0) {
        unsigned value = 1;
        if (b + 1 < gridDim.x) {
            while (flags[b + 1] == 0) {}
            __threadfence();
            value = values[b + 1];
        }
        values[b] = value * 3 + b;
        __threadfence();
        flags[b] = 1;
    }
}

// A barrier over the whole grid made of one counter, three times.
extern "C" __global__ void grid_barrier(unsigned* arrived, volatile unsigned* values, unsigned* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    unsigned x = i * 7 + 1;
    for (unsigned round = 1; round <= 3; ++round) {
        values[round % 2 * n + i] = x;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(arrived, 1u);
            while (atomicAdd(arrived, 0u) < round * gridDim.x) {}
            __threadfence();
        }
        __syncthreads();
        x = values[round % 2 * n + (i + 37) % n] * 5 + round;
    }
    out[i] = x;
}

// The block that finishes last adds up what all have left.
extern "C" __global__ void last_block(const unsigned* a, unsigned* done, unsigned* partial, unsigned* out) {
    __shared__ unsigned sum;
    __shared__ bool last;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, a[blockIdx.x * blockDim.x + threadIdx.x]);
    __syncthreads();
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last && threadIdx.x == 0) {
        __threadfence();
        unsigned total = 0;
        for (unsigned b = 0; b < gridDim.x; ++b) total += ((volatile unsigned*)partial)[b];
        out[0] = total;
    }
}

// One lane of a warp waits for another lane of the same warp; release and acquire instead of fences.
extern "C" __global__ void within_a_warp(unsigned* flags, unsigned* data, unsigned* out) {
    const int i = threadIdx.x;
    if (i % 2 == 0) {
        unsigned ready;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(ready) : "l"(flags + i + 1) : "memory");
        } while (ready == 0);
        out[i] = data[i + 1] * 2;
    } else {
        data[i] = i * i;
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        asm volatile("fence.sc.sys;" ::: "memory");
        asm volatile("membar.cta;" ::: "memory");
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(flags + i) : "memory");
        out[i] = 5;
    }
}
