// Heat on a plate: a cell moves toward the mean of its four neighbours, from one copy of the plate to the other. Its
// edge keeps its temperature. Every cell is read five times and written once; memory should see it once each.
//
//   heat_strided     threads stride over the cells: launched with one thread, with one block, with many
//   heat_cells       a thread a cell, in two dimensions; the last blocks reach beyond the plate, so bounds are tested
//   heat_unbounded   the same without that test. Wrong: it reads and writes what is not the plate's
//   heat_tiled       a block first brings its tile, and a rim of one cell, to shared memory. Where the caches catch the
//                    neighbours' reads anyway, it costs more instructions than it saves loads
//   heat_rows<n>     a thread takes four cells side by side, 16 bytes at once, and walks down n rows: what was below is
//                    in its registers when it becomes the middle, and then what is above
//
// The sum is symmetric: a plate that equals its mirror image stays so, to the last bit.

// What a cell becomes; `rate` is the diffusivity times the time step over the square of the cells' distance.
__device__ float heated(float cell, float left, float right, float above, float below, float rate)
{
    return cell + rate * ((left + right) + (above + below) - 4.0f * cell);
}

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

// A block is 32 x 8 threads.
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

// Columns are a multiple of four. A longer walk reads fewer rows twice, a shorter one leaves more threads, whose loads
// are in flight together.
template <int height>
__global__ void heat_rows(const float* in, float* out, int rows, int columns, float rate)
{
    int column = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    int top = height * (blockIdx.y * blockDim.y + threadIdx.y);
    if (column >= columns || top >= rows)
        return;
    const float* place = in + column;  // of a row's four cells
    auto load = [=](int row) { return *reinterpret_cast<const float4*>(place + size_t(row) * columns); };

    float4 above = load(max(top - 1, 0));
    float4 cells = load(top);
#pragma unroll
    for (int row = top; row < top + height; row++) {
        if (row >= rows)
            return;
        float4 below = load(min(row + 1, rows - 1));
        float4 next = cells;
        if (row > 0 && row < rows - 1) {
            const float* here = place + size_t(row) * columns;
            // The neighbours beyond the four are another thread's, and in the nearest cache.
            if (column > 0)
                next.x = heated(cells.x, here[-1], cells.y, above.x, below.x, rate);
            next.y = heated(cells.y, cells.x, cells.z, above.y, below.y, rate);
            next.z = heated(cells.z, cells.y, cells.w, above.z, below.z, rate);
            if (column + 4 < columns)
                next.w = heated(cells.w, cells.z, here[4], above.w, below.w, rate);
        }
        __stcs(reinterpret_cast<float4*>(out + size_t(row) * columns + column), next);  // not read in this pass
        above = cells;
        cells = below;
    }
}
