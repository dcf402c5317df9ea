// Shared by the kernels of the heated plate: the next value of a cell, and a thread that goes down several rows.

#pragma once

// Return the next value of a cell; `rate` is the diffusivity times the time step over the squared cell spacing.
__device__ inline float heated(float cell, float left, float right, float above, float below, float rate)
{
    return cell + rate * ((left + right) + (above + below) - 4.0f * cell);
}

// Update four cells in each of up to `height` rows, starting at `top` and stopping before `end`. The row below stays in
// registers, where it becomes the middle row and then the row above. The number of columns is a multiple of four. The
// edge of the plate stays as it is.
template <int height>
__device__ void heat_down(const float* in, float* out, int rows, int columns, float rate, int column, int top, int end)
{
    const float* place = in + column;  // the four cells of a row
    auto load = [=](int row) { return *reinterpret_cast<const float4*>(place + size_t(row) * columns); };

    float4 above = load(max(top - 1, 0));
    float4 cells = load(top);
#pragma unroll
    for (int row = top; row < top + height; row++) {
        if (row >= end)
            return;
        float4 below = load(min(row + 1, rows - 1));
        float4 next = cells;
        if (row > 0 && row < rows - 1) {
            const float* here = place + size_t(row) * columns;
            // The outer neighbours belong to other threads, and are in the L1 cache.
            if (column > 0)
                next.x = heated(cells.x, here[-1], cells.y, above.x, below.x, rate);
            next.y = heated(cells.y, cells.x, cells.z, above.y, below.y, rate);
            next.z = heated(cells.z, cells.y, cells.w, above.z, below.z, rate);
            if (column + 4 < columns)
                next.w = heated(cells.w, cells.z, here[4], above.w, below.w, rate);
        }
        // A streaming store, because the cells are not read again in this step.
        __stcs(reinterpret_cast<float4*>(out + size_t(row) * columns + column), next);
        above = cells;
        cells = below;
    }
}
