// A step of the heated plate (heat.cu) on one strip of its rows. Other devices have the rows above and below. A strip
// keeps a copy of the nearest row of each, its halo, as its first and its last row.
//
//   heat_strip   all rows except the halo, which must already have arrived
//   heat_edges   only the first and the last of these rows, which the neighbours wait for
//   heat_inside  the rows in between, which need no halo: they are computed while the edges are sent
//
// The number of columns is a multiple of four.

#include "heated.cuh"

constexpr int HEIGHT = 2;  // rows that a thread computes

__device__ void heat_between(const float* in, float* out, int rows, int columns, float rate, int first, int end)
{
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int top = first + HEIGHT * (blockIdx.y * blockDim.y + threadIdx.y);
    if (column < columns && top < end)
        heat_down<HEIGHT>(in, out, rows, columns, rate, column, top, end);
}

extern "C" __global__ void heat_strip(const float* in, float* out, int rows, int columns, float rate)
{
    heat_between(in, out, rows, columns, rate, 1, rows - 1);
}

// The grid has one row of blocks per edge. A strip with a single row needs only one row of blocks.
extern "C" __global__ void heat_edges(const float* in, float* out, int rows, int columns, float rate)
{
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int row = blockIdx.y == 0 ? 1 : rows - 2;
    if (column < columns)
        heat_down<1>(in, out, rows, columns, rate, column, row, row + 1);
}

extern "C" __global__ void heat_inside(const float* in, float* out, int rows, int columns, float rate)
{
    heat_between(in, out, rows, columns, rate, 2, rows - 2);
}
