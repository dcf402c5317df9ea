// Kernels whose counters follow from the hardware's rules.
extern "C" __global__ void strided(float* out, const float* in, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * stride];
}
template <class T> __global__ void some(T* out, int lanes) {
    if ((threadIdx.x & 31) < lanes) out[threadIdx.x] = 1;
}
extern "C" __global__ void generic(float* out, float* in, int n) {
    __shared__ float s[32];
    s[threadIdx.x] = 1;
    __syncthreads();
    const float* p = threadIdx.x < n ? in : s;
    out[threadIdx.x] = p[threadIdx.x];
}
extern "C" __global__ void own(int* out, int shift) {
    volatile int own[8];
    int place = threadIdx.x >> shift & 7;
    own[place] = 1;
    out[threadIdx.x] = own[place];
}
extern "C" __global__ void copied(float4* out, const float4* in, int lanes) {
    __shared__ float4 tile[64];
    unsigned place = __cvta_generic_to_shared(&tile[threadIdx.x]);
    int bytes = threadIdx.x < lanes ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2; cp.async.wait_all;"
                 :: "r"(place), "l"(in + threadIdx.x), "r"(bytes) : "memory");
    out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void arithmetic(float* x, double* y) {
    int i = threadIdx.x;
    x[i] = fmaf(x[i], 2.5f, 1.5f);
    if (i < 5)
        y[i] = __dadd_rn(y[i], __dmul_rn(y[i + 1], 3.0));
    float guarded = x[i];
    asm volatile("{ .reg .pred p; setp.lt.s32 p, %1, 7; @p mul.f32 %0, %0, %0; }" : "+f"(guarded) : "r"(i));
    x[i] = guarded;
}
extern "C" __global__ void add_at(int* counts, const int* places) { atomicAdd(counts + places[threadIdx.x], 1); }
__constant__ int table[64];
extern "C" __global__ void look_up(int* out, int lanes_a_word) { out[threadIdx.x] = table[threadIdx.x / lanes_a_word]; }
extern "C" __global__ void take(int* out) { out[threadIdx.x] = table[3]; }
extern "C" __global__ void fetch(cudaTextureObject_t in, float* out, float x, float y, float right, float down) {
    int t = threadIdx.x;
    out[t] = tex2D<float>(in, x + t * right, y + t * down);
}
extern "C" __global__ void fetch_bytes(cudaTextureObject_t in, int* out) {
    out[threadIdx.x] = tex2D<unsigned char>(in, threadIdx.x, 0);
}
extern "C" __global__ void fetch_of_two(cudaTextureObject_t one, cudaTextureObject_t other, float* out) {
    out[threadIdx.x] = tex2D<float>(threadIdx.x < 8 ? one : other, threadIdx.x, 0);
}
// All lanes of a warp update one address, and the assembler can tell.
extern "C" __global__ void update_one(int* counts, unsigned long long* wide, float* sum, const int* at, int* out, int by) {
    int lane = threadIdx.x;
    __shared__ int least;
    atomicAdd(wide, 1ull);
    atomicAdd(wide, (unsigned long long)lane);
    out[lane] = atomicAdd(counts, by) + atomicAdd(counts, lane) + atomicMax(counts, lane);
    atomicXor(counts + at[blockIdx.x], lane);
    atomicAdd(sum, 1.0f);
    atomicMin(&least, lane);
}
