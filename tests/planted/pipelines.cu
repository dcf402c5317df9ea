// Copies of `cp.async` through the libraries, all of them waited for: by groups, pipelines of a block and of a thread,
// and a barrier. There is no mistake in them.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
#include <cuda/barrier>
namespace cg = cooperative_groups;
extern "C" __global__ void groups(float* out, const float* in) {
    __shared__ float s[256];
    auto block = cg::this_thread_block();
    cg::memcpy_async(block, s, in + blockIdx.x * 256, sizeof(float) * 256);
    cg::wait(block);
    out[blockIdx.x * 256 + threadIdx.x] = s[255 - threadIdx.x];
}
extern "C" __global__ void piped(float* out, const float* in, int n) {
    __shared__ float s[2][256];
    auto block = cg::this_thread_block();
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto pipe = cuda::make_pipeline(block, &state);
    float sum = 0;
    for (int compute = 0, fetch = 0; compute < n; compute++) {
        for (; fetch < n && fetch < compute + 2; fetch++) {
            pipe.producer_acquire();
            cuda::memcpy_async(block, s[fetch % 2], in + fetch * 256, sizeof(float) * 256, pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        sum += s[compute % 2][255 - threadIdx.x];
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void threads(float* out, const float* in, int n) {
    __shared__ float s[4][256];
    auto pipe = cuda::make_pipeline();
    float sum = 0;
    int f = 0;
    for (int c = 0; c < n; c++) {
        for (; f < n && f < c + 4; f++) {
            pipe.producer_acquire();
            cuda::memcpy_async(&s[f % 4][threadIdx.x], in + f * 256 + threadIdx.x, cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        __syncthreads();
        sum += s[c % 4][255 - threadIdx.x];
        __syncthreads();
        pipe.consumer_release();
    }
    out[threadIdx.x] = sum;
}
extern "C" __global__ void barred(float* out, const float* in) {
    __shared__ float s[256];
    __shared__ cuda::barrier<cuda::thread_scope_block> bar;
    auto block = cg::this_thread_block();
    if (threadIdx.x == 0) init(&bar, blockDim.x);
    block.sync();
    cuda::memcpy_async(block, s, in, sizeof(float) * 256, bar);
    bar.arrive_and_wait();
    out[threadIdx.x] = s[255 - threadIdx.x];
}
