// One product per type and shape of wmma, with the left matrix by rows or columns, in global or shared memory.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda::wmma;

template <int M, int N, int K, typename Factor, typename Sum, typename Left, typename Right, typename Stored>
__device__ void product(Stored* out, const Stored* c, const void* a, const void* b, int lda, int ldb, int ldc) {
    fragment<matrix_a, M, N, K, Factor, Left> left;
    fragment<matrix_b, M, N, K, Factor, Right> right;
    fragment<accumulator, M, N, K, Sum> sum;
    using Element = typename helper_traits<Factor>::storage_element_type;
    load_matrix_sync(left, static_cast<const Element*>(a), lda);
    load_matrix_sync(right, static_cast<const Element*>(b), ldb);
    load_matrix_sync(sum, c, ldc, mem_col_major);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(out, sum, ldc, mem_col_major);
}

#define PRODUCT(name, M, N, K, Factor, Sum)                                                                            \
    extern "C" __global__ void name##_rows(Sum* out, const Sum* c, const void* a, const void* b, int x, int y, int z) { \
        product<M, N, K, Factor, Sum, row_major, col_major>(out, c, a, b, x, y, z);                                     \
    }                                                                                                                   \
    extern "C" __global__ void name##_columns(Sum* out, const Sum* c, const void* a, const void* b, int x, int y,       \
                                              int z) {                                                                  \
        product<M, N, K, Factor, Sum, col_major, row_major>(out, c, a, b, x, y, z);                                     \
    }

PRODUCT(s8_16x16x16, 16, 16, 16, signed char, int)
PRODUCT(s8_32x8x16, 32, 8, 16, signed char, int)
PRODUCT(u8_8x32x16, 8, 32, 16, unsigned char, int)
PRODUCT(u8_32x8x16, 32, 8, 16, unsigned char, int)
PRODUCT(tf32_16x16x8, 16, 16, 8, precision::tf32, float)
PRODUCT(f64_8x8x4, 8, 8, 4, double, double)
PRODUCT(bf16_32x8x16, 32, 8, 16, __nv_bfloat16, float)
