// printf in a kernel writes into a buffer on the device. The host prints the buffer's text when it synchronises.
//
//   root<Quiet>, root<Prints>    square roots by Newton's method. The second prints the steps of one thread, chosen by
//                                its index; the output of all threads would be long and unordered
//   every_thread                 each thread prints a line in one call; the calls of different threads have no defined
//                                order
//   in_two_calls                 each thread prints its line in two calls, and other threads print between them
//   shuffle_down<width>          a lane's number, and the number that it reads from the lane two further on, in groups
//                                of `width` lanes; if that lane is outside the group, a lane reads its own number

#ifndef __CUDACC_RTC__  // NVRTC has printf() built in
#include <cstdio>
#endif

struct Quiet {
    static __device__ void step(int, float) {}
};

struct Prints {
    static __device__ void step(int step, float guess) { printf("step %d: %.7f\n", step, guess); }
};

template <class Debug>
__global__ void root(const float* x, float* roots, int n, int watched)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float guess = 1.0f;
    for (int step = 1; step <= 6; step++) {
        guess = 0.5f * (guess + x[i] / guess);
        if (i == watched)
            Debug::step(step, guess);
    }
    roots[i] = guess;
}

extern "C" __global__ void every_thread(int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        printf("block %u, thread %u\n", blockIdx.x, threadIdx.x);
}

extern "C" __global__ void in_two_calls(int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        printf("block %u, ", blockIdx.x);
        printf("thread %u\n", threadIdx.x);
    }
}

template <int width>
__global__ void shuffle_down(int* read)
{
    int lane = threadIdx.x;
    read[lane] = __shfl_down_sync(0xffffffff, lane, 2, width);
    printf("(%d,%d)\n", lane, read[lane]);
}
