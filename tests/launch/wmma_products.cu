// One product per type and shape of wmma, with the left matrix by rows or columns, in global memory.
#include <cuda_bf16.h>
#include <mma.h>

using namespace nvcuda::wmma;

template <int M, int N, int K, typename Factor, typename Left, typename Right, typename Element, typename Sum>
__device__ void product(Sum* out, const Sum* c, const Element* a, const Element* b, int lda, int ldb, int ldc) {
    fragment<matrix_a, M, N, K, Factor, Left> left;
    fragment<matrix_b, M, N, K, Factor, Right> right;
    fragment<accumulator, M, N, K, Sum> sum;
    load_matrix_sync(left, a, lda);
    load_matrix_sync(right, b, ldb);
    load_matrix_sync(sum, c, ldc, mem_col_major);
    mma_sync(sum, left, right, sum);
    store_matrix_sync(out, sum, ldc, mem_col_major);
}

#define PRODUCT(name, M, N, K, Factor, Element, Sum)                                                        \
    extern "C" __global__ void name##_rows(Sum* out, const Sum* c, const Element* a, const Element* b,      \
                                           int lda, int ldb, int ldc) {                                     \
        product<M, N, K, Factor, row_major, col_major>(out, c, a, b, lda, ldb, ldc);                        \
    }                                                                                                       \
    extern "C" __global__ void name##_columns(Sum* out, const Sum* c, const Element* a, const Element* b,   \
                                              int lda, int ldb, int ldc) {                                  \
        product<M, N, K, Factor, col_major, row_major>(out, c, a, b, lda, ldb, ldc);                        \
    }

PRODUCT(s8_16x16x16, 16, 16, 16, signed char, signed char, int)
PRODUCT(s8_32x8x16, 32, 8, 16, signed char, signed char, int)
PRODUCT(u8_8x32x16, 8, 32, 16, unsigned char, unsigned char, int)
PRODUCT(u8_32x8x16, 32, 8, 16, unsigned char, unsigned char, int)
PRODUCT(tf32_16x16x8, 16, 16, 8, precision::tf32, float, float)
PRODUCT(f64_8x8x4, 8, 8, 4, double, double, double)
PRODUCT(bf16_32x8x16, 32, 8, 16, __nv_bfloat16, __nv_bfloat16, float)
