// Accesses that hardware refuses: outside what was allocated, after it was freed, misaligned, and a stack that is
// too small. A line with a planted mistake says BUG and whose it is.

extern "C" __global__ void out_of_bounds(int* out, int n) {
    out[blockIdx.x * 32 + threadIdx.x + n] = 1;  // BUG out_of_bounds
}
extern "C" __global__ void read_past(int* out, const int* in) {
    out[threadIdx.x] = in[threadIdx.x + 1];  // BUG read_past
}

extern "C" __global__ void beyond_shared(int* out, int n) {
    __shared__ int s[32];
    s[threadIdx.x + n] = 1;  // BUG beyond_shared
    out[threadIdx.x] = s[threadIdx.x];
}
extern "C" __global__ void before_shared(int* out, int n) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = dynamic[(int)threadIdx.x - n];  // BUG before_shared
}

extern "C" __global__ void beyond_local(int* out, int n) {
    int a[16];
    for (int i = 0; i < 16; i++) a[i] = i;
    a[n + threadIdx.x] = 7;  // BUG beyond_local
    out[threadIdx.x] = a[threadIdx.x & 15];
}
extern "C" __global__ void before_local(int* out, int n) {
    int a[16];
    for (int i = 0; i < 16; i++) a[i] = i * n;
    out[threadIdx.x] = a[(int)threadIdx.x - n];  // BUG before_local
}

__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
extern "C" __global__ void beyond_constant(int* out, int n) {
    out[threadIdx.x] = primes[threadIdx.x + n];  // BUG beyond_constant
}
extern "C" __global__ void before_constant(int* out, int n) {
    out[threadIdx.x] = primes[(int)threadIdx.x - n];  // BUG before_constant
}

extern "C" __global__ void heap_after_free(int* out) {
    int* p = (int*)malloc(64);
    p[threadIdx.x] = 1;
    free(p);
    out[threadIdx.x] = p[threadIdx.x];  // BUG heap_after_free
}

extern "C" __global__ void misaligned(char* out) {
    *(int*)(out + 4 * threadIdx.x + 1) = 1;  // BUG misaligned
}
extern "C" __global__ void misaligned_pair(float* out) {
    *(float2*)(out + 1) = make_float2(1, 2);  // BUG misaligned_pair
}
extern "C" __global__ void misaligned_shared(int* out, int n) {
    __shared__ char s[256];
    s[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = *(int*)(s + 4 * threadIdx.x + n);  // BUG misaligned_shared
}
extern "C" __global__ void misaligned_local(int* out, int n) {
    char a[64];
    for (int i = 0; i < 64; i++) a[i] = i;
    out[threadIdx.x] = *(int*)(a + n);  // BUG misaligned_local
}

__device__ __noinline__ int deep(int n) {
    volatile int a[64];
    a[n % 64] = n;
    return n ? deep(n - 1) * 3 + a[0] : 0;  // BUG recursion
}
extern "C" __global__ void recursion(int* out, int n) { out[threadIdx.x] = deep(n); }

__device__ int odd(int n);
__device__ __noinline__ int even(int n) {
    volatile int a[50];
    a[n % 50] = n;
    return n ? odd(n - 1) + a[n % 50] : 1;  // BUG mutual_recursion
}
__device__ __noinline__ int odd(int n) {
    volatile int a[50];
    a[n % 50] = n;
    return n ? even(n - 1) + a[n % 50] : 0;  // BUG mutual_recursion
}
extern "C" __global__ void mutual_recursion(int* out, int n) { out[threadIdx.x] = odd(n); }
