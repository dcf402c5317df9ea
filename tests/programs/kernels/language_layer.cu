// One layer of a small language model: attention to what came before, then two products with a function between them.
//
//   normalize         each row minus its mean, over its deviation, times a weight: a warp a row
//   multiply          C = A B + bias, and what C had before if it is added to: tiles of 16 x 16 through shared memory
//   attend            one warp a query and head, whose lanes take keys, and then columns of the values
//   gelu              x (1 + tanh(...)) / 2, element by element

constexpr int TILE = 16, WARP = 32, MOST_KEYS = 256;

__device__ float sum_of_warp(float value)
{
    for (int distance = WARP / 2; distance; distance /= 2)
        value += __shfl_xor_sync(~0u, value, distance);
    return value;
}

__device__ float maximum_of_warp(float value)
{
    for (int distance = WARP / 2; distance; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(~0u, value, distance));
    return value;
}

extern "C" __global__ void normalize(float* out, const float* in, const float* weight, int rows, int width)
{
    const int lane = threadIdx.x % WARP, row = (blockIdx.x * blockDim.x + threadIdx.x) / WARP;
    if (row >= rows)
        return;
    in += row * width;
    float sum = 0, squares = 0;
    for (int j = lane; j < width; j += WARP)
        sum += in[j];
    const float mean = sum_of_warp(sum) / width;
    for (int j = lane; j < width; j += WARP)
        squares += (in[j] - mean) * (in[j] - mean);
    const float scale = rsqrtf(sum_of_warp(squares) / width + 1e-5f);
    for (int j = lane; j < width; j += WARP)
        out[row * width + j] = (in[j] - mean) * scale * weight[j];
}

extern "C" __global__ void multiply(
    float* c, const float* a, const float* b, const float* bias, int rows, int columns, int inner, bool adds)
{
    __shared__ float of_a[TILE][TILE + 1], of_b[TILE][TILE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int start = 0; start < inner; start += TILE) {
        of_a[y][x] = row < rows && start + x < inner ? a[row * inner + start + x] : 0;
        of_b[y][x] = column < columns && start + y < inner ? b[(start + y) * columns + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++)
            sum += of_a[y][k] * of_b[k][x];
        __syncthreads();
    }
    if (row < rows && column < columns) {
        float* place = c + row * columns + column;
        *place = (adds ? *place : 0) + sum + bias[column];
    }
}

// The rows of `qkv` hold the queries, the keys and the values of all heads, one behind the other.
extern "C" __global__ void attend(float* out, const float* qkv, int heads, int size)
{
    __shared__ float weights[MOST_KEYS];
    const int lane = threadIdx.x, query = blockIdx.x, head = blockIdx.y, width = heads * size;
    const float* own = qkv + query * 3 * width + head * size;
    const float* keys = qkv + width + head * size;
    const float* values = keys + width;
    float maximum = __int_as_float(0xff800000), sum = 0;  // minus infinity
    for (int key = lane; key <= query; key += WARP) {
        float product = 0;
        for (int j = 0; j < size; j++)
            product += own[j] * keys[key * 3 * width + j];
        weights[key] = product * rsqrtf(float(size));
        maximum = fmaxf(maximum, weights[key]);
    }
    maximum = maximum_of_warp(maximum);
    for (int key = lane; key <= query; key += WARP) {
        weights[key] = expf(weights[key] - maximum);
        sum += weights[key];
    }
    sum = sum_of_warp(sum);
    __syncwarp();
    for (int j = lane; j < size; j += WARP) {
        float mixed = 0;
        for (int key = 0; key <= query; key++)
            mixed += weights[key] * values[key * 3 * width + j];
        out[query * width + head * size + j] = mixed / sum;
    }
}

extern "C" __global__ void gelu(float* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = 0.5f * x[i] * (1.0f + tanhf(0.7978845608f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}
