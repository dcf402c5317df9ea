// Operations on an array, for programs of several streams.
#define KERNEL(NAME) extern "C" __global__ void NAME(int* a, int v, int n)
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL(put) { if (I < n) a[I] = v + I; }
KERNEL(add) { if (I < n) a[I] += v; }
KERNEL(flip) {
    if (I >= n) return;
    int old = a[I];
    if (old != v)
        a[I] = ~old;
}
KERNEL(count) { if (I < n) atomicAdd(&a[I], v); }
KERNEL(put_then_count) {
    if (I < n) a[I] = v + I;
    __syncthreads();
    if (I < n) atomicAdd(&a[I], 1);
}
KERNEL(highest) { if (I < n) atomicMax(&a[I], v + 1000 * (int)I); }
KERNEL(evens) { if (2 * I < n) a[2 * I] = v + I; }
KERNEL(odds) { if (2 * I + 1 < n) a[2 * I + 1] = v + I; }
KERNEL(branches) {
    if (I >= n) return;
    if (I % 3 == 0)
        atomicExch(&a[I], v - (int)I);
    else
        a[I] = v + I;
}
KERNEL(bytes) { if (I < n) reinterpret_cast<signed char*>(a)[4 * I + 1] = v; }
KERNEL(block) { if (I < n) atomicAdd_block(&a[I], v); }
KERNEL(swap) {
    if (I >= n) return;
    int old = a[I];
    while (old != v) {
        int now = atomicCAS(&a[I], old, v);
        if (now == old) break;
        old = now;
    }
}
extern "C" __global__ void get(int* a, int* out, int n) { if (I < n) out[I] = a[I]; }
extern "C" __global__ void first(int* a, int* out, int n) { if (I < n) out[I] = a[0]; }
extern "C" __global__ void watch(volatile int* a, int* out, int n) { if (I < n) out[I] = a[I]; }
extern "C" __global__ void guess(int* a, int* out, int n) {
    if (I >= n) return;
    int old = a[I];
    if (old == -1 - n)
        atomicCAS(&a[I], old, 1);
}
__constant__ int gain[4];
extern "C" __global__ void scale(int* x) { x[threadIdx.x] = gain[threadIdx.x % 4]; }
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void turn(int *rounds, int most, cudaGraphConditionalHandle again) {
    cudaGraphSetConditional(again, ++*rounds < most);
}
