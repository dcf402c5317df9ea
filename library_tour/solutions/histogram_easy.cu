// Count the lowercase letters in a text. The counts are initially zero.

constexpr int LETTERS = 26;

extern "C" __global__ void count_letters(const unsigned char* text, unsigned* counts, int n)
{
    __shared__ unsigned of_block[LETTERS];

    if (threadIdx.x < LETTERS)
        of_block[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        if (text[i] >= 'a' && text[i] <= 'z')
            atomicAdd(&of_block[text[i] - 'a'], 1);
    __syncthreads();
    if (threadIdx.x < LETTERS)
        atomicAdd(&counts[threadIdx.x], of_block[threadIdx.x]);
}
