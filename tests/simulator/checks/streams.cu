// Operations on an array, for programs of several streams.
#define KERNEL(NAME) extern "C" __global__ void NAME(int* a, int v, int n)
#define I (blockIdx.x * 64 + threadIdx.x)
KERNEL(put) { if (I < n) a[I] = v + I; }
KERNEL(add) { if (I < n) a[I] += v; }
KERNEL(flip) { if (I < n && a[I] != v) a[I] = ~a[I]; }
KERNEL(count) { if (I < n) atomicAdd(&a[I], v); }
KERNEL(highest) { if (I < n) atomicMax(&a[I], v + 1000 * (int)I); }
extern "C" __global__ void get(int* a, int* out, int n) { if (I < n) out[I] = a[I]; }
__constant__ int gain[4];
extern "C" __global__ void scale(int* x) { x[threadIdx.x] = gain[threadIdx.x % 4]; }
extern "C" __device__ __cudart_builtin__ void CUDARTAPI
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned int value);
extern "C" __global__ void turn(int *rounds, int most, cudaGraphConditionalHandle again) {
    cudaGraphSetConditional(again, ++*rounds < most);
}
