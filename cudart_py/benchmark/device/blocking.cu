// Hold a stream until the host releases it, so that the work that is queued after it then runs without gaps.
//
//   hold    one thread spins on a word of mapped host memory, for so many nanoseconds at most

__device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// state[0] is the last ticket that the host released; state[1] becomes the last one that ran out of time. Tickets count
// up and may wrap, hence the signed difference.
extern "C" __global__ void hold(unsigned* state, unsigned ticket, unsigned long long timeout)
{
    volatile unsigned* words = state;
    unsigned long long begin = nanoseconds();
    while (int(words[0] - ticket) < 0)
    {
        if (nanoseconds() - begin > timeout)
        {
            words[1] = ticket;
            return;
        }
    }
}
