// Values that nobody wrote, from global, shared and local memory and the heap, each where it reaches an address, a
// branch or a store; and reads that do no harm.

extern "C" __global__ void copy_uninitialised(int* out, const int* in) {
    out[threadIdx.x] = in[threadIdx.x] + 1;  // BUG copy_uninitialised
}
extern "C" __global__ void address_from_global(int* out, const int* index) {
    int i = index[threadIdx.x];  // READ address_from_global
    atomicAdd(&out[i & 7], 1);  // BUG address_from_global
}
extern "C" __global__ void branch_on_shared(int* out) {
    __shared__ int s[64];
    if (threadIdx.x < 32) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int v = ((volatile int*)s)[threadIdx.x];  // READ branch_on_shared
    if (v > 3) atomicAdd(out, 1);  // BUG branch_on_shared
}
extern "C" __global__ void store_from_shared(unsigned char* out) {
    __shared__ unsigned char s[64];
    if (threadIdx.x != 5) s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[threadIdx.x ^ 1];  // BUG store_from_shared
}
extern "C" __global__ void local_to_store(int* out, int n, int k) {
    int a[16];
    for (int i = 0; i < n; i++) a[i] = i * k;
    out[threadIdx.x] = a[k];  // BUG local_to_store
}
extern "C" __global__ void local_to_address(int* out, int n, int k) {
    int a[16];
    for (int i = 0; i < n; i++) a[i] = i;
    int place = a[k];  // READ local_to_address
    atomicAdd(&out[place & 7], 1);  // BUG local_to_address
}
extern "C" __global__ void heap_uninitialised(int* out) {
    int* p = (int*)malloc(64);
    out[threadIdx.x] = p[threadIdx.x];  // BUG heap_uninitialised
    free(p);
}

extern "C" __global__ void chosen(int* out, const int* in, int n) {
    int v = in[threadIdx.x];
    out[threadIdx.x] = threadIdx.x < n ? v : -1;
}
extern "C" __global__ void write_then_read(int* out, int* scratch) {
    scratch[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = scratch[threadIdx.x];
}
extern "C" __global__ void write(int* out) { out[threadIdx.x] = threadIdx.x; }
extern "C" __global__ void write_half(int* out) { out[threadIdx.x * 2] = threadIdx.x; }
extern "C" __global__ void write_blocks(int* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }
