// Cooperative groups: a block and its tiles of 32, 16 and 4 lanes: ranks, barriers, shuffles, votes, matches,
// reductions and scans; groups of the lanes that take the same branch.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

namespace cg = cooperative_groups;

#define PUT(value) out[row++ * n + i] = (unsigned)(value)

template <int size>
__device__ void tile_rows(const cg::thread_block& block, unsigned x, unsigned* out, int& row, int i, int n) {
    const auto tile = cg::tiled_partition<size>(block);
    PUT(tile.thread_rank());
    PUT(tile.meta_group_rank());
    PUT(tile.shfl_down(x, 1));
    PUT(tile.shfl_xor(x, size / 2));
    PUT(tile.shfl(x, size - 1));
    PUT(tile.ballot(x & 1));
    PUT(tile.any((x & 7) == 2));
    PUT(tile.match_any(x & 3));
    PUT(cg::reduce(tile, x, cg::plus<unsigned>()));
    PUT(cg::reduce(tile, (int)x, cg::less<int>()));
    PUT(cg::inclusive_scan(tile, x & 1023));
    PUT(cg::exclusive_scan(tile, x & 1023, cg::plus<unsigned>()));
    tile.sync();
}

extern "C" __global__ void groups(const unsigned* a, unsigned* out, int n) {
    const cg::thread_block block = cg::this_thread_block();
    const int i = blockIdx.x * blockDim.x + block.thread_rank();
    int row = 0;
    __shared__ unsigned words[128];
    const unsigned x = a[i];
    words[block.thread_rank()] = x;
    block.sync();
    PUT(words[(block.thread_rank() + 9) % block.size()]);
    PUT(block.group_index().x * 1000 + block.thread_index().x);
    tile_rows<32>(block, x, out, row, i, n);
    tile_rows<16>(block, x, out, row, i, n);
    tile_rows<4>(block, x, out, row, i, n);
    const auto warp = cg::tiled_partition<32>(block);
    const auto parts = cg::binary_partition(warp, (x & 1) != 0);
    PUT(parts.size());
    PUT(parts.thread_rank());
    PUT(cg::reduce(parts, x & 0xffff, cg::plus<unsigned>()));
    const auto labels = cg::labeled_partition(warp, x & 3);
    PUT(labels.size());
    PUT(labels.shfl(x, 0));
}
