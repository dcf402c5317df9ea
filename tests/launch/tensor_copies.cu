// Copies of boxes by tensor maps of one to five dimensions. One thread copies, and all threads pass bytes on.

struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };
// The coordinates of a box, the innermost first.
struct Place { int at[5]; };

constexpr int most = 8192;
using Bar = unsigned long long;

__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ void init(Bar *bar)
{
    asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;"
                 ::"r"(in_shared(bar)) : "memory");
}
__device__ void expect(Bar *bar, int bytes)
{
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }"
                 ::"r"(in_shared(bar)), "r"(bytes) : "memory");
}
__device__ void wait(Bar *bar)
{
    int passed = 0;
    while (!passed)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(passed) : "r"(in_shared(bar)) : "memory");
}

// Load a box, and copy the shared memory that had 0xEE everywhere before.
#define LOAD(RANK, COORDINATES)                                                                                   \
    extern "C" __global__ void load##RANK(const __grid_constant__ CUtensorMap map, Place place, int bytes,        \
                                          unsigned char *out)                                                     \
    {                                                                                                             \
        __shared__ alignas(1024) unsigned char box[most];                                                         \
        __shared__ Bar bar;                                                                                       \
        for (int i = threadIdx.x; i < most; i += blockDim.x) box[i] = 0xEE;                                       \
        if (threadIdx.x == 0) init(&bar);                                                                         \
        fence();                                                                                                  \
        __syncthreads();                                                                                          \
        if (threadIdx.x == 0) {                                                                                   \
            asm volatile("prefetch.tensormap [%0]; cp.async.bulk.prefetch.tensor." #RANK                          \
                         "d.L2.global.tile [%0, " COORDINATES "];"                                                \
                         ::"l"(&map), "r"(0), "r"(0), "r"(place.at[0]), "r"(place.at[1]), "r"(place.at[2]),       \
                         "r"(place.at[3]), "r"(place.at[4]) : "memory");                                          \
            asm volatile("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.tile.mbarrier::complete_tx::"    \
                         "bytes [%1], [%0, " COORDINATES "], [%2];"                                               \
                         ::"l"(&map), "r"(in_shared(box)), "r"(in_shared(&bar)), "r"(place.at[0]),                \
                         "r"(place.at[1]), "r"(place.at[2]), "r"(place.at[3]), "r"(place.at[4]) : "memory");      \
            expect(&bar, bytes);                                                                                  \
        }                                                                                                         \
        wait(&bar);                                                                                               \
        for (int i = threadIdx.x; i < most; i += blockDim.x) out[i] = box[i];                                     \
    }
LOAD(1, "{%3}")
LOAD(2, "{%3, %4}")
LOAD(3, "{%3, %4, %5}")
LOAD(4, "{%3, %4, %5, %6}")
LOAD(5, "{%3, %4, %5, %6, %7}")

// Store a box from shared memory, or combine it with the array.
#define STORE(NAME, INSTRUCTION, COORDINATES)                                                                     \
    extern "C" __global__ void NAME(const __grid_constant__ CUtensorMap map, Place place,                         \
                                    const unsigned char *in)                                                      \
    {                                                                                                             \
        __shared__ alignas(1024) unsigned char box[most];                                                         \
        for (int i = threadIdx.x; i < most; i += blockDim.x) box[i] = in[i];                                      \
        fence();                                                                                                  \
        __syncthreads();                                                                                          \
        if (threadIdx.x == 0)                                                                                     \
            asm volatile(INSTRUCTION " [%0, " COORDINATES "], [%1]; cp.async.bulk.commit_group; "                 \
                         "cp.async.bulk.wait_group 0;"                                                            \
                         ::"l"(&map), "r"(in_shared(box)), "r"(0), "r"(place.at[0]), "r"(place.at[1]),            \
                         "r"(place.at[2]), "r"(place.at[3]), "r"(place.at[4]) : "memory");                        \
    }
#define STORED(RANK, COORDINATES) \
    STORE(store##RANK, "cp.async.bulk.tensor." #RANK "d.global.shared::cta.tile.bulk_group", COORDINATES)
STORED(1, "{%3}")
STORED(2, "{%3, %4}")
STORED(3, "{%3, %4, %5}")
STORED(4, "{%3, %4, %5, %6}")
STORED(5, "{%3, %4, %5, %6, %7}")
#define REDUCED(NAME, OPERATION) \
    STORE(NAME, "cp.reduce.async.bulk.tensor.2d.global.shared::cta." OPERATION ".tile.bulk_group", "{%3, %4}")
REDUCED(reduce_add, "add")
REDUCED(reduce_min, "min")
REDUCED(reduce_max, "max")
REDUCED(reduce_inc, "inc")
REDUCED(reduce_dec, "dec")
REDUCED(reduce_and, "and")
REDUCED(reduce_or, "or")
REDUCED(reduce_xor, "xor")

// One block of each cluster loads a box for the blocks whose bits are set.
extern "C" __global__ void multicast(const __grid_constant__ CUtensorMap map, Place place, int bytes,
                                     unsigned char *out, int ranks)
{
    __shared__ alignas(1024) unsigned char box[most];
    __shared__ Bar bar;
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (int i = threadIdx.x; i < most; i += blockDim.x) box[i] = 0xEE;
    if (threadIdx.x == 0) init(&bar);
    fence();
    __syncthreads();
    if (threadIdx.x == 0) expect(&bar, ranks >> rank & 1 ? bytes : 0);
    cluster_sync();
    if (threadIdx.x == 0 && rank == 1)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1, {%2, %3}], [%4], %5;"
                     ::"r"(in_shared(box)), "l"(&map), "r"(place.at[0]), "r"(place.at[1]), "r"(in_shared(&bar)),
                     "h"((short)ranks) : "memory");
    wait(&bar);
    for (int i = threadIdx.x; i < most; i += blockDim.x) out[blockIdx.x * most + i] = box[i];
    cluster_sync();
}

// A block loads a box of 32-bit integers, doubles them and stores them. Each value of `wrong` makes one mistake.
extern "C" __global__ void doubled(const __grid_constant__ CUtensorMap map, int count, int wrong)
{
    __shared__ alignas(128) int box[most / 4];
    __shared__ Bar bar;
    if (threadIdx.x == 0) init(&bar);
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %3}], [%4];"
                     ::"r"(in_shared(box)), "l"(&map), "r"(0), "r"((int)blockIdx.x * 4), "r"(in_shared(&bar))
                     : "memory");
        expect(&bar, 4 * count + (wrong == 5 ? 16 : wrong == 6 ? -16 : 0));
    }
    if (wrong != 1) wait(&bar);
    for (int i = threadIdx.x; i < count; i += blockDim.x) box[i] *= 2;
    if (wrong != 2) fence();
    if (wrong != 3) __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%1, {%2, %3}], [%0]; "
                     "cp.async.bulk.commit_group;"
                     ::"r"(in_shared(box)), "l"(&map), "r"(0), "r"((int)blockIdx.x * 4) : "memory");
        if (wrong != 4) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
    box[threadIdx.x] = 0;
}
