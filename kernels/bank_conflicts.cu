// Shared memory is 32 banks, each 4 bytes wide; neighbouring words lie in neighbouring banks, and each bank hands out
// one word at a time. Lanes of a warp that want different words of one bank wait for one another; lanes that want the
// same word get it together.
//
//   read_stride   each lane reads the word at lane * stride, again and again, one row of banks further each time:
//                 stride 1 and 3 meet every bank once, 2 every other bank twice, 32 one bank 32 times, and 0 is the
//                 same word for all
//
// The words are numbered, so that the sum tells whether the right ones were read. A block has 1024 threads.

constexpr int BANKS = 32;
constexpr int WORDS = 1024;

extern "C" __global__ void read_stride(unsigned* sums, int stride, int repeats)
{
    __shared__ volatile unsigned words[WORDS];  // volatile: every read is one, though the sum could be known
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();

    unsigned place = threadIdx.x % BANKS * stride;
    unsigned sum = 0;
#pragma unroll 8
    for (int i = 0; i < repeats; i++)
        sum += words[(place + BANKS * i) % WORDS];
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
