// The best local alignment of pairs of sequences, after Smith and Waterman: its score alone.
//
//   align   one pair a block, one letter of the first sequence a thread. The table is filled along its diagonals, of
//           which shared memory keeps the last two: each element needs its left, its upper and its diagonal neighbour

constexpr int MOST = 256, MATCH = 3, MISMATCH = -2, GAP = -3;

extern "C" __global__ void align(const char* firsts, const char* seconds, int* scores, int columns)
{
    __shared__ int before[MOST + 1], last[MOST + 1], best[MOST];
    const int rows = blockDim.x, row = threadIdx.x;
    const char* second = seconds + size_t(blockIdx.x) * columns;
    const char letter = firsts[size_t(blockIdx.x) * rows + row];
    before[row + 1] = last[row + 1] = 0;
    if (row == 0)
        before[0] = last[0] = 0;
    int highest = 0;
    for (int diagonal = 0; diagonal < rows + columns - 1; diagonal++) {
        __syncthreads();
        const int column = diagonal - row;
        int score = 0;
        if (column >= 0 && column < columns) {
            score = max(0, before[row] + (letter == second[column] ? MATCH : MISMATCH));
            score = max(score, max(last[row], last[row + 1]) + GAP);
            highest = max(highest, score);
        }
        const int kept = last[row + 1];
        __syncthreads();
        before[row + 1] = kept;
        last[row + 1] = score;
    }
    best[row] = highest;
    __syncthreads();
    for (int half = rows / 2; half > 0; half /= 2) {
        if (row < half)
            best[row] = max(best[row], best[row + half]);
        __syncthreads();
    }
    if (row == 0)
        scores[blockIdx.x] = best[0];
}
