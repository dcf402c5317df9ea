// Kernels in which each warp accesses memory by a row of a table: the byte offset or the index of each lane, -1 for an
// inactive lane.
//
// Warp w uses row rows[w] of the table. `numbers` says for each warp whether it has a row of its own, or contains what a
// kernel needs besides, such as the number of active lanes.
#define KERNEL(name) \
    extern "C" __global__ void name(const int* table, const int* rows, const int* numbers, unsigned char* data, \
                                    unsigned* out, unsigned long long texture)
#define LANE (threadIdx.x & 31)
#define T threadIdx.x
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define SETUP int at = table[rows[I >> 5] * 32 + LANE]; unsigned sum = 0;
#define IF_ACTIVE if (at >= 0 && numbers[I >> 5])
#define TILE \
    __shared__ __align__(1024) unsigned char tile[16384]; \
    unsigned p = (unsigned)__cvta_generic_to_shared(tile) + at;
#define OUT if (sum == 0x12345678) out[I] = sum;
// Keep a result without another access to global memory.
#define KEEP \
    __shared__ unsigned kept; \
    asm volatile("red.shared.xor.b32 [%0], %1;" :: "r"((unsigned)__cvta_generic_to_shared(&kept)), "r"(sum) : "memory");
typedef unsigned long long u64;

// --- loads and stores; SPACE is shared or global, and ADDRESS the constraint of an address in it
#define LOAD_1(SPACE, ADDRESS) asm volatile("ld." SPACE ".u8 %0, [%1];" : "=r"(sum) : ADDRESS(p));
#define LOAD_4(SPACE, ADDRESS) asm volatile("ld." SPACE ".u32 %0, [%1];" : "=r"(sum) : ADDRESS(p));
#define LOAD_2(SPACE, ADDRESS) \
    { unsigned short x; asm volatile("ld." SPACE ".u16 %0, [%1];" : "=h"(x) : ADDRESS(p)); sum = x; }
#define LOAD_8(SPACE, ADDRESS) \
    { uint2 v; asm volatile("ld." SPACE ".v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : ADDRESS(p)); sum = v.x + v.y; }
#define LOAD_16(SPACE, ADDRESS) \
    { \
        uint4 v; \
        asm volatile("ld." SPACE ".v4.u32 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : ADDRESS(p)); \
        sum = v.x + v.y + v.z + v.w; \
    }
#define STORE_1(SPACE, ADDRESS) asm volatile("st." SPACE ".u8 [%0], %1;" :: ADDRESS(p), "r"(LANE) : "memory");
#define STORE_2(SPACE, ADDRESS) asm volatile("st." SPACE ".u16 [%0], %1;" :: ADDRESS(p), "h"((short)LANE) : "memory");
#define STORE_4(SPACE, ADDRESS) asm volatile("st." SPACE ".u32 [%0], %1;" :: ADDRESS(p), "r"(LANE) : "memory");
#define STORE_8(SPACE, ADDRESS) asm volatile("st." SPACE ".v2.u32 [%0], {%1, %1};" :: ADDRESS(p), "r"(LANE) : "memory");
#define STORE_16(SPACE, ADDRESS) \
    asm volatile("st." SPACE ".v4.u32 [%0], {%1, %1, %1, %1};" :: ADDRESS(p), "r"(LANE) : "memory");
#define SHARED(size) \
    KERNEL(shared_ld_##size) { SETUP TILE IF_ACTIVE { LOAD_##size("shared", "r") OUT } } \
    KERNEL(shared_st_##size) { SETUP TILE (void)sum; IF_ACTIVE { STORE_##size("shared", "r") } }
SHARED(1) SHARED(2) SHARED(4) SHARED(8) SHARED(16)
#define GLOBAL(size) \
    KERNEL(global_ld_##size) { SETUP unsigned char* p = data + at; IF_ACTIVE { LOAD_##size("global", "l") KEEP } } \
    KERNEL(global_st_##size) { SETUP unsigned char* p = data + at; (void)sum; IF_ACTIVE { STORE_##size("global", "l") } }
GLOBAL(1) GLOBAL(4) GLOBAL(16)

// --- atomics in shared memory
#define SHARED_ATOMIC(name, TEXT) \
    KERNEL(shared_##name) { SETUP TILE IF_ACTIVE { asm volatile(TEXT : "=r"(sum) : "r"(p), "r"(LANE), "r"(1)); OUT } }
#define SHARED_ATOMIC_64(name, TEXT) \
    KERNEL(shared_##name) { \
        SETUP TILE \
        IF_ACTIVE { \
            u64 before; \
            asm volatile(TEXT : "=l"(before) : "r"(p), "l"((u64)LANE), "l"((u64)1)); \
            sum = (unsigned)before; \
            OUT \
        } \
    }
SHARED_ATOMIC(add, "atom.shared.add.u32 %0, [%1], %2;")
SHARED_ATOMIC(cas, "atom.shared.cas.b32 %0, [%1], %2, %3;")
SHARED_ATOMIC_64(exch64, "atom.shared.exch.b64 %0, [%1], %2;")
SHARED_ATOMIC_64(cas64, "atom.shared.cas.b64 %0, [%1], %2, %3;")

// --- matrices
KERNEL(ldsm_2) {
    SETUP TILE unsigned x, y;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "r"(p));
    sum = x + y;
    OUT
}
KERNEL(ldsm_4) {
    SETUP TILE uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(p));
    sum = v.x + v.y + v.z + v.w;
    OUT
}
KERNEL(stsm_4) {
    SETUP TILE (void)sum;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %1, %1, %1};" :: "r"(p), "r"(LANE) : "memory");
}

// --- atomics in global memory: one whose result is used, and a reduction unless there is none
#define ATOMIC(name, Type, LETTER, ATOM, RED) \
    KERNEL(atomic_##name) { \
        SETUP Type* p = (Type*)(data + at); \
        IF_ACTIVE { \
            Type before, one = 1; \
            asm volatile(ATOM : "=" LETTER(before) : "l"(p), LETTER((Type)at), LETTER(one) : "memory"); \
            asm volatile(RED :: "l"(p), LETTER((Type)at) : "memory"); \
            sum = (unsigned)before; \
            KEEP \
        } \
    }
ATOMIC(u32, unsigned, "r", "atom.global.add.u32 %0, [%1], %2;", "red.global.add.u32 [%0], %1;")
ATOMIC(u64, u64, "l", "atom.global.add.u64 %0, [%1], %2;", "red.global.add.u64 [%0], %1;")
ATOMIC(f64, double, "d", "atom.global.add.f64 %0, [%1], %2;", "red.global.add.f64 [%0], %1;")
ATOMIC(exch32, unsigned, "r", "atom.global.exch.b32 %0, [%1], %2;", "")
ATOMIC(cas64, u64, "l", "atom.global.cas.b64 %0, [%1], %2, %3;", "")
KERNEL(atomic_v4f32) {
    SETUP unsigned char* p = data + at;
    IF_ACTIVE {
        float4 v;
        float x = LANE;
        asm volatile("atom.global.v4.f32.add {%0, %1, %2, %3}, [%4], {%5, %5, %5, %5};"
                     : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(p), "f"(x) : "memory");
        asm volatile("red.global.v4.f32.add [%0], {%1, %1, %1, %1};" :: "l"(p), "f"(x) : "memory");
        sum = __float_as_uint(v.x + v.y + v.z + v.w);
        KEEP
    }
}
// The compiler sees that all lanes of a warp, the first numbers[0] of which are active, access one address.
#define UNIFORM(name, Type, operation) \
    KERNEL(uniform_##name) { \
        Type* p = (Type*)data + blockIdx.x; \
        if (LANE < numbers[0]) { \
            operation(p, (Type)T); \
            unsigned sum = (unsigned)operation(p + 64, (Type)T); \
            KEEP \
        } \
    }
UNIFORM(u32, unsigned, atomicAdd)
UNIFORM(s32max, int, atomicMax)
UNIFORM(u64, u64, atomicAdd)
UNIFORM(f32, float, atomicAdd)
UNIFORM(exch32, int, atomicExch)

// --- asynchronous copies
#define COPY(name, TEXT, size) \
    KERNEL(copy_##name) { \
        SETUP __shared__ __align__(1024) unsigned char tile[32768]; \
        int step = numbers[0], used = numbers[1]; \
        unsigned to = (unsigned)__cvta_generic_to_shared(tile) + (T * step & 32767); \
        if (at >= 0) asm volatile(TEXT " [%0], [%1], " size ";" :: "r"(to), "l"(data + at) : "memory"); \
        asm volatile("cp.async.wait_all;" ::: "memory"); \
        __syncthreads(); \
        if (used < 0) out[I] = tile[T] + sum; \
    }
COPY(ca4, "cp.async.ca.shared.global", "4")
COPY(ca16, "cp.async.ca.shared.global", "16")
COPY(cg16, "cp.async.cg.shared.global", "16")

// --- local and constant memory
#define LOCAL(size, Type) \
    KERNEL(local_##size) { \
        SETUP volatile Type own[64]; \
        if (at >= 0) { \
            own[at] = (Type)(T + 1); \
            sum = (unsigned)own[(at + numbers[0]) % 64]; \
            KEEP \
        } \
    }
LOCAL(1, unsigned char)
LOCAL(4, int)
LOCAL(8, double)
__constant__ int words[1024];
__constant__ float4 quads[256];
KERNEL(constant_4) { SETUP if (at >= 0) { sum = words[at]; KEEP } }
KERNEL(constant_16) {
    SETUP
    if (at >= 0) {
        float4 v = quads[at];
        sum = (unsigned)(v.x + v.y + v.z + v.w);
        KEEP
    }
}

// --- textures of 256 x 256 texels
#define FETCH(name, Type, call, value) \
    KERNEL(name) { \
        SETUP \
        if (at >= 0) { \
            float x = at & 255, y = at >> 8; \
            Type v = call; \
            sum = value; \
            KEEP \
        } \
    }
FETCH(tex2d, float, tex2D<float>(texture, x + 0.5f, y + 0.5f), __float_as_uint(v))
FETCH(tex2d_linear, float, tex2D<float>(texture, x + 1, y + 1), __float_as_uint(v))
FETCH(tex2d_byte, int, tex2D<unsigned char>(texture, x + 0.5f, y + 0.5f), v)
FETCH(tex2d_float4, float4, tex2D<float4>(texture, x + 0.5f, y + 0.5f), __float_as_uint(v.x + v.w))
FETCH(tex1d_fetch, float, tex1Dfetch<float>(texture, at), __float_as_uint(v + 0 * x * y))
