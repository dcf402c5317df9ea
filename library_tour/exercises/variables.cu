// Give a ticket to each person who wants one. There are at least as many threads as people. Tickets are numbered across
// all blocks and all launches.
//
// For now, tickets start at 0 in each block, and next_ticket stays 0.

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
