// Sort numbers of 32 bits by their digits of 4 bits, the lowest first. Each digit takes three launches.
//
//   count_digits     sorts each block's 256 numbers by the digit in shared memory, and counts each digit there
//   scan_counts      turns the counts of all blocks, one digit after the other, into the places where their numbers
//                    begin
//   scatter_digits   puts each number at its place

constexpr int BLOCK = 256, DIGITS = 16;

// The sum of the values of the threads before this one in the block, and of all in `total`.
__device__ unsigned scan_block(unsigned value, unsigned* sums, unsigned& total)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned inclusive = value;
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned other = __shfl_up_sync(~0u, inclusive, distance);
        if (lane >= distance)
            inclusive += other;
    }
    if (lane == 31)
        sums[warp] = inclusive;
    __syncthreads();
    unsigned before = 0;
    total = 0;
    for (int other = 0; other < warps; other++) {
        if (other < warp)
            before += sums[other];
        total += sums[other];
    }
    __syncthreads();
    return before + inclusive - value;
}

extern "C" __global__ void count_digits(unsigned* keys, unsigned* counts, int shift)
{
    __shared__ unsigned tile[BLOCK], sums[BLOCK / 32], bins[DIGITS];
    const int t = threadIdx.x, i = blockIdx.x * BLOCK + t;
    if (t < DIGITS)
        bins[t] = 0;
    unsigned key = keys[i];
    for (int bit = 0; bit < 4; bit++) {
        unsigned one = key >> (shift + bit) & 1, ones;
        unsigned rank = scan_block(one, sums, ones);
        tile[one ? BLOCK - ones + rank : t - rank] = key;
        __syncthreads();
        key = tile[t];
        __syncthreads();
    }
    keys[i] = key;
    atomicAdd(&bins[key >> shift & (DIGITS - 1)], 1);
    __syncthreads();
    if (t < DIGITS)
        counts[t * gridDim.x + blockIdx.x] = bins[t];
}

extern "C" __global__ void scan_counts(unsigned* counts, int n)
{
    __shared__ unsigned sums[BLOCK / 32];
    unsigned carry = 0;
    for (int start = 0; start < n; start += BLOCK) {
        int i = start + threadIdx.x;
        unsigned total, before = scan_block(i < n ? counts[i] : 0, sums, total);
        if (i < n)
            counts[i] = carry + before;
        carry += total;
    }
}

extern "C" __global__ void scatter_digits(const unsigned* keys, unsigned* sorted, const unsigned* starts, int shift)
{
    __shared__ unsigned firsts[DIGITS];
    const int t = threadIdx.x;
    unsigned key = keys[blockIdx.x * BLOCK + t], digit = key >> shift & (DIGITS - 1);
    __shared__ unsigned digits[BLOCK];
    digits[t] = digit;
    __syncthreads();
    // The block's numbers are sorted, so that each digit begins where its left neighbour is another.
    if (t == 0 || digits[t - 1] != digit)
        firsts[digit] = t;
    __syncthreads();
    sorted[starts[digit * gridDim.x + blockIdx.x] + t - firsts[digit]] = key;
}
