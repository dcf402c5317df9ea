// Give a ticket to each person who wants one; there are at least as many threads as people. The numbers go on from
// block to block and from launch to launch.
//
// So far, the tickets begin at 0 in each block, and the number of the next one stays 0.

__device__ unsigned next_ticket = 0;

extern "C" __global__ void take_tickets(const int* wants, unsigned* tickets, int n)
{
    __shared__ unsigned taken;

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    if (i < n && wants[i] > 0)
        tickets[i] = atomicAdd(&taken, 1);
}
