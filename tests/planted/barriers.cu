// Barriers that threads miss, member masks that lie, deadlocks and loops without end; and their correct forms.

extern "C" __global__ void some_miss_a_barrier(int* out, int n) {
    __shared__ int s;
    s = 0;
    if (threadIdx.x < n) {
        __syncthreads();  // BUG some_miss_a_barrier
        atomicAdd(&s, 1);
    }
    out[threadIdx.x] = threadIdx.x;
}
extern "C" __global__ void two_barriers(int* out, int n) {
    if (threadIdx.x < n) {
        out[threadIdx.x] = 1;
        __syncthreads();  // BUG two_barriers
        out[threadIdx.x] += 1;
    } else {
        out[threadIdx.x] = 2;
        __syncthreads();  // BUG two_barriers
        out[threadIdx.x] += 2;
    }
}
extern "C" __global__ void barriers_in_an_unequal_loop(int* out) {
    for (int i = threadIdx.x; i < 100; i += 64) {
        out[i] = i;
        __syncthreads();  // BUG barriers_in_an_unequal_loop
    }
    out[100 + threadIdx.x] = 1;
}
extern "C" __global__ void early_return(int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) return;
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[n - 1 - threadIdx.x];
}
extern "C" __global__ void equal_loop(int* out, int n) {
    __shared__ int s[64];
    for (int i = 0; i < n; i++) {
        s[threadIdx.x] = i;
        __syncthreads();
        if (threadIdx.x < 7) out[threadIdx.x] += s[63 - threadIdx.x];
        __syncthreads();
    }
}

// Two roles wait at barrier 1 in different places, as the code of Triton's specialised warps does.
extern "C" __global__ void roles_meet(int* out) {
    __shared__ int s[64];
    s[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) {
        asm volatile("barrier.sync 1;" ::: "memory");
        s[threadIdx.x] = s[threadIdx.x + 32];
        asm volatile("barrier.sync 1;" ::: "memory");
    } else {
        asm volatile("barrier.sync 1;" ::: "memory");
        asm volatile("barrier.sync 1;" ::: "memory");
        out[threadIdx.x] = s[threadIdx.x - 32];
    }
}

extern "C" __global__ void lane_outside_mask(int* out) {
    out[threadIdx.x] = __shfl_sync(0x0000ffffu, threadIdx.x, 0);  // BUG lane_outside_mask
}
extern "C" __global__ void mask_names_others(int* out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, (int)threadIdx.x, 1);  // BUG mask_names_others
    else
        out[threadIdx.x] = __shfl_up_sync(0xffffffffu, (int)threadIdx.x, 1);  // BUG mask_names_others
}
extern "C" __global__ void right_masks(int* out) {
    unsigned mask = __ballot_sync(0xffffffffu, threadIdx.x & 1);
    if (threadIdx.x & 1) out[threadIdx.x] = __shfl_sync(mask, (int)threadIdx.x, 3);
}
extern "C" __global__ void shuffle_after_return(int* out, int n) {
    if (threadIdx.x >= n) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, (int)threadIdx.x, 1);  // BUG shuffle_after_return
}

extern "C" __global__ void waits_for_more(int* out) {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // BUG waits_for_more
    out[threadIdx.x] = 1;
}
extern "C" __global__ void crossed_barriers(int* out) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;" ::: "memory");  // BUG crossed_barriers
    else
        asm volatile("bar.sync 2, 64;" ::: "memory");  // BUG crossed_barriers
    out[threadIdx.x] = 1;
}
extern "C" __global__ void never_ends(volatile int* flag) {
    while (*flag == 0) {}  // BUG never_ends
}
extern "C" __global__ void counts_for_ever(unsigned* out) {
    unsigned n = 1;
    while (n) n += 2;  // BUG counts_for_ever
    *out = n;
}
