// Kernels that write, read and race in large allocations.
extern "C" __global__ void fill(unsigned char* x, size_t n, int step) {
    size_t i = (blockIdx.x * (size_t)blockDim.x + threadIdx.x) * step;
    if (i < n) x[i] = 7;
}
extern "C" __global__ void add(int* x, size_t n) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) x[i] += 7;
}
extern "C" __global__ void first(const unsigned char* x, unsigned char* out, size_t from) {
    out[threadIdx.x] = x[from + threadIdx.x];
}
extern "C" __global__ void race(int* x) { x[0] = threadIdx.x; }
