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
// Even lanes read from one array, odd lanes from the other.
extern "C" __global__ void either(const int* even, const int* odd, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (i % 2 ? odd : even)[i];
}
extern "C" __global__ void race(int* x) { x[0] = threadIdx.x; }
