// Give a ticket to each person who wants one. There are at least as many threads as people. Tickets are numbered across
// all blocks and all launches.

__device__ unsigned next_ticket = 0;

extern "C" __global__ void take_tickets(const int* wants, unsigned* tickets, int n)
{
    __shared__ unsigned taken, begin;

    int i = blockIdx.x * blockDim.x + threadIdx.x;
    bool one_more = i < n && wants[i] > 0;
    unsigned place;

    if (threadIdx.x == 0)
        taken = 0;
    __syncthreads();
    if (one_more)
        place = atomicAdd(&taken, 1);
    __syncthreads();
    if (threadIdx.x == 0)
        begin = atomicAdd(&next_ticket, taken);
    __syncthreads();
    if (one_more)
        tickets[i] = begin + place;
}
