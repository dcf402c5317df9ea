// malloc and free on the device: blocks of different sizes, kept over a barrier, freed by another lane.
#include "rows.cuh"

#define ROW(name, value) PUT(value);

extern "C" __global__ void allocations(const unsigned* a, unsigned* out, int n) {
    LANE
    __shared__ unsigned* pointers[64];
    const int t = threadIdx.x, length = 1 + a[i] % 9;
    unsigned* mine = (unsigned*)malloc(length * sizeof(unsigned));
    for (int k = 0; k < length; ++k) mine[k] = a[i] + k;
    pointers[t] = mine;
    __syncthreads();
    const int other = (t + 5) % 64;
    ROW("word of another lane's block", pointers[other][0])
    ROW("aligned to 16 bytes", (unsigned long long)mine % 16 == 0)
    bool apart = true;
    for (int k = 0; k < 64; ++k) apart = apart && (k == t || pointers[k] >= mine + length || pointers[k] < mine);
    ROW("blocks don't overlap", apart)
    __syncthreads();
    free(pointers[other]);
    free(nullptr);
    int* made = new int[3];
    made[2] = i;
    ROW("operator new", made[2])
    delete[] made;
}
