// Attention without the table of all weights: softmax(Q K^T / sqrt(d)) V with 64 columns, tile by tile.
//
//   attention_tiled   one query a thread, and 32 keys and values at a time in shared memory. The maximum and the sum of
//                     the weights run along: where the maximum grows, what has been added up is scaled down

constexpr int SIZE = 64, KEYS = 32;

extern "C" __global__ void attention_tiled(
    float* out, const float* queries, const float* keys, const float* values, int n)
{
    __shared__ float key[KEYS][SIZE], value[KEYS][SIZE];
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t head = size_t(blockIdx.y) * n * SIZE;
    float own[SIZE], mixed[SIZE], scores[KEYS];
    float maximum = __int_as_float(0xff800000), sum = 0;  // minus infinity
    for (int j = 0; j < SIZE; j++) {
        own[j] = queries[head + row * SIZE + j] * 0.125f;
        mixed[j] = 0;
    }
    for (int start = 0; start < n; start += KEYS) {
        for (int j = threadIdx.x; j < KEYS * SIZE; j += blockDim.x) {
            key[j / SIZE][j % SIZE] = keys[head + start * SIZE + j];
            value[j / SIZE][j % SIZE] = values[head + start * SIZE + j];
        }
        __syncthreads();
        float highest = maximum;
        for (int k = 0; k < KEYS; k++) {
            float score = 0;
            for (int j = 0; j < SIZE; j++)
                score += own[j] * key[k][j];
            scores[k] = score;
            highest = fmaxf(highest, score);
        }
        const float scale = __expf(maximum - highest);
        sum *= scale;
        for (int j = 0; j < SIZE; j++)
            mixed[j] *= scale;
        for (int k = 0; k < KEYS; k++) {
            const float weight = __expf(scores[k] - highest);
            sum += weight;
            for (int j = 0; j < SIZE; j++)
                mixed[j] += weight * value[k][j];
        }
        maximum = highest;
        __syncthreads();
    }
    for (int j = 0; j < SIZE; j++)
        out[head + row * SIZE + j] = mixed[j] / sum;
}
