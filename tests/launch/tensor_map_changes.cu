// Tensor maps that kernels compose or change, and boxes that are loaded by them.

struct alignas(64) Map { unsigned long long words[16]; };

__device__ unsigned in_shared(const void *p) { return (unsigned)__cvta_generic_to_shared(p); }

// Load a box of 4 rows of 16 * N elements, and pass its bytes on.
__device__ void load(const Map *map, unsigned char *box, int bytes, int column, int row, unsigned char *out)
{
    __shared__ unsigned long long bar;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(in_shared(&bar)));
        asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(in_shared(&bar)),
                     "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];"
                     ::"r"(in_shared(box)), "l"(map), "r"(column), "r"(row), "r"(in_shared(&bar)) : "memory");
    }
    __syncthreads();
    int passed = 0;
    while (!passed)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.s32 %0, 1, 0, p; }"
                     : "=r"(passed) : "r"(in_shared(&bar)) : "memory");
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = box[i];
}

#define REPLACE(FIELD, TYPE, CONSTRAINT, VALUE)                                                                        \
    asm volatile("tensormap.replace.tile." FIELD ".shared::cta.b1024." TYPE ", %1;" ::"r"(in_shared(&map)),             \
                 CONSTRAINT(VALUE) : "memory")

// Compose the map of an array of 2-D rows in shared memory, and copy it to global memory.
template <int ELEMENT, int SIZE, int FILL>
__global__ void compose(const void *array, unsigned columns, unsigned rows, Map *made, int column, int row,
                        unsigned char *out)
{
    __shared__ alignas(128) unsigned char box[4 * 16 * SIZE];
    __shared__ alignas(128) Map map;
    if (threadIdx.x < 16) map.words[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x == 0) {
        REPLACE("global_address", "b64 [%0]", "l", array);
        REPLACE("rank", "b32 [%0]", "n", 1);
        REPLACE("box_dim", "b32 [%0], 0", "r", 16);
        REPLACE("box_dim", "b32 [%0], 1", "r", 4);
        REPLACE("global_dim", "b32 [%0], 0", "r", columns);
        REPLACE("global_dim", "b32 [%0], 1", "r", rows);
        REPLACE("global_stride", "b64 [%0], 0", "l", (unsigned long long)columns * SIZE);
        REPLACE("element_stride", "b32 [%0], 0", "r", 1);
        REPLACE("element_stride", "b32 [%0], 1", "r", 1);
        REPLACE("elemtype", "b32 [%0]", "n", ELEMENT);
        REPLACE("interleave_layout", "b32 [%0]", "n", 0);
        REPLACE("swizzle_mode", "b32 [%0]", "n", 0);
        REPLACE("fill_mode", "b32 [%0]", "n", FILL);
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                 "[%0], [%1], 128;" ::"l"(made), "r"(in_shared(&map)) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(made) : "memory");
    load(made, box, 4 * 16 * SIZE, column, row, out);
}

// Change the address in a map in global memory.
extern "C" __global__ void change(Map *map, const void *array, void *out)
{
    __shared__ alignas(128) unsigned char box[4 * 16 * 4];
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(array)
                     : "memory");
        asm volatile("fence.proxy.tensormap::generic.release.gpu;");
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
    }
    load(map, box, sizeof(box), 0, 0, (unsigned char *)out);
}
