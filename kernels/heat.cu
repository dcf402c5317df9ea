// Heat diffusion on a plate: in each step a cell moves toward the mean of its four neighbours. A step reads one copy of
// the plate and writes the other. The cells at the edge keep their temperature. A step uses every cell five times; at
// best, each cell is read from memory once and written once.
//
//   heat_strided     a grid-stride loop over the cells; launched with one thread, with one block, and with many
//   heat_cells       one thread per cell, on a 2-D grid. The last blocks reach beyond the plate, so bounds are tested
//   heat_unbounded   the same without the test. Wrong on purpose: it reads and writes outside the plate
//   heat_tiled       a block first loads its tile and a halo of one cell into shared memory. Where the neighbours are
//                    in the caches anyway, the tile adds more instructions than it saves
//   heat_rows<n>     a thread updates four cells of a row, 16 bytes at a time, and goes down n rows. The row below
//                    stays in registers, where it becomes the middle row and then the row above
//
// The sum is symmetric: a plate that equals its mirror image stays that way to the last bit. Two kernels check that:
//
//   asymmetry            compares the first row with the last, one thread per column, and prints where they differ
//   asymmetry_unbounded  the same without a bounds test: the threads beyond the last column compare cells of the second
//                        row with memory beyond the plate. Wrong on purpose

#ifndef __CUDACC_RTC__  // NVRTC has printf() built in
#include <cstdio>
#endif

#include "heated.cuh"

__device__ float heated_at(const float* in, int row, int column, int rows, int columns, float rate)
{
    const float* cell = in + size_t(row) * columns + column;
    if (row == 0 || row == rows - 1 || column == 0 || column == columns - 1)
        return *cell;
    return heated(*cell, cell[-1], cell[1], cell[-columns], cell[columns], rate);
}

extern "C" __global__ void heat_strided(const float* in, float* out, int rows, int columns, float rate)
{
    size_t cells = size_t(rows) * columns;
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < cells; i += size_t(gridDim.x) * blockDim.x)
        out[i] = heated_at(in, i / columns, i % columns, rows, columns, rate);
}

extern "C" __global__ void heat_cells(const float* in, float* out, int rows, int columns, float rate)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row < rows && column < columns)
        out[size_t(row) * columns + column] = heated_at(in, row, column, rows, columns, rate);
}

extern "C" __global__ void heat_unbounded(const float* in, float* out, int rows, int columns, float rate)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    out[size_t(row) * columns + column] = heated_at(in, row, column, rows, columns, rate);
}

constexpr int TILE_X = 32;
constexpr int TILE_Y = 8;

// A block has 32 x 8 threads.
extern "C" __global__ void heat_tiled(const float* in, float* out, int rows, int columns, float rate)
{
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];

    int left = blockIdx.x * TILE_X - 1;
    int top = blockIdx.y * TILE_Y - 1;
    for (int i = threadIdx.y * TILE_X + threadIdx.x; i < (TILE_Y + 2) * (TILE_X + 2); i += TILE_X * TILE_Y) {
        int row = top + i / (TILE_X + 2);
        int column = left + i % (TILE_X + 2);
        if (row >= 0 && row < rows && column >= 0 && column < columns)
            tile[i / (TILE_X + 2)][i % (TILE_X + 2)] = in[size_t(row) * columns + column];
    }
    __syncthreads();
    int x = threadIdx.x + 1;
    int y = threadIdx.y + 1;
    int row = top + y;
    int column = left + x;
    if (row >= rows || column >= columns)
        return;
    float cell = tile[y][x];
    if (row > 0 && row < rows - 1 && column > 0 && column < columns - 1)
        cell = heated(cell, tile[y][x - 1], tile[y][x + 1], tile[y - 1][x], tile[y + 1][x], rate);
    out[size_t(row) * columns + column] = cell;
}

// With more rows per thread, fewer rows are read twice; with fewer, more threads have loads in flight.
template <int height>
__global__ void heat_rows(const float* in, float* out, int rows, int columns, float rate)
{
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int top = height * (blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= columns || top >= rows)
        return;
    heat_down<height>(in, out, rows, columns, rate, column, top, rows);
}

__device__ void compare_ends(const float* plate, int rows, int columns, int column)
{
    float difference = fabsf(plate[column] - plate[size_t(rows - 1) * columns + column]);
    if (difference > 0.1f)
        printf("column %d: the first and the last row differ by %.2f\n", column, difference);
}

extern "C" __global__ void asymmetry(const float* plate, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (column < columns)
        compare_ends(plate, rows, columns, column);
}

extern "C" __global__ void asymmetry_unbounded(const float* plate, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    compare_ends(plate, rows, columns, column);
}
