// Holds a stream until the host releases it. The work that was queued in the meantime then runs without gaps.
//
//   hold    one thread spins on a word of mapped host memory, for at most `timeout` nanoseconds

__device__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// state[0] is the last ticket that the host released, and state[1] the last ticket that timed out. Tickets count up and
// may wrap around, hence the signed difference.
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
