// Constant memory holds 64 KiB that kernels only read. Its cache delivers one word at a time to all lanes of a warp, and
// an instruction can take that word as an operand: a coefficient that all threads share costs no load.
//
//   polynomial_global     one load from global memory per coefficient
//   polynomial_shared     each block copies the coefficients to shared memory first: still one load per coefficient
//   polynomial_constant   the coefficients in __constant__ memory, which the host writes before the launch
//   polynomial_argument   the coefficients as an argument passed by value: arguments are also in constant memory
//   polynomial_registers  each coefficient that is loaded from global memory is used for several elements while it is in
//                         a register
//
//   look_up_constant      a table in constant memory, from which a warp reads as many different words as the caller
//                         requests: the cache delivers them one after another
//   look_up_shared        the same table in shared memory: 32 words in 32 banks take one wavefront
//   look_up_global        the same table in global memory: 32 words in one line of the L1 cache come together
//
// A polynomial has `terms` coefficients, starting with the highest power. A block has BLOCK threads.

constexpr int BLOCK = 256;
constexpr int MOST_TERMS = BLOCK;  // a thread copies at most one coefficient

__constant__ float constant_coefficients[MOST_TERMS];

template <int terms>
struct Coefficients {
    float of[terms];
};

template <int terms>
__device__ float horner(float x, const float* coefficients)
{
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < terms; i++)
        sum = sum * x + coefficients[i];
    return sum;
}

template <int terms>
__global__ void polynomial_global(const float* __restrict__ x, const float* __restrict__ coefficients, float* y, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = horner<terms>(x[i], coefficients);
}

template <int terms>
__global__ void polynomial_shared(const float* __restrict__ x, const float* __restrict__ coefficients, float* y, int n)
{
    __shared__ float shared[terms];
    if (threadIdx.x < terms)
        shared[threadIdx.x] = coefficients[threadIdx.x];
    __syncthreads();

    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = horner<terms>(x[i], shared);
}

template <int terms>
__global__ void polynomial_constant(const float* __restrict__ x, float* y, int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = horner<terms>(x[i], constant_coefficients);
}

template <int terms>
__global__ void polynomial_argument(const float* __restrict__ x, const Coefficients<terms> coefficients, float* y,
                                    int n)
{
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        y[i] = horner<terms>(x[i], coefficients.of);
}

template <int terms, int each>
__global__ void polynomial_registers(const float* __restrict__ x, const float* __restrict__ coefficients, float* y,
                                     int n)
{
    int first = blockIdx.x * BLOCK * each + threadIdx.x;
    float value[each], sum[each];
#pragma unroll
    for (int k = 0; k < each; k++) {
        int i = first + k * BLOCK;
        value[k] = i < n ? x[i] : 0.0f;
        sum[k] = 0.0f;
    }
#pragma unroll 16
    for (int term = 0; term < terms; term++) {
        float coefficient = coefficients[term];
#pragma unroll
        for (int k = 0; k < each; k++)
            sum[k] = sum[k] * value[k] + coefficient;
    }
#pragma unroll
    for (int k = 0; k < each; k++) {
        int i = first + k * BLOCK;
        if (i < n)
            y[i] = sum[k];
    }
}

// The table has ROWS rows of LANES words. In each round a thread reads the word at its index in every row. Then the
// index is incremented, so that no word can stay in a register.
constexpr int LANES = 32;
constexpr int ROWS = BLOCK / LANES;

__constant__ unsigned constant_table[ROWS * LANES];

__device__ unsigned sum_of_places(const unsigned* table, unsigned words, int rounds)
{
    unsigned index = threadIdx.x % words;
    unsigned sum = 0;
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int row = 0; row < ROWS; row++)
            sum += table[row * LANES + index];
        index = (index + 1) % LANES;
    }
    return sum;
}

extern "C" __global__ void look_up_constant(unsigned* sums, unsigned words, int rounds)
{
    sums[blockIdx.x * BLOCK + threadIdx.x] = sum_of_places(constant_table, words, rounds);
}

extern "C" __global__ void look_up_shared(const unsigned* __restrict__ table, unsigned* sums, unsigned words, int rounds)
{
    __shared__ unsigned shared[ROWS * LANES];
    shared[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    sums[blockIdx.x * BLOCK + threadIdx.x] = sum_of_places(shared, words, rounds);
}

extern "C" __global__ void look_up_global(const unsigned* __restrict__ table, unsigned* sums, unsigned words, int rounds)
{
    sums[blockIdx.x * BLOCK + threadIdx.x] = sum_of_places(table, words, rounds);
}
