// Kernels that load and store matrices, some wrongly; `// AT name` marks statements.
#include <mma.h>
using namespace nvcuda::wmma;
__device__ unsigned in_shared(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

// Another warp writes the row that a lane reads, with nothing in between.
extern "C" __global__ void loaded_early(unsigned* out) {
    __shared__ uint4 tile[8];
    if (threadIdx.x >= 32 && threadIdx.x < 40) tile[threadIdx.x - 32] = make_uint4(1, 2, 3, 4);
    if (threadIdx.x < 32) {
        unsigned r;
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"  // AT loaded_early
                     : "=r"(r) : "r"(in_shared(tile + threadIdx.x % 8)) : "memory");
        out[threadIdx.x] = r;
    }
}
extern "C" __global__ void stored_early(uint4* out) {
    __shared__ uint4 tile[8];
    if (threadIdx.x < 32)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                     : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(threadIdx.x) : "memory");
    if (threadIdx.x >= 32 && threadIdx.x < 40)
        out[threadIdx.x - 32] = tile[threadIdx.x - 32];  // AT stored_early
}
// The barrier orders what the threads do, and not the copies, for which nobody waits.
extern "C" __global__ void copied_early(unsigned* out, const uint4* in) {
    __shared__ uint4 tile[8];
    if (threadIdx.x >= 32 && threadIdx.x < 40)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     : : "r"(in_shared(tile + threadIdx.x - 32)), "l"(in + threadIdx.x - 32) : "memory");
    __syncthreads();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"  // AT copied_early
                 : "=r"(r) : "r"(in_shared(tile + threadIdx.x % 8)) : "memory");
    out[threadIdx.x] = r;
}
extern "C" __global__ void overwritten_early(uint4* out) {
    __shared__ uint4 tile[8];
    if (threadIdx.x < 8) tile[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = tile[threadIdx.x];
    if (threadIdx.x >= 32)
        asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"  // AT overwritten_early
                     : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(threadIdx.x) : "memory");
}
// A lane's registers come from the lanes that name rows: these write, all read.
extern "C" __global__ void in_order(unsigned* out) {
    __shared__ uint4 tile[32];
    tile[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r) : "r"(in_shared(tile + threadIdx.x)) : "memory");
    __syncwarp();
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x)), "r"(r) : "memory");
    __syncwarp();
    out[threadIdx.x] = reinterpret_cast<unsigned*>(tile)[threadIdx.x];
}
// The rows from `written` on are nobody's; of the second matrix all are written.
extern "C" __global__ void undefined_rows(unsigned* out, int written, int stored) {
    __shared__ uint4 tile[16];
    if (threadIdx.x < written || threadIdx.x >= 8 && threadIdx.x < 16) tile[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r[2];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(in_shared(tile + threadIdx.x % 16)) : "memory");
    if (threadIdx.x / 4 < stored) out[threadIdx.x] = r[0];
    out[32 + threadIdx.x] = r[1];
}
// Transposed, a lane's halves come from two rows, of which the odd ones are nobody's, or both.
extern "C" __global__ void undefined_columns(unsigned short* out, int halves, int even) {
    __shared__ uint4 tile[8];
    if (threadIdx.x < 8 && threadIdx.x % 2 == 0 && even) tile[threadIdx.x] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r) : "r"(in_shared(tile + threadIdx.x % 8)) : "memory");
    out[threadIdx.x] = r;
    if (halves > 1) out[32 + threadIdx.x] = r >> 16;
}
// Two warps store the same halves of columns, or others; nothing orders the two stores.
extern "C" __global__ void stored_twice(unsigned other) {
    __shared__ uint4 tile[8];
    unsigned r = threadIdx.x % 32;
    r |= (r << 16) + (threadIdx.x < 32 ? 0 : other);
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(r) : "memory");
}
extern "C" __global__ void undefined_matrix() {
    __shared__ uint4 tile[8];
    unsigned r;
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};"
                 : : "r"(in_shared(tile + threadIdx.x % 8)), "r"(r) : "memory");
}
extern "C" __global__ void opaque(float* out, const __half* in, int waits) {
    __shared__ __half tile[256];
    fragment<matrix_a, 16, 16, 16, __half, row_major> left;
    fragment<matrix_b, 16, 16, 16, __half, row_major> right;
    fragment<accumulator, 16, 16, 16, float> sum;
    fill_fragment(sum, 0.0f);
    load_matrix_sync(right, in, 16);
    for (int k = threadIdx.x; k < 256; k += blockDim.x) tile[k] = in[k];
    if (waits) __syncthreads();
    if (threadIdx.x < 32) {
        load_matrix_sync(left, tile, 16);
        mma_sync(sum, left, right, sum);
        store_matrix_sync(out, sum, 16, mem_row_major);
    }
}
extern "C" __global__ void pitched(unsigned* out, int pitch) {
    extern __shared__ uint4 rows[];
    for (int k = threadIdx.x; k < 32 * pitch; k += 32) rows[k] = make_uint4(1, 2, 3, 4);
    __syncwarp();
    unsigned r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"  // AT loaded
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(in_shared(rows + threadIdx.x * pitch)) : "memory");
    out[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"  // AT stored
                 : : "r"(in_shared(rows + threadIdx.x * pitch)), "r"(r[0]), "r"(r[1]) : "memory");
}
