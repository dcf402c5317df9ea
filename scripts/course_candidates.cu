// Ways that compete with those of kernels/ for a place there; scripts/course_bars.py measures them side by side.
//
//   histogram_threads<bins, loads>   a byte for each bin and thread, in the thread's own bank: no atomics. Emptied into
//                                    the block's counters before a byte can overflow
//   histogram_registers<loads>       ten bins of six bits each in one 64-bit register
//   transpose_twice<t, b, hints>     as transpose_vector, two 4 x 4 squares a thread: eight loads in flight; with the
//                                    hints that what is read and written is not used again soon, or without
//   sum_strided<loads>               as sum_once, a thread's loads a whole grid apart

constexpr int BLOCK = 256;

template <int bins>
__device__ int bin_of(float value)
{
    return value >= 0.0f && value < 1.0f ? int(value * bins) : bins;
}

// Dynamic shared memory: (bins / 4 + 1) * 4 * BLOCK bytes.
template <int bins, int loads>
__global__ void __launch_bounds__(BLOCK) histogram_threads(const float* values, unsigned* counts, unsigned* work, int n)
{
    constexpr int words = bins / 4 + 1;
    extern __shared__ unsigned packed[];
    __shared__ unsigned mine[4 * words];
    unsigned char* bytes = reinterpret_cast<unsigned char*>(packed) + 4 * threadIdx.x;

    for (int i = threadIdx.x; i < words * BLOCK; i += BLOCK)
        packed[i] = 0;
    for (int i = threadIdx.x; i < 4 * words; i += BLOCK)
        mine[i] = 0;
    __syncthreads();

    auto count = [bytes](float value) {
        int bin = bin_of<bins>(value);
        bytes[bin / 4 * (4 * BLOCK) + bin % 4]++;
    };
    auto empty = [mine = &mine[0], packed = &packed[0]]() {
        __syncthreads();
        for (int word = threadIdx.x / 32; word < words; word += BLOCK / 32) {
            unsigned even = 0, odd = 0;
            for (int i = threadIdx.x % 32; i < BLOCK; i += 32) {
                unsigned four = packed[word * BLOCK + i];
                even += four & 0x00ff00ff;
                odd += four >> 8 & 0x00ff00ff;
                packed[word * BLOCK + i] = 0;
            }
            even = __reduce_add_sync(0xffffffff, even);
            odd = __reduce_add_sync(0xffffffff, odd);
            if (threadIdx.x % 32 == 0) {
                mine[4 * word] += even & 0xffff;
                mine[4 * word + 1] += odd & 0xffff;
                mine[4 * word + 2] += even >> 16;
                mine[4 * word + 3] += odd >> 16;
            }
        }
        __syncthreads();
    };

    const float4* groups = reinterpret_cast<const float4*>(values);
    unsigned tiles = n / (4 * loads * BLOCK);
    int counted = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 group[loads];
#pragma unroll
        for (int i = 0; i < loads; i++)
            group[i] = __ldcs(groups + (tile * loads + i) * BLOCK + threadIdx.x);
        if (counted > 255 - 4 * loads) {
            empty();
            counted = 0;
        }
#pragma unroll
        for (int i = 0; i < loads; i++) {
            count(group[i].x);
            count(group[i].y);
            count(group[i].z);
            count(group[i].w);
        }
        counted += 4 * loads;
    }
    empty();
    for (unsigned i = tiles * 4 * loads * BLOCK + blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK)
        count(values[i]);
    empty();
    for (int bin = threadIdx.x; bin <= bins; bin += BLOCK)
        if (mine[bin])
            atomicAdd(&counts[bin], mine[bin]);
}

template <int loads>
__global__ void __launch_bounds__(BLOCK) histogram_registers(const float* values, unsigned* counts, unsigned* work,
                                                             int n)
{
    constexpr int bins = 10;
    __shared__ unsigned mine[bins];
    if (threadIdx.x < bins)
        mine[threadIdx.x] = 0;
    __syncthreads();

    unsigned sums[bins] = {};
    unsigned long long packed = 0;
    // One outside [0, 1) is shifted out.
    auto count = [&packed](float value) {
        int bin = bin_of<bins>(value);
        packed += bin < bins ? 1ull << (6 * bin) : 0;
    };
    auto empty = [&packed, &sums]() {
#pragma unroll
        for (int bin = 0; bin < bins; bin++)
            sums[bin] += unsigned(packed >> (6 * bin)) & 63;
        packed = 0;
    };

    const float4* groups = reinterpret_cast<const float4*>(values);
    unsigned tiles = n / (4 * loads * BLOCK);
    int counted = 0;
    for (unsigned tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 group[loads];
#pragma unroll
        for (int i = 0; i < loads; i++)
            group[i] = __ldcs(groups + (tile * loads + i) * BLOCK + threadIdx.x);
        if (counted > 63 - 4 * loads) {
            empty();
            counted = 0;
        }
#pragma unroll
        for (int i = 0; i < loads; i++) {
            count(group[i].x);
            count(group[i].y);
            count(group[i].z);
            count(group[i].w);
        }
        counted += 4 * loads;
    }
    empty();
    for (unsigned i = tiles * 4 * loads * BLOCK + blockIdx.x * BLOCK + threadIdx.x; i < n; i += gridDim.x * BLOCK) {
        count(values[i]);
        empty();
    }
#pragma unroll
    for (int bin = 0; bin < bins; bin++) {
        unsigned sum = __reduce_add_sync(0xffffffff, sums[bin]);
        if (threadIdx.x % 32 == 0)
            atomicAdd(&mine[bin], sum);
    }
    __syncthreads();
    if (threadIdx.x < bins && mine[threadIdx.x])
        atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}

struct Square {
    float4 row[4];
};

__device__ Square turned(const Square& s)
{
    return {make_float4(s.row[0].x, s.row[1].x, s.row[2].x, s.row[3].x),
            make_float4(s.row[0].y, s.row[1].y, s.row[2].y, s.row[3].y),
            make_float4(s.row[0].z, s.row[1].z, s.row[2].z, s.row[3].z),
            make_float4(s.row[0].w, s.row[1].w, s.row[2].w, s.row[3].w)};
}

// A block has half as many rows of threads as transpose_vector's. Rows and columns are multiples of the tile.
template <int tile_size, int band, bool hints>
__global__ void transpose_twice(const float* in, float* out, int rows, int columns)
{
    constexpr int words = tile_size / 4;
    __shared__ float4 tile[tile_size][words];

    int number = blockIdx.y * gridDim.x + blockIdx.x;
    int first = number / (band * gridDim.x) * band;
    int height = min(band, gridDim.y - first);
    int place = number % (band * gridDim.x);
    int tile_row = (first + place % height) * tile_size;
    int tile_column = place / height * tile_size;

    Square square[2];
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            size_t row = tile_row + 4 * (threadIdx.y + half * words / 2) + i;
            auto place = reinterpret_cast<const float4*>(in + row * columns + tile_column + 4 * threadIdx.x);
            square[half].row[i] = hints ? __ldcs(place) : *place;
        }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        Square s = turned(square[half]);
        for (int i = 0; i < 4; i++)
            tile[4 * threadIdx.x + i][(threadIdx.y + half * words / 2) ^ threadIdx.x] = s.row[i];
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; i++) {
        int y = threadIdx.y + i * words / 2;
        auto place = reinterpret_cast<float4*>(out + size_t(tile_column + y) * rows + tile_row + 4 * threadIdx.x);
        if (hints)
            __stcs(place, tile[y][threadIdx.x ^ y / 4]);
        else
            *place = tile[y][threadIdx.x ^ y / 4];
    }
}

__device__ unsigned finished;

__device__ float block_sum(float value)
{
    __shared__ float warp_sums[32];
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        warp_sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? warp_sums[threadIdx.x] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    return value;
}

// n is a multiple of four.
template <int loads>
__global__ void sum_strided(const float* x, float* sums, float* total, int n)
{
    __shared__ bool last;
    const float4* groups = reinterpret_cast<const float4*>(x);
    unsigned stride = gridDim.x * blockDim.x;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (; i + (loads - 1) * stride < n / 4; i += loads * stride) {
        float4 group[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            group[k] = __ldg(groups + i + k * stride);
#pragma unroll
        for (int k = 0; k < loads; k++)
            sum += (group[k].x + group[k].y) + (group[k].z + group[k].w);
    }
    for (; i < n / 4; i += stride)
        sum += (groups[i].x + groups[i].y) + (groups[i].z + groups[i].w);
    sum = block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = 0.0f;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += blockDim.x)
        sum += __ldcg(sums + k);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        *total = sum;
}
