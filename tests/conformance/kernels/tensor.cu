// Matrix fragments of a warp: 16 x 16 x 16 products through wmma and mma.sync. The entries are small integers
// and quarters, so that every sum is exact in any order.
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// c + a b in single precision, a row by row and b by columns, then by rows.
extern "C" __global__ void half_product(const __half* a, const __half* b, const float* c, float* out) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right_rows;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::load_matrix_sync(right_rows, b, 16);
    wmma::load_matrix_sync(sum, c, 16, wmma::mem_row_major);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
    wmma::fill_fragment(sum, 0.5f);
    wmma::mma_sync(sum, left, right_rows, sum);
    for (int k = 0; k < sum.num_elements; ++k) sum.x[k] *= 2.0f;
    wmma::store_matrix_sync(out + 256, sum, 16, wmma::mem_col_major);
}

// The result in half precision, through shared memory.
extern "C" __global__ void half_result(const __half* a, const __half* b, __half* out) {
    __shared__ __half tile[256];
    for (int k = threadIdx.x; k < 256; k += 32) tile[k] = a[k];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::load_matrix_sync(left, tile, 16);
    wmma::load_matrix_sync(right, b, 16);
    wmma::fill_fragment(sum, __float2half(1.0f));
    wmma::mma_sync(sum, left, right, sum);
    __syncwarp();
    wmma::store_matrix_sync(tile, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int k = threadIdx.x; k < 256; k += 32) out[k] = tile[k];
}
