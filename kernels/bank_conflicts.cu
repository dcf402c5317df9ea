// Shared memory consists of 32 banks of 4-byte words, and adjacent words are in adjacent banks. A bank serves
// one word at a time: lanes of a warp that read different words from one bank are served one after another (a bank
// conflict), and lanes that read the same word are served together.
//
//   read_stride   each lane starts at word lane * stride, and each of its later reads is 32 words further on. With
//                 stride 1 or 3, every lane reads from a different bank. With 2, pairs of lanes share a bank. With 32,
//                 all lanes read from one bank, and with 0, all lanes read the same word
//
// The value of a word is its index, so that the sum shows whether the right words were read. A block has 1024 threads.

constexpr int BANKS = 32;
constexpr int WORDS = 1024;

extern "C" __global__ void read_stride(unsigned* sums, int stride, int repeats)
{
    __shared__ volatile unsigned words[WORDS];  // volatile, so that the compiler keeps every read
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();

    unsigned first = threadIdx.x % BANKS * stride;
    unsigned sum = 0;
#pragma unroll 8
    for (int i = 0; i < repeats; i++)
        sum += words[(first + BANKS * i) % WORDS];
    sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
