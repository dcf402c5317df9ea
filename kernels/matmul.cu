// Multiply matrices, c = a b: an m x k matrix by a k x n one, both row-major. Each multiply-add needs two elements, so
// the question is where they come from: global memory, shared memory or registers.
//
//   matmul_one_block      a thread's index in its block is also its element's index, so one block covers the matrix
//   matmul_elements       one thread per element, in many blocks: k elements of a and k of b from global memory for each
//   matmul_tile<width>    a block loads tiles of a and b into shared memory, where `width` threads read each element
//   matmul_registers<4>   a thread computes 4 x 4 elements from 4 + 4 values in registers: 8 reads of shared memory for
//                         16 multiply-adds, instead of two for each one
//   matmul_registers<8>   8 x 8 elements per thread: 16 reads for 64 multiply-adds
//   matmul_pipelined      8 x 16 elements per thread. While the multiply-adds of a step execute, the next elements are
//                         read from shared memory, and the next tiles are copied there with cp.async
//   matmul_hopper         elements of half precision, multiplied by tensor cores with wgmma, and tiles that one thread
//                         copies several stages ahead through tensor maps; for compute capability 9.0 alone
//
// The kernels take any m, n and k, except that matmul_pipelined needs n in multiples of four, and matmul_hopper n and k
// in multiples of eight.

#ifndef __CUDACC_RTC__
#include <cuda.h>
#endif

// All blocks compute the same elements, since nothing here depends on blockIdx.
extern "C" __global__ void matmul_one_block(const float* a, const float* b, float* c, int m, int n, int k)
{
    int row = threadIdx.y;
    int column = threadIdx.x;
    if (row >= m || column >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}

extern "C" __global__ void matmul_elements(const float* a, const float* b, float* c, int m, int n, int k)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= m || column >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += a[size_t(row) * k + i] * b[size_t(i) * n + column];
    c[size_t(row) * n + column] = sum;
}

// An element of a matrix, or 0 outside it.
__device__ float element(const float* matrix, int row, int column, int rows, int columns)
{
    return row < rows && column < columns ? matrix[size_t(row) * columns + column] : 0.0f;
}

// A block has width x width threads. In each phase it loads one tile of a and one of b, then multiplies them.
template <int width>
__global__ void matmul_tile(const float* a, const float* b, float* c, int m, int n, int k)
{
    __shared__ float tile_a[width][width];
    __shared__ float tile_b[width][width];

    int row = blockIdx.y * width + threadIdx.y;
    int column = blockIdx.x * width + threadIdx.x;
    float sum = 0.0f;
    for (int start = 0; start < k; start += width) {
        tile_a[threadIdx.y][threadIdx.x] = element(a, row, start + threadIdx.x, m, k);
        tile_b[threadIdx.y][threadIdx.x] = element(b, start + threadIdx.y, column, k, n);
        __syncthreads();  // the tiles are complete
        for (int i = 0; i < width; i++)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();  // no thread reads them any more
    }
    if (row < m && column < n)
        c[size_t(row) * n + column] = sum;
}

// Read four adjacent elements of shared memory with one load.
__device__ void read_four(float* to, const float* from)
{
    float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x;
    to[1] = four.y;
    to[2] = four.z;
    to[3] = four.w;
}

// A block of 16 x 16 threads computes a square of 16 * own rows and columns. The rows and columns of a thread are groups
// of four, 64 apart, so that a warp reads adjacent groups.
template <int own>
__global__ __launch_bounds__(256) void matmul_registers(const float* a, const float* b, float* c, int m, int n, int k)
{
    constexpr int side = 16 * own;
    constexpr int depth = 8;
    constexpr int padding = 4;  // lanes that store a column of a then reach different banks
    __shared__ __align__(16) float tile_a[depth][side + padding];  // transposed, so that four rows are adjacent
    __shared__ __align__(16) float tile_b[depth][side];

    int first_row = blockIdx.y * side;
    int first_column = blockIdx.x * side;
    int x = threadIdx.x % 16;
    int y = threadIdx.x / 16;
    float sum[own][own] = {};
    for (int start = 0; start < k; start += depth) {
        for (int i = threadIdx.x; i < side * depth; i += 256) {
            tile_a[i % depth][i / depth] = element(a, first_row + i / depth, start + i % depth, m, k);
            tile_b[i / side][i % side] = element(b, start + i / side, first_column + i % side, k, n);
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < depth; step++) {
            float of_a[own], of_b[own];
#pragma unroll
            for (int i = 0; i < own; i += 4) {
                read_four(of_a + i, &tile_a[step][4 * y + 16 * i]);
                read_four(of_b + i, &tile_b[step][4 * x + 16 * i]);
            }
#pragma unroll
            for (int i = 0; i < own; i++)
#pragma unroll
                for (int j = 0; j < own; j++)
                    sum[i][j] += of_a[i] * of_b[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
        for (int j = 0; j < own; j++) {
            int row = first_row + 4 * y + 16 * (i / 4 * 4) + i % 4;
            int column = first_column + 4 * x + 16 * (j / 4 * 4) + j % 4;
            if (row < m && column < n)
                c[size_t(row) * n + column] = sum[i][j];
        }
}

// The shape of the pipelined kernel. Each of its 2 x 4 warps has 64 x 64 elements, and each thread 8 x 16.
constexpr int ROWS = 128, COLUMNS = 256, DEPTH = 16, THREADS = 256;
constexpr int WARP = 64, OWN_ROWS = 8, OWN_COLUMNS = 16;
constexpr int A_STRIDE = ROWS + 4;  // padded as above
constexpr int A_SIZE = DEPTH * A_STRIDE, STAGE = A_SIZE + DEPTH * COLUMNS;  // floats in the tile of a and in both tiles

// Copy `bytes` from global to shared memory in the background, without registers. Write zeros if not `inside`.
template <int bytes>
__device__ void copy_async(float* to, const float* from, bool inside)
{
    unsigned address = __cvta_generic_to_shared(to);
    int read = inside ? bytes : 0;
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(read) : "memory");
}

// Wait for the copies of this thread, then for those of the other threads of the block.
__device__ void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
}

// The elements of each tile of a and b that one thread copies.
struct Copier {
    static constexpr int A_COPIES = ROWS * 8 / THREADS, B_COPIES = DEPTH * COLUMNS / 4 / THREADS;
    const float* a[A_COPIES];
    const float* b;
    int n;
    int a_column, b_row;
    float* to_a;
    float* to_b;

    // A warp copies eight adjacent elements of each of four rows of a, stored as columns, and groups of four of b.
    __device__ Copier(const float* a, const float* b, int m, int n, int k, int first_row, int first_column,
                      float* tiles)
        : n(n), a_column(threadIdx.x % 8), b_row(threadIdx.x / (COLUMNS / 4))
    {
        int a_row = threadIdx.x / 8;
        int b_column = threadIdx.x % (COLUMNS / 4) * 4;
        // Instead of rows and columns outside the matrices, it copies the last ones again, whose products are not used.
#pragma unroll
        for (int i = 0; i < A_COPIES; i++)
            this->a[i] = a + size_t(min(first_row + a_row + i * (THREADS / 8), m - 1)) * k + a_column;
        this->b = b + size_t(b_row) * n + min(first_column + b_column, n - 4);
        to_a = tiles + a_column * A_STRIDE + a_row;
        to_b = tiles + A_SIZE + b_row * COLUMNS + b_column;
    }

    // Start copying the next `depth` columns of a and rows of b.
    template <bool whole>
    __device__ void start(int stage, int depth)
    {
#pragma unroll
        for (int i = 0; i < A_COPIES; i++) {
#pragma unroll
            for (int column = 0; column < DEPTH; column += 8) {
                bool inside = whole || a_column + column < depth;
                float* to = to_a + stage * STAGE + column * A_STRIDE + i * (THREADS / 8);
                copy_async<4>(to, inside ? a[i] + column : a[i] - a_column, inside);
            }
            a[i] += depth;
        }
#pragma unroll
        for (int i = 0; i < B_COPIES; i++) {
            int row = i * (DEPTH / B_COPIES);
            bool inside = whole || b_row + row < depth;
            float* to = to_b + stage * STAGE + row * COLUMNS;
            copy_async<16>(to, inside ? b + size_t(row) * n : b - size_t(b_row) * n, inside);
        }
        b += size_t(depth) * n;
    }
};

// The product times alpha, as in BLAS. The scaling costs one multiplication per element at the end, and frees the
// assembler: without it, the four sums of a 16-byte store must be in adjacent registers throughout the loop. Then more
// multiply-adds have two operands in the same bank of the register file, which are read one after another: 374 of the
// 2,048 in the loop, compared with 170 with the scaling (nvcc 13.0).
extern "C" __global__ __launch_bounds__(THREADS, 1) void matmul_pipelined(
    const float* a, const float* b, float* c, int m, int n, int k, float alpha)
{
    extern __shared__ __align__(16) float tiles[];  // two stages of a tile of a and a tile of b

    // Blocks that are likely to run at the same time share rows and columns: groups of eight rows of blocks, column by
    // column.
    int block_rows = (m + ROWS - 1) / ROWS;
    int block_columns = (n + COLUMNS - 1) / COLUMNS;
    int group = blockIdx.x / (8 * block_columns);
    int in_group = blockIdx.x % (8 * block_columns);
    int height = min(8, block_rows - 8 * group);
    int first_row = (8 * group + in_group % height) * ROWS;
    int first_column = in_group / height * COLUMNS;

    // Adjacent lanes share an address of a or of b (bits 0 and 1 of the lane), so that a read by a warp takes one
    // wavefront instead of two.
    int warp = threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    int lane_row = lane >> 1 & 7;
    int lane_column = lane & 1 | lane >> 4 << 1;
    int row = warp % 2 * WARP + 4 * lane_row;
    int column = warp / 2 * WARP + 4 * lane_column;

    float sum[OWN_ROWS][OWN_COLUMNS] = {};
    float of_a[2][OWN_ROWS], of_b[2][OWN_COLUMNS];
    auto read = [&](int into, int stage, int step) {
        const float* from = tiles + stage * STAGE;
#pragma unroll
        for (int i = 0; i < OWN_ROWS; i += 4)
            read_four(of_a[into] + i, from + step * A_STRIDE + row + 8 * i);
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j += 4)
            read_four(of_b[into] + j, from + A_SIZE + step * COLUMNS + column + 4 * j);
    };

    // Only the first tile may be partial: the loop copies full ones.
    Copier copier(a, b, m, n, k, first_row, first_column, tiles);
    int count = (k + DEPTH - 1) / DEPTH;
    copier.start<false>(0, k - (count - 1) * DEPTH);
    wait_for_copies();
    read(0, 0, 0);
    int stage = 0;
#pragma unroll 1
    for (int tile = 0; tile < count; tile++) {
        if (tile + 1 < count)
            copier.start<true>(1 - stage, DEPTH);
#pragma unroll
        for (int step = 0; step < DEPTH; step++) {
            if (step == DEPTH - 1) {
                wait_for_copies();
                stage = 1 - stage;
            }
            read((step + 1) % 2, stage, (step + 1) % DEPTH);
            // Go down one column, its even rows and then its odd ones, and back up the next. So two consecutive
            // multiply-adds share a factor, which is read from the register file once, and their other factors lie in
            // the same one of its two banks, which leaves the other bank for the sums.
#pragma unroll
            for (int j = 0; j < OWN_COLUMNS; j++)
#pragma unroll
                for (int i = 0; i < OWN_ROWS; i++) {
                    int order = j % 2 ? OWN_ROWS - 1 - i : i;
                    int own_row = 2 * order % OWN_ROWS + 2 * order / OWN_ROWS;
                    sum[own_row][j] += of_a[step % 2][own_row] * of_b[step % 2][j];
                }
        }
    }
#pragma unroll
    for (int i = 0; i < OWN_ROWS; i++)
#pragma unroll
        for (int j = 0; j < OWN_COLUMNS; j += 4) {
            int to_row = first_row + row + 8 * (i / 4 * 4) + i % 4;
            int to_column = first_column + column + 4 * j;
            if (to_row < m && to_column < n)
                *reinterpret_cast<float4*>(c + size_t(to_row) * n + to_column) = make_float4(
                    alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
        }
}

// Tensor cores of compute capability 9.0 multiply in half precision and add in single precision. The file has this part
// only when it is compiled for sm_90a.
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#ifdef __CUDACC_RTC__
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
#endif

// A block computes TILE_ROWS x TILE_COLUMNS elements. Each of its two multiplying warpgroups has 64 rows.
constexpr int TILE_ROWS = 128, TILE_COLUMNS = 256, TILE_DEPTH = 64, STAGES = 4, HOPPER_THREADS = 384;
// A box of b has 64 columns, because the swizzle limits its rows to 128 bytes.
constexpr int BOX = 64, BOXES = TILE_COLUMNS / BOX;
constexpr int A_BYTES = TILE_ROWS * TILE_DEPTH * 2, BOX_BYTES = TILE_DEPTH * BOX * 2;
constexpr int STAGE_BYTES = A_BYTES + BOXES * BOX_BYTES;

__device__ unsigned in_shared(const void* address)
{
    return __cvta_generic_to_shared(address);
}

// The barriers of the stages: `full` counts the bytes of the copies, and `empty` the warpgroups that have multiplied.
struct Barrier {
    unsigned long long word;

    __device__ void init(int arrivals)
    {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(&word)), "r"(arrivals) : "memory");
    }
    __device__ void expect(int bytes)
    {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                     ::"r"(in_shared(&word)), "r"(bytes) : "memory");
    }
    __device__ void arrive()
    {
        asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(in_shared(&word)) : "memory");
    }
    __device__ void wait(int parity)
    {
        int passed = 0;
        while (!passed)
            asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.s32 %0, 1, 0, p; }"
                         : "=r"(passed) : "r"(in_shared(&word)), "r"(parity) : "memory");
    }
};

__device__ void copy_box(void* to, const CUtensorMap& map, int column, int row, Barrier& full)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 ::"r"(in_shared(to)), "l"(&map), "r"(column), "r"(row), "r"(in_shared(&full.word)) : "memory");
}

// Describe a swizzled tile for wgmma. Its parts of eight rows of 128 bytes are 1,024 bytes apart. A tile of b consists
// of boxes, `beside` bytes apart.
__device__ unsigned long long descriptor(const char* start, int beside)
{
    unsigned long long address = in_shared(start);
    return (address & 0x3FFFF) >> 4 | (unsigned long long)(beside >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62;
}

// The numbers of the 128 operands in which a thread holds its sums.
#define TEN(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define SUMS                                                                                                      \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)    \
    TEN(10) TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127}"
#define FOUR(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)

// Add the product of 64 x 16 elements of a and 16 x 256 of b. The last operand says that b is row-major.
__device__ void multiply(float (&sum)[128], unsigned long long a, unsigned long long b)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " SUMS ", %128, %129, 1, 1, 1, 0, 1;"
                 : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48), SIXTEEN(64), SIXTEEN(80), SIXTEEN(96),
                   SIXTEEN(112)
                 : "l"(a), "l"(b));
}

extern "C" __global__ __launch_bounds__(HOPPER_THREADS, 1) void matmul_hopper(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int m, int n, int k)
{
    extern __shared__ __align__(1024) char swizzled_tiles[];  // STAGES tiles of a and of b
    __shared__ Barrier full[STAGES], empty[STAGES];

    // As above: groups of eight rows of blocks, column by column.
    int block_rows = (m + TILE_ROWS - 1) / TILE_ROWS;
    int block_columns = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
    int group = blockIdx.x / (8 * block_columns);
    int in_group = blockIdx.x % (8 * block_columns);
    int height = min(8, block_rows - 8 * group);
    int first_row = (8 * group + in_group % height) * TILE_ROWS;
    int first_column = in_group / height * TILE_COLUMNS;

    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            full[stage].init(1);
            empty[stage].init(2);
        }
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();

    int warpgroup = threadIdx.x / 128;
    int count = (k + TILE_DEPTH - 1) / TILE_DEPTH;
    if (warpgroup == 0) {
        // The multiplying warpgroups need the registers: 2 * 128 * 240 and 128 * 24 are fewer than 65,536.
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 0)
            for (int tile = 0; tile < count; tile++) {
                int stage = tile % STAGES;
                // The first round finds all stages empty: it waits for the phase before the first one.
                empty[stage].wait(tile / STAGES % 2 ^ 1);
                char* to = swizzled_tiles + stage * STAGE_BYTES;
                full[stage].expect(STAGE_BYTES);
                copy_box(to, a, tile * TILE_DEPTH, first_row, full[stage]);
                for (int box = 0; box < BOXES; box++) {
                    int column = first_column + box * BOX;
                    copy_box(to + A_BYTES + box * BOX_BYTES, b, column, tile * TILE_DEPTH, full[stage]);
                }
            }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    int first_of_a = (warpgroup - 1) * 64;
    float sum[128] = {};
    for (int tile = 0; tile < count; tile++) {
        int stage = tile % STAGES;
        full[stage].wait(tile / STAGES % 2);
        char* from = swizzled_tiles + stage * STAGE_BYTES;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int step = 0; step < TILE_DEPTH; step += 16)
            multiply(sum, descriptor(from + first_of_a * 128 + step * 2, 16),
                     descriptor(from + A_BYTES + step * 128, BOX_BYTES));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        // The products of this tile may still run, but those of the one before have finished, so its stage is free.
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (tile > 0 && threadIdx.x % 128 == 0)
            empty[(tile - 1) % STAGES].arrive();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");

    // A warp has 16 rows, and a lane two adjacent elements of each eight columns in two of them.
    int row = first_row + first_of_a + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
    int column = first_column + threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 128; i += 2) {
        int to_row = row + i / 2 % 2 * 8;
        int to_column = column + i / 4 * 8;
        if (to_row < m && to_column < n)
            *reinterpret_cast<float2*>(c + size_t(to_row) * n + to_column) = make_float2(sum[i], sum[i + 1]);
    }
}
#endif
