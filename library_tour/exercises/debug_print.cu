// Print the elements of an array, four per line, as in "group 2: 8 -1 0 5". The array has n elements, a multiple of 4.
//
// For now, each thread prints its own element, so pieces of different lines are mixed.

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
