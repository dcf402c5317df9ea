// Kernels that run in machine code under the checks unless they are wrong.
extern "C" __global__ void sums_of_blocks(int* x) {
    __shared__ int s;
    if (threadIdx.x == 0) s = 0;
    __syncthreads();
    atomicAdd_block(&s, 1);
    atomicAdd_block(&x[blockIdx.x], 1);
}
extern "C" __global__ void in_place(int* x) {
    __shared__ int s[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = x[i];
    __syncthreads();
    for (int d = 128; d >= 32; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t < 32) {
        int v = s[t];
        for (int d = 16; d; d /= 2) v += __shfl_down_sync(-1u, v, d);
        if (t == 0) x[i] = v;
    }
    if (t) x[i] = 2 * x[i];
}
extern "C" __global__ void wide(double2* x, const unsigned char* bytes, short* y) {
    int i = blockIdx.x * 256 + threadIdx.x;
    double2 v = x[i];
    x[i] = make_double2(v.y, v.x + bytes[i / 3]);
    y[2 * i] = y[2 * i] + bytes[i];
}
extern "C" __global__ void tables(int* out, int k) {
    int table[16];
    for (int j = 0; j < 16; j++) table[(j + threadIdx.x) & 15] = j * k;
    int s = 0;
    for (int j = 0; j < 16; j++) s += table[(j * k + threadIdx.x) & 15];
    out[blockIdx.x * 256 + threadIdx.x] = s;
}
extern "C" __global__ void greatest(unsigned long long* out, const unsigned long long* in) {
    unsigned long long value = in[blockIdx.x * 256 + threadIdx.x], old = *out, seen;
    while (old < value) {
        seen = atomicCAS(out, old, value);
        if (seen == old) break;
        old = seen;
    }
}
extern "C" __global__ void sorted(int* x) {
    __shared__ int s[256], counts[16];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    s[t] = x[i];
    if (t < 16) counts[t] = 0;
    __syncthreads();
    atomicAdd(&counts[s[t] & 15], 1);
    for (int k = 2; k <= 256; k *= 2)
        for (int j = k / 2; j; j /= 2) {
            int l = t ^ j, a = s[t], b = s[l];
            __syncthreads();
            if (l > t && (a > b) == ((t & k) == 0)) { s[t] = b; s[l] = a; }
            __syncthreads();
        }
    x[(i * 37) % 1024] = s[t] + 0 * counts[t & 15];
}
extern "C" __global__ void count_then_race(int* x) {
    atomicAdd(x, 1);
    __syncthreads();
    x[1] = threadIdx.x;
}
extern "C" __global__ void happens_to_be(int* x) {
    if (threadIdx.x == 96) x[0] = 96;
    atomicAdd(&x[0], 1);
}
extern "C" __global__ void store_what_is_there(int* x, int* out) {
    x[threadIdx.x] = threadIdx.x;
    if (threadIdx.x < 32) out[threadIdx.x] = x[threadIdx.x + 32];
}
extern "C" __global__ void store_then_count(int* x) {
    if (threadIdx.x < 32) x[threadIdx.x] = 7;
    atomicAdd(&x[threadIdx.x & 31], 1);
}
// Each warp has its own counters, which its lanes set, count and set again, ordered by the warp alone.
extern "C" __global__ void warp_counters(int* x) {
    __shared__ int counts[8][64];
    int* mine = counts[threadIdx.x / 32];
    int lane = threadIdx.x % 32;
    for (int i = lane; i < 64; i += 32) mine[i] = 0;
    __syncwarp();
    for (int k = 0; k < 3; ++k) atomicAdd(&mine[(x[threadIdx.x] + k) & 63], 1);
    __syncwarp();
    int count = mine[lane];
    __syncwarp();
    mine[lane] = count + 1;
    __syncwarp();
    if (lane < 7) atomicAdd(&mine[lane], 3);
    __syncwarp();
    x[threadIdx.x] = mine[lane ^ 1];
}
extern "C" __global__ void race_at_first(int* x) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i < 9 ? 0 : i] = i;
    if (i < 9) x[i] = i;
}
extern "C" __global__ void first_half(int* x) { if (threadIdx.x < 128) x[threadIdx.x] = 1; }
extern "C" __global__ void copy(const int* x, int* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void no_barrier(int* x, int with) {
    __shared__ int s[256];
    s[threadIdx.x] = threadIdx.x;
    if (with) __syncthreads();
    x[threadIdx.x] = s[threadIdx.x ^ 32];
}

// Copies by cp.async.
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group " #n ";" ::: "memory")
#define WAIT_ALL asm volatile("cp.async.wait_all;" ::: "memory")
static __device__ void copy(void* to, const void* from) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(place), "l"(from) : "memory");
}
__device__ void copy_some(void* to, const void* from, int bytes) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(place), "l"(from), "r"(bytes) : "memory");
}
__device__ void copy_unless(void* to, const void* from, int ignored) {
    unsigned place = __cvta_generic_to_shared(to);
    asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 8, p;}"
                 :: "r"(place), "l"(from), "r"(ignored) : "memory");
}

extern "C" __global__ void stages(float* out, const float* in, int n) {
    __shared__ float s[4][256];
    int t = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 3; k++) { copy(&s[k][t], &in[k * 256 + t]); COMMIT; }
    for (int k = 0; k < n; k++) {
        WAIT(2);
        __syncthreads();
        sum += s[k % 4][255 - t];
        if (k + 3 < n) copy(&s[(k + 3) % 4][t], &in[(k + 3) * 256 + t]);
        COMMIT;
    }
    out[blockIdx.x * 256 + t] = sum;
}
extern "C" __global__ void own_and_warp(float* out, const float* in) {
    __shared__ float s[256];
    int t = threadIdx.x;
    copy(&s[t], &in[t]);
    WAIT_ALL;
    float sum = s[t];
    __syncwarp();
    sum += s[t ^ 31];
    __syncwarp();
    if (t & 32) copy(&s[t], &in[t]);
    WAIT_ALL;
    out[blockIdx.x * 256 + t] = sum + s[t];
}
extern "C" __global__ void some_copy(float* out, const float* in) {
    __shared__ float s[2][64];
    int t = threadIdx.x;
    if (t < 64) copy(&s[0][t], &in[t]);
    WAIT_ALL;
    __syncthreads();
    if (t >= 192) copy(&s[1][t - 192], &in[t]);
    float sum = s[0][t & 63];
    WAIT_ALL;
    int last = __syncthreads_count(t < 64) - 1;
    float* generic = t < 300 ? s[1] : out;
    out[blockIdx.x * 256 + t] = sum + generic[last - (t & 63)];
}
extern "C" __global__ void filled(unsigned* out, const unsigned* in) {
    __shared__ __align__(16) unsigned s[128 * 6];
    int t = threadIdx.x;
    copy_some(&s[4 * t], &in[4 * t], t < 96 ? t % 17 : 0);
    copy_unless(&s[512 + 2 * t], &in[2 * t], t % 3 == 0);
    WAIT_ALL;
    __syncthreads();
    for (int k = 0; k < 6; k++) out[128 * k + t] = s[128 * k + t];
}
// Blocks copy what the other one stores, by an address for each thread or one for all.
extern "C" __global__ void beside_stores(unsigned* out, int bytes, int apart) {
    __shared__ __align__(16) unsigned s[512 * 4];
    int t = threadIdx.x, other = 256 * (1 - blockIdx.x);
    copy_some(&s[4 * t], &out[other + (apart ? t & ~3 : 0)], t % 32 == 5 ? bytes : 0);
    copy_unless(&s[1024 + 4 * t], &out[other + (apart ? t & ~1 : 0)], t % 32 != 6 || !bytes);
    WAIT_ALL;
    __syncthreads();
    out[blockIdx.x * 256 + t] = s[1023 - t] + s[1024 + 4 * t] + t + 1;
}
extern "C" __global__ void wrong(float* out, const float* in, int how) {
    __shared__ float s[2][256];
    int t = threadIdx.x;
    copy(&s[0][t], &in[t]);
    COMMIT;
    copy(&s[1][t], &in[256 + t]);
    COMMIT;
    if (how == 0) WAIT(1);
    if (how == 1 && t >= 32) WAIT(0);
    if (how == 2) { WAIT(0); copy(&s[1][t], &in[t]); }
    if (how != 3) __syncthreads();
    if (how == 3) { WAIT(0); __syncwarp(); }
    float sum = 0;
    if (how == 0) sum = s[1][t];
    if (how == 1) sum = s[0][t ^ 32];
    if (how == 2) s[1][t] = 0;
    if (how == 3) sum = s[1][t ^ 32];
    if (how == 4) sum = s[0][t];
    if (how == 5 && t == 7) *(float*)(out == in ? out : &s[1][9]) = 1;
    out[t] = sum;
}

// Fences.
enum { RIGHT, NO_FENCE, FENCE_OF_THE_BLOCK, FENCE_TOO_LATE };
template <int how> __device__ void fence() {
    if (how == FENCE_OF_THE_BLOCK) __threadfence_block();
    if (how == RIGHT) __threadfence();
}
template <int how> __device__ void sum_once(int* total, int* sums, int* count) {
    int t = threadIdx.x;
    __shared__ bool last;
    if (t == 0) {
        sums[blockIdx.x] = blockIdx.x;
        fence<how>();
        last = atomicInc((unsigned*)count, gridDim.x - 1) == gridDim.x - 1;
        if (how == FENCE_TOO_LATE) __threadfence();
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    for (int i = t; i < gridDim.x; i += blockDim.x) atomicAdd(total, __ldcg(sums + i));
}
template <int how> __device__ void chain(int* sums, int* data, int* flags) {
    int t = threadIdx.x, b = blockIdx.x;
    data[b * blockDim.x + t] = t;
    fence<how>();
    __syncthreads();
    if (t < 32 && b > 0) while (*(volatile int*)(flags + b - 1) == 0) {}
    __syncthreads();
    int before = b > 0 ? data[b * blockDim.x - 1 - t] : 0;
    if (t == 0) sums[b] = (b > 0 ? sums[b - 1] : 0) + 1;
    if (how == FENCE_TOO_LATE) __syncthreads();
    if (t == 0) fence<how>();
    if (t == 0) *(volatile int*)(flags + b) = 1;
    if (how == FENCE_TOO_LATE) __threadfence();
    atomicAdd(&flags[64], before);
}
template <int how> __device__ void locks(int* data, int* lock) {
    for (bool done = false; !done;)
        if (atomicCAS(lock + threadIdx.x % 4, 0, 1) == 0) {
            fence<how>();
            data[threadIdx.x % 4] += 1;
            fence<how>();
            atomicExch(lock + threadIdx.x % 4, 0);
            if (how == FENCE_TOO_LATE) __threadfence();
            done = true;
        }
}
template <int how> __device__ void steps(float* x, float* y, int* count, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
    for (int k = 0; k < n; k++) {
        y[i] = x[(i + blockDim.x) % all] + k;
        __syncthreads();
        if (threadIdx.x == 0) {
            fence<how>();
            atomicAdd(count, 1);
            while (*(volatile int*)count < (k + 1) * gridDim.x) {}
            fence<how>();
        }
        __syncthreads();
        float* other = x;
        x = y;
        y = other;
    }
}
#define ALL(HOW, NAME)                                                                                              \
    extern "C" __global__ void sum_once##NAME(int* a, int* b, int* c) { sum_once<HOW>(a, b, c); }                   \
    extern "C" __global__ void chain##NAME(int* a, int* b, int* c) { chain<HOW>(a, b, c); }                         \
    extern "C" __global__ void locks##NAME(int* a, int* b) { locks<HOW>(a, b); }                                    \
    extern "C" __global__ void steps##NAME(float* a, float* b, int* c, int n) { steps<HOW>(a, b, c, n); }
ALL(RIGHT, )
ALL(NO_FENCE, _no_fence)
ALL(FENCE_OF_THE_BLOCK, _fence_of_the_block)
ALL(FENCE_TOO_LATE, _fence_too_late)

extern "C" __global__ void hand_over(int* out, int* data, int* flag) {
    int t = threadIdx.x, seen = 0;
    if (blockIdx.x == 0) {
        data[t] = t;
        __syncthreads();
        if (t == 0) asm volatile("st.release.gpu.s32 [%0], 1;" :: "l"(flag) : "memory");
    } else {
        while (t == 0 && !seen) asm volatile("ld.acquire.gpu.s32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
        __syncthreads();
        out[blockIdx.x * blockDim.x + t] = data[t ^ 5];
    }
}
__device__ bool last_block(int* count) {
    __shared__ bool last;
    if (threadIdx.x == 0) last = atomicAdd(count, 1) == gridDim.x - 1;
    __syncthreads();
    bool is_last = last;
    __syncthreads();
    return is_last;
}
extern "C" __global__ void many_blocks(int* sum, int* data, int* count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = i;
    __threadfence();
    __syncthreads();
    if (last_block(count))
        for (int k = threadIdx.x; k < gridDim.x * blockDim.x; k += blockDim.x) atomicAdd(sum, data[k]);
}
