// Print the elements of an array, four per line, as in "group 2: 8 -1 0 5". The array has n elements, a multiple of 4.

extern "C" __global__ void print_groups(const int* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;  // no group of four is split, so no lane reads from these lanes
    // All four lanes of a group execute the shuffles, although only the first one prints.
    int first = x[i];
    int second = __shfl_down_sync(0xffffffff, first, 1, 4);
    int third = __shfl_down_sync(0xffffffff, first, 2, 4);
    int fourth = __shfl_down_sync(0xffffffff, first, 3, 4);
    if (i % 4 == 0)
        printf("group %d: %d %d %d %d\n", i / 4, first, second, third, fourth);
}
