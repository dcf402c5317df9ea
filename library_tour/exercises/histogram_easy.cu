// Count the lowercase letters in a text. The counts are initially zero.
//
// For now, nothing keeps a thread from counting too early or from adding too early.

constexpr int LETTERS = 26;

extern "C" __global__ void count_letters(const unsigned char* text, unsigned* counts, int n)
{
    __shared__ unsigned of_block[LETTERS];

    if (threadIdx.x < LETTERS)
        of_block[threadIdx.x] = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (text[i] >= 'a' && text[i] <= 'z')
            atomicAdd(&of_block[text[i] - 'a'], 1);
    if (threadIdx.x < LETTERS)
        atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
}
