// A multiprocessor hides the latency of its instructions with other warps: while some wait, others run. Its occupancy,
// the number of warps that it holds at once, depends on the threads, registers and shared memory of a block.
//
//   meet        every block records its multiprocessor and waits for all others; the wait ends only if all are resident
//               at once. Meanwhile each thread keeps `Live` values in registers
//   copy        copies with any number of threads and one load per thread in flight: the fewer threads there are, the
//               fewer bytes are in flight. With T = float4, each load reads 16 bytes instead of 4
//   link        builds a chain that visits each node once, in an order that looks random
//   chase       one thread follows the chain: each load needs the result of the one before, so the time of a step is
//               the latency of a load, through the L1 cache or past it
//   chase_shared, chase_registers   the same walk through shared memory, and without any memory
//   read_again  all threads repeatedly read an array that fits into the L2 cache, bypassing L1: the L2 cache's rate

struct Node {
    const Node* next;
    char rest[120];  // each node has its own cache line
};

// The node after i in a chain of 2^k nodes. The chain visits all of them if a % 4 is 1 and c is odd.
__device__ unsigned after(unsigned i, unsigned a, unsigned c)
{
    return i * a + c;
}

template <int Live>
__global__ void meet(unsigned* arrived, unsigned* places, float* data)
{
    float kept[Live + 1];
#pragma unroll
    for (int i = 0; i < Live; i++)
        kept[i] = data[i];

    if (threadIdx.x == 0 && threadIdx.y == 0) {
        unsigned place;
        asm("mov.u32 %0, %%smid;" : "=r"(place));
        places[blockIdx.x] = place;
        atomicAdd(arrived, 1);
        while (atomicAdd(arrived, 0) < gridDim.x) {
        }
    }
    __syncthreads();

#pragma unroll
    for (int i = 0; i < Live; i++)
        data[i] = kept[i];
}

template <class T>
__global__ void copy(const T* __restrict__ in, T* __restrict__ out, size_t n)
{
    size_t threads = size_t(gridDim.x) * blockDim.x;
#pragma unroll 1
    for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += threads)
        out[i] = in[i];
}

extern "C" __global__ void link(Node* nodes, unsigned count, unsigned a, unsigned c)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        nodes[i].next = nodes + after(i, a, c) % count;
}

struct ThroughL1 {
    static __device__ unsigned long long load(const unsigned long long* next) { return __ldca(next); }
};

struct PastL1 {
    static __device__ unsigned long long load(const unsigned long long* next) { return __ldcg(next); }
};

template <class Way>
__device__ const Node* walk(const Node* node, int steps)
{
#pragma unroll 8
    for (int i = 0; i < steps; i++)
        node = reinterpret_cast<const Node*>(Way::load(reinterpret_cast<const unsigned long long*>(node)));
    return node;
}

// The last node is stored before the clock is read, so that the clock is read after the last load.
template <class Way>
__global__ void chase(const Node* first, int before, int steps, const Node** last, long long* cycles)
{
    const Node* node = walk<Way>(first, before);
    long long begin = clock64();
    *last = walk<Way>(node, steps);
    *cycles = clock64() - begin;
}

// In each pass a thread reads different elements. The sums show whether they were the right ones.
extern "C" __global__ void read_again(const uint4* in, unsigned count, unsigned passes, unsigned* sums)
{
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
#pragma unroll 4
    for (unsigned pass = 0; pass < passes; pass++) {
        uint4 four = __ldcg(in + (thread + pass * blockDim.x) % count);
        sum += four.x + four.y + four.z + four.w;
    }
    sums[thread] = sum;
}

constexpr unsigned SHARED_NODES = 1024;

extern "C" __global__ void chase_shared(unsigned a, unsigned c, int steps, unsigned* last, long long* cycles)
{
    __shared__ unsigned next[SHARED_NODES];
    for (unsigned i = threadIdx.x; i < SHARED_NODES; i += blockDim.x)
        next[i] = after(i, a, c) % SHARED_NODES * sizeof(unsigned);
    __syncthreads();
    if (threadIdx.x > 0)
        return;
    unsigned place = 0;  // in bytes, so that a step is one load without arithmetic
    long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < steps; i++)
        place = *reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(next) + place);
    *last = place / sizeof(unsigned);
    *cycles = clock64() - begin;
}

// a and c are parameters, because with constants the compiler would merge several steps into one.
extern "C" __global__ void chase_registers(unsigned a, unsigned c, int steps, unsigned* last, long long* cycles)
{
    unsigned i = 0;
    long long begin = clock64();
#pragma unroll 32
    for (int step = 0; step < steps; step++)
        i = after(i, a, c);
    *last = i % SHARED_NODES;
    *cycles = clock64() - begin;
}
