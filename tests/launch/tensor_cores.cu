// Matrices in shared memory, as kernels for tensor cores use them: ldmatrix, stmatrix, movmatrix, cp.async and mma.sync.
#include <cuda_fp16.h>

__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Rows of 8 halves, 16 bytes each. A lane names the row that `rows` has for it, and stores the registers that it gets.
#define LOAD_KERNEL(name, count, modifiers, ...)                                                                      \
    extern "C" __global__ void name(unsigned* out, const uint4* in, const int* rows) {                                \
        __shared__ uint4 tile[64];                                                                                    \
        for (int k = threadIdx.x; k < 64; k += 32) tile[k] = in[k];                                                   \
        __syncwarp();                                                                                                 \
        unsigned r[4] = {};                                                                                           \
        asm volatile("ldmatrix.sync.aligned.m8n8." modifiers ".b16 " __VA_ARGS__);                                    \
        for (int k = 0; k < count; k++) out[threadIdx.x * count + k] = r[k];                                          \
    }
#define ROW in_shared(tile + rows[threadIdx.x])
LOAD_KERNEL(load_1, 1, "x1.shared", "{%0}, [%1];" : "=r"(r[0]) : "r"(ROW))
LOAD_KERNEL(load_2, 2, "x2.shared", "{%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(ROW))
LOAD_KERNEL(load_4, 4, "x4.shared", "{%0, %1, %2, %3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(ROW))
LOAD_KERNEL(load_1_transposed, 1, "x1.trans.shared", "{%0}, [%1];" : "=r"(r[0]) : "r"(ROW))
LOAD_KERNEL(load_2_transposed, 2, "x2.trans.shared::cta", "{%0, %1}, [%2];" : "=r"(r[0]), "=r"(r[1]) : "r"(ROW))
LOAD_KERNEL(load_4_transposed, 4, "x4.trans", "{%0, %1, %2, %3}, [%4];"
            : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "l"(tile + rows[threadIdx.x]))

// The other way: registers go to the rows that lanes name, and all 64 rows to `out`.
#define STORE_KERNEL(name, count, modifiers, ...)                                                                     \
    extern "C" __global__ void name(uint4* out, const unsigned* in, const int* rows) {                                \
        __shared__ uint4 tile[64];                                                                                    \
        for (int k = threadIdx.x; k < 64; k += 32) tile[k] = make_uint4(0, 0, 0, 0);                                  \
        __syncwarp();                                                                                                 \
        unsigned r[count];                                                                                            \
        for (int k = 0; k < count; k++) r[k] = in[threadIdx.x * count + k];                                           \
        asm volatile("stmatrix.sync.aligned.m8n8." modifiers ".shared.b16 " __VA_ARGS__ : "memory");                  \
        __syncwarp();                                                                                                 \
        for (int k = threadIdx.x; k < 64; k += 32) out[k] = tile[k];                                                  \
    }
STORE_KERNEL(store_1, 1, "x1", "[%0], {%1};" : : "r"(ROW), "r"(r[0]))
STORE_KERNEL(store_2, 2, "x2", "[%0], {%1, %2};" : : "r"(ROW), "r"(r[0]), "r"(r[1]))
STORE_KERNEL(store_4, 4, "x4", "[%0], {%1, %2, %3, %4};"
             : : "r"(ROW), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
STORE_KERNEL(store_1_transposed, 1, "x1.trans", "[%0], {%1};" : : "r"(ROW), "r"(r[0]))
STORE_KERNEL(store_2_transposed, 2, "x2.trans", "[%0], {%1, %2};" : : "r"(ROW), "r"(r[0]), "r"(r[1]))
STORE_KERNEL(store_4_transposed, 4, "x4.trans", "[%0], {%1, %2, %3, %4};"
             : : "r"(ROW), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))

// The transposed matrix in the registers of a warp.
extern "C" __global__ void move(unsigned* out, const unsigned* in) {
    unsigned r = in[threadIdx.x];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(r));
    out[threadIdx.x] = r;
}

// A product of matrices of halves, by rows: c = a b, with sums in single precision. Each block of 4 warps has a tile of
// 64 x 64, and goes through the depth in steps of 32, copied a step ahead. Columns and depth are multiples of 8. Each
// wait can be left out, to see whether that is found.
#ifndef COPIED
#define COPIED asm volatile("cp.async.wait_group 0;" : : : "memory")
#endif
#ifndef ARRIVED
#define ARRIVED __syncthreads()
#endif
#ifndef USED
#define USED __syncthreads()
#endif
constexpr int TILE = 64, STEP = 32, A_PITCH = STEP + 8, B_PITCH = TILE + 8;

__device__ void copy_row_piece(void* to, const __half* from, bool inside) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" : : "r"(in_shared(to)), "l"(from), "r"(inside ? 16 : 0));
}

extern "C" __global__ void __launch_bounds__(128) product(__half* c, const __half* a, const __half* b, int m, int n, int k) {
    __shared__ __align__(16) __half a_tile[2][TILE * A_PITCH];
    __shared__ __align__(16) __half b_tile[2][STEP * B_PITCH];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
    int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    auto fetch = [&](int stage, int depth) {
        for (int piece = threadIdx.x; piece < TILE * STEP / 8; piece += 128) {
            int row = piece / (STEP / 8), column = piece % (STEP / 8) * 8;
            bool inside = first_row + row < m && depth + column < k;
            const __half* from = inside ? a + (size_t)(first_row + row) * k + depth + column : a;
            copy_row_piece(a_tile[stage] + row * A_PITCH + column, from, inside);
        }
        for (int piece = threadIdx.x; piece < STEP * TILE / 8; piece += 128) {
            int row = piece / (TILE / 8), column = piece % (TILE / 8) * 8;
            bool inside = depth + row < k && first_column + column < n;
            const __half* from = inside ? b + (size_t)(depth + row) * n + first_column + column : b;
            copy_row_piece(b_tile[stage] + row * B_PITCH + column, from, inside);
        }
        asm volatile("cp.async.commit_group;");
    };
    float sum[2][4][4] = {};
    fetch(0, 0);
    for (int depth = 0, stage = 0; depth < k; depth += STEP, stage ^= 1) {
        COPIED;
        ARRIVED;
        if (depth + STEP < k) fetch(stage ^ 1, depth + STEP);
        for (int inner = 0; inner < STEP; inner += 16) {
            unsigned left[2][4], right[2][4];
            for (int i = 0; i < 2; i++) {
                int row = warp_row + 16 * i + lane % 16, column = inner + lane / 16 * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(left[i][0]), "=r"(left[i][1]), "=r"(left[i][2]), "=r"(left[i][3])
                             : "r"(in_shared(a_tile[stage] + row * A_PITCH + column)));
            }
            for (int j = 0; j < 2; j++) {
                int row = inner + lane % 16, column = warp_column + 16 * j + lane / 16 * 8;
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                             : "=r"(right[j][0]), "=r"(right[j][1]), "=r"(right[j][2]), "=r"(right[j][3])
                             : "r"(in_shared(b_tile[stage] + row * B_PITCH + column)));
            }
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++) {
                    float* s = sum[i][j];
                    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                                 : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])
                                 : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]),
                                   "r"(right[j / 2][j % 2 * 2]), "r"(right[j / 2][j % 2 * 2 + 1]));
                }
        }
    }
    // The sums go through the tile of a's, so that whole rows are written.
    USED;
    __half* tile = a_tile[0];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            __half2 upper = __floats2half2_rn(sum[i][j][0], sum[i][j][1]);
            __half2 lower = __floats2half2_rn(sum[i][j][2], sum[i][j][3]);
            int row = warp_row + 16 * i + lane % 16, column = warp_column + 8 * j;
            asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" : :
                         "r"(in_shared(tile + row * B_PITCH + column)),
                         "r"(reinterpret_cast<unsigned&>(upper)), "r"(reinterpret_cast<unsigned&>(lower)) : "memory");
        }
    __syncthreads();
    for (int piece = threadIdx.x; piece < TILE * TILE / 8; piece += 128) {
        int row = piece / (TILE / 8), column = piece % (TILE / 8) * 8;
        if (first_row + row < m && first_column + column < n)
            *reinterpret_cast<uint4*>(c + (size_t)(first_row + row) * n + first_column + column) =
                *reinterpret_cast<uint4*>(tile + row * B_PITCH + column);
    }
}
