// The places of the elements of an array in memory.

#pragma once

// The sizes of an array's dimensions and the distances between neighbours, in elements; the last dimension varies
// fastest. Dimensions that are contiguous have been merged, so most arrays have one.
struct Layout {
    long long sizes[8];
    long long steps[8];
    int dimensions;
};

__device__ inline long long place_of(long long i, const Layout& layout)
{
    long long place = 0;
    for (int d = layout.dimensions - 1; d > 0; --d) {
        place += i % layout.sizes[d] * layout.steps[d];
        i /= layout.sizes[d];
    }
    return place + i * layout.steps[0];
}
