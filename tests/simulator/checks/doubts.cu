// Kernels that leave something else when they are applied twice; each thread has its own number I below 80.
#include <cuda_pipeline.h>
#define KERNEL(name) extern "C" __global__ void name(int* a, int* b, double2* c)
#define I (blockIdx.x * 40 + threadIdx.x)
KERNEL(guarded) { if (I < 70) a[I] = 2 * b[I] + a[I]; }
KERNEL(in_one_block) { a[I] += 1; b[I] += a[I]; c[I].x += b[I]; a[I + 128] -= b[I + 128]; }
KERNEL(loop) {
    #pragma unroll 1
    for (int j = 0; j < 3; j++) { a[3 * I + j] += b[I]; b[I] += j; }
}
KERNEL(branches) {
    if (I & 1) a[I] += 1;
    else { a[I] -= 2; b[I] += a[I]; }
    switch (b[I + 128] & 3) { case 0: c[I].x += 1; break; case 1: c[I].y += 2; case 2: a[I] ^= 9; }
}
KERNEL(scattered) { a[I * 37 % 512] += 1; b[I * 5] = b[I * 5] * 3 + a[I * 37 % 512]; }
KERNEL(vectors) {
    c[I] = make_double2(c[I].y, c[I].x + 1);
    ((int4*)b)[I] = make_int4(1, ((int4*)b)[I].x, 3, b[I * 4]);
    ((short*)a)[2 * I] += 5;
    ((unsigned char*)a)[4 * I + 3] += 7;
}
KERNEL(atomics) {
    atomicAdd(&a[I & 7], 1);
    if (I & 4) atomicMax(&a[8], I * 3);
    b[I] += atomicOr(&a[64 + I], 3);
    atomicAdd(&c[I].x, 1.5);
    atomicInc((unsigned*)&b[200], 60);
}
KERNEL(swaps) {
    if (threadIdx.x % 8) return;
    int old = a[0], seen;
    while ((seen = atomicCAS(&a[0], old, old + 2)) != old) old = seen;
}
KERNEL(tile) {
    __shared__ int s[64];
    s[threadIdx.x] = a[I];
    __syncthreads();
    atomicAdd(&s[threadIdx.x & 3], 1);
    a[I] += b[I];
    __syncthreads();
    b[I] += s[39 - threadIdx.x];
}
__device__ __noinline__ void add(int* p, int value) { *p += value; }
KERNEL(calls) { add(a + I, 3); if (I & 2) add(b + I, a[I]); }
KERNEL(either_space) {
    __shared__ int s[64];
    s[threadIdx.x] = 0;
    int* p = I & 1 ? &s[threadIdx.x] : &a[I];
    *p += 4;
    b[I] += *p;
}
KERNEL(last_block) {
    __shared__ bool last;
    a[I] += 1;
    __threadfence();
    __syncthreads();
    if (!threadIdx.x) last = atomicAdd(&b[0], 1) % 2 == 1;
    __syncthreads();
    if (last && threadIdx.x < 20) c[threadIdx.x].x += ((volatile int*)a)[79 - threadIdx.x];
}
KERNEL(printed) { a[I] += 1; if (I % 41 == 3) printf("%d %d\n", I, a[I]); b[I] += a[I]; }
KERNEL(comes_together) { a[I] += 1; __threadfence(); __syncwarp(); }
KERNEL(copies) {
    __shared__ int4 s[64];
    __pipeline_memcpy_async(&s[threadIdx.x], (int4*)c + I, 16);
    __pipeline_commit();
    a[I] += 1;
    __pipeline_wait_prior(0);
    b[I] += s[threadIdx.x].y;
}
KERNEL(atomics_of_a_block) {
    atomicAdd_block(&a[I], 2);
    atomicAdd_block(&c[I].x, 1.5);
    b[I] += atomicMax_block(&b[I], 9);
}

// Accesses with the qualifiers of each strength and scope that the checks distinguish.
#define STORE(name, words) \
    KERNEL(name) { \
        int value = a[I] + 1; \
        asm volatile("st" words ".s32 [%0], %1;" : : "l"(a + I), "r"(value)); \
    }
#define STORE_TWO(name, words) \
    KERNEL(name) { \
        int2 value = ((int2*)a)[I]; \
        asm volatile("st" words ".v2.s32 [%0], {%1, %2};" : : "l"(a + 2 * I), "r"(value.y), "r"(value.x + 3)); \
    }
#define ATOM(name, words) \
    KERNEL(name) { \
        int old; \
        asm volatile("atom" words ".add.s32 %0, [%1], 5;" : "=r"(old) : "l"(a + I)); \
        b[I] = old; \
    }
#define RED(name, words) \
    KERNEL(name) { asm volatile("red" words ".add.s32 [%0], 5;" : : "l"(a + I)); }
#define SWAP(name, words) \
    KERNEL(name) { \
        long long *p = (long long*)a + I, old = *p; \
        asm volatile("atom" words ".cas.b64 %0, [%1], %0, %2;" : "+l"(old) : "l"(p), "l"(old + 7)); \
    }
STORE(store_plain, ".global")
STORE(store_generic, "")
STORE(store_cached, ".global.cg")
STORE(store_volatile, ".volatile.global")
STORE(store_mmio, ".mmio.relaxed.sys.global")
STORE(store_relaxed, ".relaxed.gpu.global")
STORE(store_released, ".release.gpu")
STORE(store_of_system, ".relaxed.sys.global")
STORE(store_in_block, ".relaxed.cta.global")
STORE(store_generic_in_block, ".relaxed.cta")
STORE(store_released_in_block, ".release.cta.global")
STORE_TWO(store_two_plain, ".global")
STORE_TWO(store_two_volatile, ".volatile.global")
STORE_TWO(store_two_in_block, ".relaxed.cta.global")
ATOM(atom_relaxed, ".relaxed.gpu.global")
ATOM(atom_generic, ".relaxed.gpu")
ATOM(atom_released, ".release.gpu.global")
ATOM(atom_of_system, ".relaxed.sys.global")
ATOM(atom_in_block, ".relaxed.cta.global")
ATOM(atom_generic_in_block, ".relaxed.cta")
ATOM(atom_released_in_block, ".release.cta.global")
RED(red_relaxed, ".relaxed.gpu.global")
RED(red_generic, ".relaxed.gpu")
RED(red_released, ".release.gpu.global")
RED(red_of_system, ".relaxed.sys.global")
RED(red_in_block, ".relaxed.cta.global")
RED(red_generic_in_block, ".relaxed.cta")
RED(red_released_in_block, ".release.cta.global")
SWAP(swap_relaxed, ".relaxed.gpu.global")
SWAP(swap_in_block, ".relaxed.cta.global")
