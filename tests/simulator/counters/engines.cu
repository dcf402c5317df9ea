// Kernels with lanes that take different paths, in an order that shows or not, and one with a fault.
#define KERNEL(name) extern "C" __global__ void name
#define I (blockIdx.x * blockDim.x + threadIdx.x)
KERNEL(gather)(const int* at, const int* in, int* out) {
    if (at[I] & 1) out[I] = in[at[I] >> 1 & 1023];
    out[at[I] & 1023] = in[I & 1023];
}
KERNEL(lock)(int* mutex, int* count) {
    while (atomicCAS(mutex, 0, 1) != 0) {}
    *(volatile int*)count += 1;
    __threadfence();
    atomicExch(mutex, 0);
}
KERNEL(watch)(volatile int* flag) {
    if (blockIdx.x == 2) *flag = 7;
    while (!*flag) {}
}
KERNEL(waits_for_the_clock)(long long* out) {
    long long start = clock64();
    while (clock64() - start < 10000) {}
    out[threadIdx.x] = start;
}
KERNEL(beyond)(int* out, int n) { out[threadIdx.x * n] = 1; }
