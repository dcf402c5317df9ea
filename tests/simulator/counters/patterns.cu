// Patterns of memory access, one kernel each, whose counters a GPU and the simulator must agree on.
//
// Every kernel takes the same arguments: bytes to read, bytes to write, and whole numbers below 1024 with a
// permutation of 0..4095 behind the first 4096. Blocks have 256 threads and grids 16 blocks unless patterns.py says
// otherwise.

#define PATTERN(name) \
    extern "C" __global__ void name(const unsigned char* __restrict__ in, unsigned char* __restrict__ out, \
                                    const int* __restrict__ index)
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define T threadIdx.x
#define LANE (threadIdx.x & 31)

template <class Type> __device__ void move(const unsigned char* in, unsigned char* out, unsigned from, unsigned to) {
    reinterpret_cast<Type*>(out)[to] = reinterpret_cast<const Type*>(in)[from];
}

struct Three { float x, y, z; };
struct Five { float a, b, c, d, e; };

// --- global loads of 4 bytes
PATTERN(load_unit) { move<float>(in, out, I, I); }
PATTERN(load_stride_2) { move<float>(in, out, I * 2, I); }
PATTERN(load_stride_3) { move<float>(in, out, I * 3, I); }
PATTERN(load_stride_4) { move<float>(in, out, I * 4, I); }
PATTERN(load_stride_8) { move<float>(in, out, I * 8, I); }
PATTERN(load_stride_17) { move<float>(in, out, I * 17, I); }
PATTERN(load_stride_32) { move<float>(in, out, I * 32, I); }
PATTERN(load_offset_1) { move<float>(in, out, I + 1, I); }
PATTERN(load_offset_4) { move<float>(in, out, I + 4, I); }
PATTERN(load_offset_7) { move<float>(in, out, I + 7, I); }
PATTERN(load_offset_8) { move<float>(in, out, I + 8, I); }
PATTERN(load_offset_31) { move<float>(in, out, I + 31, I); }
PATTERN(load_reverse) { move<float>(in, out, 4095 - I, I); }
PATTERN(load_same) { move<float>(in, out, blockIdx.x, I); }
PATTERN(load_pairs) { move<float>(in, out, I / 2, I); }
PATTERN(load_eighths) { move<float>(in, out, I / 8 * 8, I); }
PATTERN(load_repeated) { move<float>(in, out, I % 8, I); }
PATTERN(load_exchanged) { move<float>(in, out, I ^ 5, I); }
PATTERN(load_gather) { move<float>(in, out, index[I], I); }
PATTERN(load_gather_near) { move<float>(in, out, index[I] & 63, I); }
PATTERN(load_gather_permuted) { move<float>(in, out, index[4096 + I], I); }
PATTERN(load_row) { move<float>(in, out, (blockIdx.x * 8 + threadIdx.y) * 1024 + T, I * 8 + threadIdx.y); }
PATTERN(load_column) { move<float>(in, out, T * 1024 + blockIdx.x * 8 + threadIdx.y, I * 8 + threadIdx.y); }

// --- other widths
PATTERN(load_byte) { move<unsigned char>(in, out, I, I); }
PATTERN(load_byte_stride_4) { move<unsigned char>(in, out, I * 4, I); }
PATTERN(load_byte_stride_33) { move<unsigned char>(in, out, I * 33, I); }
PATTERN(load_byte_offset_3) { move<unsigned char>(in, out, I + 3, I); }
PATTERN(load_short) { move<unsigned short>(in, out, I, I); }
PATTERN(load_short_stride_3) { move<unsigned short>(in, out, I * 3, I); }
PATTERN(load_double) { move<double>(in, out, I, I); }
PATTERN(load_double_stride_2) { move<double>(in, out, I * 2, I); }
PATTERN(load_double_offset_1) { move<double>(in, out, I + 1, I); }
PATTERN(load_double_same) { move<double>(in, out, blockIdx.x, I); }
PATTERN(load_double_pairs) { move<double>(in, out, I / 2, I); }
PATTERN(load_double_gather) { move<double>(in, out, index[I], I); }
PATTERN(load_float2) { move<float2>(in, out, I, I); }
PATTERN(load_float4) { move<float4>(in, out, I, I); }
PATTERN(load_float4_stride_2) { move<float4>(in, out, I * 2, I); }
PATTERN(load_float4_offset_1) { move<float4>(in, out, I + 1, I); }
PATTERN(load_float4_same) { move<float4>(in, out, blockIdx.x, I); }
PATTERN(load_float4_repeated) { move<float4>(in, out, I % 8, I); }
PATTERN(load_float4_pairs) { move<float4>(in, out, I / 2, I); }
PATTERN(load_float4_gather) { move<float4>(in, out, index[I], I); }
PATTERN(structure_three) {
    Three s = reinterpret_cast<const Three*>(in)[I];
    reinterpret_cast<float*>(out)[I] = s.x + s.y * s.z;
}
PATTERN(structure_five) {
    Five s = reinterpret_cast<const Five*>(in)[I];
    reinterpret_cast<float*>(out)[I] = s.a + s.b * s.c + s.d * s.e;
}
PATTERN(structure_one_of_four) { reinterpret_cast<float*>(out)[I] = reinterpret_cast<const float*>(in)[I * 4 + 2]; }

// --- some lanes only
PATTERN(some_half) { if (LANE < 16) move<float>(in, out, I, I); }
PATTERN(some_odd) { if (LANE & 1) move<float>(in, out, I, I); }
PATTERN(some_one) { if (LANE == 9) move<float>(in, out, I, I); }
PATTERN(some_tail) { if (I < 3000) move<float>(in, out, I, I); }
PATTERN(some_quarter_double) { if (LANE < 8) move<double>(in, out, I, I); }
PATTERN(some_odd_float4) { if (LANE & 1) move<float4>(in, out, I, I); }
PATTERN(some_of_48_threads) { move<float>(in, out, I, I); }
PATTERN(some_of_100_threads) { move<float>(in, out, I * 2, I); }

// --- global stores
PATTERN(store_stride_2) { move<float>(in, out, I, I * 2); }
PATTERN(store_stride_32) { move<float>(in, out, I, I * 32); }
PATTERN(store_offset_1) { move<float>(in, out, I, I + 1); }
PATTERN(store_same) { move<float>(in, out, I, blockIdx.x); }
PATTERN(store_permuted) { move<float>(in, out, I, index[4096 + I]); }
PATTERN(store_scatter) { move<float>(in, out, I, index[I]); }
PATTERN(store_column) { move<float>(in, out, I * 8 + threadIdx.y, T * 1024 + blockIdx.x * 8 + threadIdx.y); }
PATTERN(store_byte_stride_3) { move<unsigned char>(in, out, I, I * 3); }
PATTERN(store_double_stride_3) { move<double>(in, out, I, I * 3); }
PATTERN(store_double_permuted) { move<double>(in, out, I, index[4096 + I]); }
PATTERN(store_float4_stride_3) { move<float4>(in, out, I, I * 3); }
PATTERN(store_float4_permuted) { move<float4>(in, out, I, index[4096 + I]); }

// --- shared memory: 32 KB filled in order, then read or written by a rule
template <class Type> __device__ Type* filled(const unsigned char* in) {
    __shared__ Type tile[32768 / sizeof(Type)];
    #pragma unroll 1
    for (unsigned i = T; i < 32768 / sizeof(Type); i += blockDim.x) tile[i] = reinterpret_cast<const Type*>(in)[i];
    __syncthreads();
    return tile;
}
#define SHARED_LOAD(name, Type, place) \
    PATTERN(name) { \
        Type* tile = filled<Type>(in); \
        reinterpret_cast<Type*>(out)[I] = tile[(place) & (32768 / sizeof(Type) - 1)]; \
    }
#define SHARED_STORE(name, Type, place) \
    PATTERN(name) { \
        __shared__ Type tile[32768 / sizeof(Type)]; \
        tile[(place) & (32768 / sizeof(Type) - 1)] = reinterpret_cast<const Type*>(in)[I]; \
        __syncthreads(); \
        reinterpret_cast<Type*>(out)[I] = tile[((T ^ 32) * 0 + (place)) & (32768 / sizeof(Type) - 1)]; \
    }
SHARED_LOAD(shared_load_unit, float, T)
SHARED_LOAD(shared_load_stride_2, float, T * 2)
SHARED_LOAD(shared_load_stride_3, float, T * 3)
SHARED_LOAD(shared_load_stride_4, float, T * 4)
SHARED_LOAD(shared_load_stride_8, float, T * 8)
SHARED_LOAD(shared_load_stride_16, float, T * 16)
SHARED_LOAD(shared_load_stride_32, float, T * 32)
SHARED_LOAD(shared_load_stride_33, float, T * 33)
SHARED_LOAD(shared_load_reverse, float, 255 - T)
SHARED_LOAD(shared_load_same, float, 77)
SHARED_LOAD(shared_load_pairs, float, T / 2)
SHARED_LOAD(shared_load_two_words, float, (T & 1) * 32)
SHARED_LOAD(shared_load_gather, float, index[I])
SHARED_LOAD(shared_load_byte, unsigned char, T)
SHARED_LOAD(shared_load_byte_stride_4, unsigned char, T * 4)
SHARED_LOAD(shared_load_byte_stride_128, unsigned char, T * 128)
SHARED_LOAD(shared_load_short_stride_3, unsigned short, T * 3)
SHARED_LOAD(shared_load_double, double, T)
SHARED_LOAD(shared_load_double_stride_2, double, T * 2)
SHARED_LOAD(shared_load_double_stride_3, double, T * 3)
SHARED_LOAD(shared_load_double_stride_4, double, T * 4)
SHARED_LOAD(shared_load_double_stride_16, double, T * 16)
SHARED_LOAD(shared_load_double_stride_17, double, T * 17)
SHARED_LOAD(shared_load_double_same, double, 5)
SHARED_LOAD(shared_load_double_pairs, double, T / 2)
SHARED_LOAD(shared_load_double_halves, double, T % 16)
SHARED_LOAD(shared_load_double_gather, double, index[I])
SHARED_LOAD(shared_load_float4, float4, T)
SHARED_LOAD(shared_load_float4_stride_2, float4, T * 2)
SHARED_LOAD(shared_load_float4_stride_3, float4, T * 3)
SHARED_LOAD(shared_load_float4_stride_8, float4, T * 8)
SHARED_LOAD(shared_load_float4_same, float4, 5)
SHARED_LOAD(shared_load_float4_pairs, float4, T / 2)
SHARED_LOAD(shared_load_float4_quarters, float4, T % 8)
SHARED_LOAD(shared_load_float4_gather, float4, index[I])
SHARED_LOAD(shared_load_double_second_bit, double, T & ~2)
SHARED_LOAD(shared_load_double_pairs_in_one_half, double, LANE < 16 ? T / 2 : T)
SHARED_LOAD(shared_load_double_pairs_of_two_kinds, double, LANE < 16 ? T & ~1 : T & ~2)
SHARED_LOAD(shared_load_float4_second_bit, float4, T & ~2)
SHARED_LOAD(shared_load_float4_pairs_in_one_half, float4, LANE < 16 ? T / 2 : T)
SHARED_LOAD(shared_load_float4_pairs_of_two_kinds, float4, LANE < 16 ? T & ~1 : T & ~2)
SHARED_LOAD(shared_load_float4_pairs_in_one_quarter, float4, LANE < 8 ? T & ~1 : T)
SHARED_STORE(shared_store_float4_exchanged, float4, T ^ 3)
SHARED_STORE(shared_store_stride_2, float, T * 2)
SHARED_STORE(shared_store_stride_32, float, T * 32)
SHARED_STORE(shared_store_stride_33, float, T * 33)
SHARED_STORE(shared_store_byte_stride_4, unsigned char, T * 4)
SHARED_STORE(shared_store_double, double, T)
SHARED_STORE(shared_store_double_stride_2, double, T * 2)
SHARED_STORE(shared_store_double_stride_16, double, T * 16)
SHARED_STORE(shared_store_float4, float4, T)
SHARED_STORE(shared_store_float4_stride_2, float4, T * 2)
PATTERN(shared_some_half_double) {
    double* tile = filled<double>(in);
    if (LANE < 16) reinterpret_cast<double*>(out)[I] = tile[T * 2];
}
PATTERN(shared_some_odd_double) {
    double* tile = filled<double>(in);
    if (LANE & 1) reinterpret_cast<double*>(out)[I] = tile[T];
}
PATTERN(shared_some_quarter_float4) {
    float4* tile = filled<float4>(in);
    if (LANE < 8) reinterpret_cast<float4*>(out)[I] = tile[T * 2];
}
PATTERN(shared_some_odd_float4) {
    float4* tile = filled<float4>(in);
    if (LANE & 1) reinterpret_cast<float4*>(out)[I] = tile[T];
}

// --- whole algorithms
template <int PAD> __device__ void transpose(const float* in, float* out) {
    __shared__ float tile[32][32 + PAD];
    int width = 32 * gridDim.x, x = blockIdx.x * 32 + T, y = blockIdx.y * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][T] = in[(y + j) * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + T;
    y = blockIdx.x * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) out[(y + j) * width + x] = tile[T][threadIdx.y + j];
}
PATTERN(transpose_plain) { transpose<0>(reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out)); }
PATTERN(transpose_padded) { transpose<1>(reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out)); }
PATTERN(transpose_naive) {
    int x = blockIdx.x * 32 + T, y = blockIdx.y * 32 + threadIdx.y;
    move<float>(in, out, y * 128 + x, x * 128 + y);
}
PATTERN(reduction_interleaved) {
    __shared__ float sums[256];
    sums[T] = reinterpret_cast<const float*>(in)[I];
    __syncthreads();
    #pragma unroll 1
    for (unsigned s = 1; s < 256; s *= 2) {
        unsigned at = 2 * s * T;
        if (at < 256) sums[at] += sums[at + s];
        __syncthreads();
    }
    if (T == 0) reinterpret_cast<float*>(out)[blockIdx.x] = sums[0];
}
PATTERN(reduction_sequential) {
    __shared__ float sums[256];
    sums[T] = reinterpret_cast<const float*>(in)[I];
    __syncthreads();
    #pragma unroll 1
    for (unsigned s = 128; s > 0; s /= 2) {
        if (T < s) sums[T] += sums[T + s];
        __syncthreads();
    }
    if (T == 0) reinterpret_cast<float*>(out)[blockIdx.x] = sums[0];
}
PATTERN(stencil_shared) {
    __shared__ float line[258];
    const float* values = reinterpret_cast<const float*>(in);
    line[T + 1] = values[I + 1];
    if (T == 0) line[0] = values[I];
    if (T == 255) line[257] = values[I + 2];
    __syncthreads();
    reinterpret_cast<float*>(out)[I] = 0.25f * line[T] + 0.5f * line[T + 1] + 0.25f * line[T + 2];
}
PATTERN(stencil_global) {
    const float* values = reinterpret_cast<const float*>(in);
    unsigned x = blockIdx.x * 32 + T + 1, y = blockIdx.y * 8 + threadIdx.y + 1, at = y * 512 + x;
    reinterpret_cast<float*>(out)[at] = values[at] + values[at - 1] + values[at + 1] + values[at - 512] + values[at + 512];
}
PATTERN(loop_of_unequal_length) {
    unsigned v = I + 1, steps = 0;
    #pragma unroll 1
    while (v != 1) { v = v & 1 ? 3 * v + 1 : v / 2; steps++; }
    reinterpret_cast<unsigned*>(out)[I] = steps;
}

// --- atomics, which are modelled
PATTERN(atomic_unit) { atomicAdd(reinterpret_cast<int*>(out) + I, index[I]); }
PATTERN(atomic_same) { atomicAdd(reinterpret_cast<int*>(out) + blockIdx.x, index[I]); }
PATTERN(atomic_gather) { atomicAdd(reinterpret_cast<int*>(out) + index[I], index[I]); }
PATTERN(atomic_result) {
    int before = atomicAdd(reinterpret_cast<int*>(out) + index[I], 1);
    reinterpret_cast<int*>(out)[4096 + I] = before;
}
PATTERN(atomic_shared_few) {
    __shared__ int bins[256];
    bins[T] = 0;
    __syncthreads();
    atomicAdd(&bins[index[I] & 7], index[I]);
    __syncthreads();
    reinterpret_cast<int*>(out)[I] = bins[T];
}
PATTERN(atomic_few) { atomicAdd(reinterpret_cast<int*>(out) + (index[I] & 7), index[I]); }
PATTERN(atomic_shared) {
    __shared__ int bins[256];
    bins[T] = 0;
    __syncthreads();
    atomicAdd(&bins[index[I] & 255], index[I]);
    __syncthreads();
    reinterpret_cast<int*>(out)[I] = bins[T];
}
