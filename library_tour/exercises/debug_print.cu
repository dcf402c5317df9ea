// Print the numbers of an array, four in a line, as in "group 2: 8 -1 0 5". The array has n numbers, a multiple of four.
//
// So far, each thread prints its own number, so that the pieces of different lines are mixed.

extern "C" __global__ void print_groups(const int* x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    if (i % 4 == 0)
        printf("group %d:", i / 4);
    printf(" %d", x[i]);
    if (i % 4 == 3)
        printf("\n");
}
