// Atomics whose operands nobody has defined. Each kernel is launched with 64 threads; the sum over the 40 elements of `x`
// is wrong except in `contributes_zero`.
__device__ int added(int v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffff, v, step);  // AT shuffle
    return v;
}
extern "C" __global__ void returns_early(const int* x, int* out, int n) {
    if (threadIdx.x >= n) return;
    int v = added(x[threadIdx.x]);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);  // AT returns_early
}
extern "C" __global__ void contributes_zero(const int* x, int* out, int n) {
    int v = added(threadIdx.x < n ? x[threadIdx.x] : 0);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}
extern "C" __global__ void adds_unwritten(const int* x, int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) s[threadIdx.x] = 0;
    if (threadIdx.x == 0) atomicAdd(out, s[0]);  // AT adds_unwritten
}
extern "C" __global__ void exchanges_unwritten(const int* x, int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) s[threadIdx.x] = 0;
    if (threadIdx.x == 0) atomicExch(out, s[0]);  // AT exchanges_unwritten
}
extern "C" __global__ void swaps_unwritten(const int* x, int* out, int n) {
    __shared__ int s[64];
    if (threadIdx.x >= n) s[threadIdx.x] = 0;
    if (threadIdx.x == 0) atomicCAS(out, 0, s[0]);  // AT swaps_unwritten
}
extern "C" __global__ void adds_in_shared_memory(const int* x, int* out, int n) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    if (threadIdx.x >= n) return;
    int v = added(x[threadIdx.x]);
    if (threadIdx.x % 32 == 0) atomicAdd(&total, v);
    __syncthreads();
    if (threadIdx.x == 0) *out = total;  // AT adds_in_shared_memory
}
