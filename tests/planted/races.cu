// Races in shared and global memory, down to single bytes, and copies that nothing waits for; and what barriers,
// fences and atomics put in order.
extern "C" __global__ void no_barrier(float* out, const float* in) {
    __shared__ float tile[256];
    tile[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = tile[255 - threadIdx.x];  // BUG no_barrier
}
extern "C" __global__ void loop_without_second_barrier(float* out, const float* in, int n) {
    __shared__ float tile[64];
    float sum = 0;
    for (int i = 0; i < n; i++) {
        tile[threadIdx.x] = in[i * 64 + threadIdx.x];  // BUG loop_without_second_barrier
        __syncthreads();
        sum += tile[63 - threadIdx.x];
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void histogram_read_too_early(int* out, const int* in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 31], 1);
    if (threadIdx.x < 32) out[threadIdx.x] = bins[threadIdx.x];  // BUG histogram_read_too_early
}
extern "C" __global__ void warp_without_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG warp_without_sync
}
extern "C" __global__ void neighbour_block(float* x) {
    int i = blockIdx.x * 64 + threadIdx.x;
    float left = x[i == 0 ? 0 : i - 1];
    x[i] = left + 1;  // BUG neighbour_block
}
extern "C" __global__ void same_place(int* out) {
    out[threadIdx.x] = blockIdx.x;  // BUG same_place
}
extern "C" __global__ void same_instruction(int* out) {
    out[threadIdx.x / 2] = threadIdx.x;  // BUG same_instruction
}
extern "C" __global__ void counter_without_atomic(int* counter) {
    counter[0] = counter[0] + 1;  // BUG counter_without_atomic
}

template <bool FENCE> __device__ void last_block(float* out, float* partial, const float* in, unsigned* count) {
    __shared__ float sums[64];
    __shared__ bool last;
    sums[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) {
        if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sums[0];
        if (FENCE) __threadfence();
        last = atomicInc(count, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (int i = threadIdx.x; i < gridDim.x; i += 64) sum += partial[i];  // BUG last_block_without_fence
        sums[threadIdx.x] = sum;
        __syncthreads();
        for (int s = 32; s > 0; s /= 2) {
            if (threadIdx.x < s) sums[threadIdx.x] += sums[threadIdx.x + s];
            __syncthreads();
        }
        if (threadIdx.x == 0) *out = sums[0];
    }
}
extern "C" __global__ void last_block_without_fence(float* out, float* partial, const float* in, unsigned* count) {
    last_block<false>(out, partial, in, count);
}
extern "C" __global__ void last_block_reduction(float* out, float* partial, const float* in, unsigned* count) {
    last_block<true>(out, partial, in, count);
}
extern "C" __global__ void spin_lock(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        __threadfence();
        *total = *total + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}
extern "C" __global__ void lock_without_fence(int* lock, int* total) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0, 1) != 0) {}
        *total = *total + 1;  // BUG lock_without_fence
        atomicExch(lock, 0);
    }
}
extern "C" __global__ void no_grid_sync(float* a, float* b, int n, int steps) {
    for (int step = 0; step < steps; step++) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        b[i] = a[i] + a[(i + 1) % n] + a[(i + n - 1) % n];  // BUG no_grid_sync
        float* t = a; a = b; b = t;
    }
}
extern "C" __global__ void flag(int* flag, int* data, int* out) {
    if (blockIdx.x == 0) {
        if (threadIdx.x == 0) { data[0] = 7; __threadfence(); *(volatile int*)flag = 1; }
    } else if (threadIdx.x == 0) {
        while (*(volatile int*)flag == 0) {}
        __threadfence();
        out[0] = data[0];
    }
}
extern "C" __global__ void histogram(int* out, const int* in) {
    __shared__ int bins[32];
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&bins[in[threadIdx.x] & 31], 1);
    __syncthreads();
    if (threadIdx.x < 32) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}
extern "C" __global__ void warp_sync(int* out) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncwarp();
    out[threadIdx.x] = s[threadIdx.x ^ 1];
}
extern "C" __global__ void maximum_by_swapping(unsigned long long* out, const unsigned long long* in) {
    unsigned long long value = in[blockIdx.x * blockDim.x + threadIdx.x], old = *out, seen;
    while (old < value) {
        seen = atomicCAS(out, old, value);
        if (seen == old) break;
        old = seen;
    }
}
extern "C" __global__ void same_value(int* found, const int* in) {
    if (in[blockIdx.x * blockDim.x + threadIdx.x] == 5) *found = 1;
}
extern "C" __global__ void named_barriers(int* out) {
    __shared__ int s[32];
    if (threadIdx.x < 32) {
        s[threadIdx.x] = threadIdx.x;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x - 32] = s[63 - threadIdx.x];
    }
}

extern "C" __global__ void bytes_without_barrier(unsigned char* out) {
    __shared__ unsigned char s[256];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[255 - threadIdx.x];  // BUG bytes_without_barrier
}
extern "C" __global__ void shorts_of_neighbours(unsigned short* x) {
    int i = blockIdx.x * 64 + threadIdx.x;
    unsigned short left = x[i == 0 ? 0 : i - 1];
    x[i] = left + 1;  // BUG shorts_of_neighbours
}
extern "C" __global__ void byte_of_a_word(unsigned* words) {
    if (blockIdx.x == 0)
        words[threadIdx.x] = 0x01020304;  // BUG byte_of_a_word
    else
        ((unsigned char*)words)[threadIdx.x * 4 + 2] = 9;  // BUG byte_of_a_word
}
extern "C" __global__ void same_byte(unsigned char* out) {
    out[threadIdx.x / 3] = threadIdx.x;  // BUG same_byte
}
extern "C" __global__ void bytes_side_by_side(unsigned char* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void bytes_of_a_word(unsigned char* out) {
    __shared__ unsigned char s[256];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    unsigned short pair = *(unsigned short*)(s + (threadIdx.x & ~1));
    out[blockIdx.x * 256 + threadIdx.x] = pair >> 8 * (threadIdx.x & 1);
}

extern "C" __global__ void produce(float* x, float value) {
    x[blockIdx.x * blockDim.x + threadIdx.x] = value;  // BUG overwritten
}
extern "C" __global__ void consume(float* __restrict__ out, const float* __restrict__ x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] * 2;  // BUG consumed_too_early
}
extern "C" __global__ void add_to(int* total) { atomicAdd(total, 1); }

__device__ void copy_async(float* to, const float* from) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(place), "l"(from) : "memory");
}
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")

extern "C" __global__ void copy_not_waited_for(float* out, const float* in) {
    __shared__ float s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);
    COMMIT;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x];  // BUG copy_not_waited_for
}
extern "C" __global__ void copy_waited_for_too_little(float* out, const float* in) {
    __shared__ float s[2][64];
    for (int k = 0; k < 2; k++) {
        copy_async(&s[k][threadIdx.x], &in[k * 64 + threadIdx.x]);
        COMMIT;
    }
    WAIT(1);
    __syncthreads();
    float first = s[0][63 - threadIdx.x];
    out[threadIdx.x] = first + s[1][63 - threadIdx.x];  // BUG copy_waited_for_too_little
}
extern "C" __global__ void copy_waited_for_behind_the_barrier(float* out, const float* in) {
    __shared__ float s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);
    COMMIT;
    __syncthreads();
    WAIT(0);
    out[threadIdx.x] = s[63 - threadIdx.x];  // BUG copy_waited_for_behind_the_barrier
}
extern "C" __global__ void pipelined_copies(float* out, const float* in, int n) {
    __shared__ float s[2][64];
    float sum = 0;
    copy_async(&s[0][threadIdx.x], &in[threadIdx.x]);
    COMMIT;
    for (int k = 0; k < n; k++) {
        if (k + 1 < n) copy_async(&s[(k + 1) & 1][threadIdx.x], &in[(k + 1) * 64 + threadIdx.x]);
        COMMIT;
        WAIT(1);
        __syncthreads();
        sum += s[k & 1][63 - threadIdx.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void own_copy(float* out, const float* in) {
    __shared__ float s[64];
    copy_async(&s[threadIdx.x], &in[threadIdx.x]);
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = s[threadIdx.x];
}
