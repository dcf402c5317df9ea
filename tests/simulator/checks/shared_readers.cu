// Several threads read a word, update it with atomics, or store the same value there. One of them then writes it: the
// last one, unless a comment says otherwise.
//
// In the kernels whose names end in `_ordered`, every other thread's read is ordered before the write.

#include <cuda_pipeline.h>

#define KERNEL extern "C" __global__ void
#define LAST (gridDim.x * blockDim.x - 1)

__device__ unsigned index() { return blockIdx.x * blockDim.x + threadIdx.x; }

KERNEL in_global(int* x, int* out)
{
    int value = *x;
    if (index() == LAST) *x = value + 1;
    out[index()] = value;
}

KERNEL after_a_barrier_of_the_block(int* x, int* out)
{
    int value = *x;
    __syncthreads();
    if (index() == LAST) *x = value + 1;
    out[index()] = value;
}

KERNEL in_shared(int* x, int* out)
{
    __shared__ int word;
    if (threadIdx.x == 0) word = 7;
    __syncthreads();
    int value = word;
    if (threadIdx.x == blockDim.x - 1) word = value + 1;
    out[index()] = value;
}

KERNEL after_a_barrier_of_the_warp(int* x, int* out)
{
    __shared__ int word;
    if (threadIdx.x == 0) word = 7;
    __syncthreads();
    int value = word;
    __syncwarp();
    if (threadIdx.x == blockDim.x - 1) word = value + 1;
    out[index()] = value;
}

KERNEL a_word_per_warp_ordered(int* x, int* out)
{
    __shared__ int words[32];
    int* word = words + threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) *word = 7;
    __syncwarp();
    int value = *word;
    __syncwarp();
    if (threadIdx.x % 32 == 31) *word = value + 1;
    out[index()] = value;
}

KERNEL in_pairs(int* x, int* out)
{
    __shared__ int words[128];
    words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    int value = words[threadIdx.x / 2];
    if (threadIdx.x & 1) words[threadIdx.x / 2] = value + 1;
    out[index()] = value;
}

KERNEL of_a_vector(int* x, int* out)
{
    int4 value = ((int4*)x)[threadIdx.x & 3];
    if (index() == LAST) x[14] = value.x + 1;
    out[index()] = value.x + value.y + value.z + value.w;
}

KERNEL of_bytes(int* x, int* out)
{
    unsigned char* bytes = (unsigned char*)x;
    int value = bytes[threadIdx.x & 3];
    if (index() == LAST) bytes[3] = value + 1;
    out[index()] = value;
}

KERNEL a_byte_of_a_word(int* x, int* out)
{
    int value = *x;
    if (index() == LAST) ((unsigned char*)x)[2] = value + 1;
    out[index()] = value;
}

KERNEL other_bytes_of_a_word_ordered(int* x, int* out)
{
    unsigned char* bytes = (unsigned char*)x;
    int value = bytes[index()];
    bytes[index()] = value + 1;
    out[index()] = value;
}

KERNEL by_an_atomic(int* x, int* out)
{
    int value = *x;
    if (index() == LAST) atomicAdd(x, 1);
    out[index()] = value;
}

KERNEL by_a_volatile_store(int* x, int* out)
{
    int value = *x;
    if (index() == LAST) *(volatile int*)x = value + 1;
    out[index()] = value;
}

KERNEL read_by_an_asynchronous_copy(int* x, int* out)
{
    __shared__ int words[128];
    __pipeline_memcpy_async(words + threadIdx.x, x, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    if (index() == LAST) *x = 17;
    __syncthreads();
    out[index()] = words[threadIdx.x];
}

KERNEL written_by_an_asynchronous_copy(int* x, int* out)
{
    __shared__ int word;
    if (threadIdx.x == 0) word = 7;
    __syncthreads();
    int value = word;
    if (threadIdx.x == blockDim.x - 1) {
        __pipeline_memcpy_async(&word, x, 4);
        __pipeline_commit();
        __pipeline_wait_prior(0);
    }
    __syncthreads();
    out[index()] = value + word;
}

// Each warp reads the whole matrix; ldmatrix orders only the lanes of one warp.
KERNEL of_a_matrix(int* x, int* out)
{
    __shared__ __align__(16) int words[32];
    if (threadIdx.x < 32) words[threadIdx.x] = threadIdx.x;
    __syncthreads();
    unsigned row = (unsigned)__cvta_generic_to_shared(words + threadIdx.x % 8 * 4), value;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(value) : "r"(row));
    if (threadIdx.x == blockDim.x - 1) words[31] = value + 1;
    out[index()] = value;
}

KERNEL in_a_loop(int* x, int* out)
{
    __shared__ int word;
    if (threadIdx.x == 0) word = 0;
    __syncthreads();
    int value = 0;
    for (int i = 0; i < 4; i++) {
        value += word;
        if (threadIdx.x == blockDim.x - 1) word = value + 1;
        __syncthreads();
    }
    out[index()] = value;
}

KERNEL in_a_loop_ordered(int* x, int* out)
{
    __shared__ int word;
    if (threadIdx.x == 0) word = 0;
    __syncthreads();
    int value = 0;
    for (int i = 0; i < 4; i++) {
        value += word;
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) word = value + 1;
        __syncthreads();
    }
    out[index()] = value;
}

KERNEL own_words_ordered(int* x, int* out)
{
    int value = x[index()];
    x[index()] = value + 1;
    out[index()] = value;
}

// The first thread has read the word before two threads of the last warp do, one of which then writes it.
KERNEL read_earlier_by_another_warp(int* x, int* out)
{
    unsigned end = LAST + 1;
    int value = 0;
    if (index() == 0) value = *x;
    __syncwarp();
    if (index() == end - 2) value = *x;
    __syncwarp();
    if (index() == end - 1) value = *x;
    __syncwarp();
    if (index() == end - 2) *x = value + 1;
    out[index()] = value;
}

// The same with atomics, which are not ordered either: a plain access races with those of all other threads.
KERNEL updated_by_all(int* x, int* out)
{
    atomicAdd(x, 1);
    if (index() == LAST) *x = 5;
    out[index()] = 1;
}

KERNEL read_after_updates_of_all(int* x, int* out)
{
    __shared__ int words[2];
    int* word = words + *x;  // unknown to the compiler, which would otherwise have all threads load the word
    if (threadIdx.x == 0) *word = 0;
    __syncthreads();
    atomicAdd(word, 1);
    out[index()] = threadIdx.x == blockDim.x - 1 ? *word : 0;
}

KERNEL read_after_updates_of_all_ordered(int* x, int* out)
{
    __shared__ int words[2];
    int* word = words + *x;  // unknown to the compiler, which would otherwise have all threads load the word
    if (threadIdx.x == 0) *word = 0;
    __syncthreads();
    atomicAdd(word, 1);
    __syncthreads();
    out[index()] = threadIdx.x == blockDim.x - 1 ? *word : 0;
}

// All threads store different vectors in one place.
KERNEL vectors_in_one_place(int* x, int* out)
{
    ((int4*)x)[0] = make_int4(1, 2, 3, index());
    out[index()] = 1;
}

KERNEL equal_vectors_in_one_place_ordered(int* x, int* out)
{
    ((int4*)x)[0] = make_int4(1, 2, 3, gridDim.x);
    out[index()] = 1;
}

// Keeps the compiler from merging the stores before and after.
__device__ void separate() { asm volatile("" ::: "memory"); }

// Equal stores do not race with one another, but a store of another value races with those of all other threads.
KERNEL stored_by_all(int* x, int* out)
{
    *x = -1;
    separate();
    if (index() == LAST) *x = 5;
    out[index()] = 1;
}

KERNEL stored_by_all_in_shared(int* x, int* out)
{
    __shared__ int words[2];
    int* word = words + *x;
    *word = 7;
    separate();
    if (threadIdx.x == blockDim.x - 1) *word = 8;
    __syncthreads();
    out[index()] = *word;
}

KERNEL stored_in_turn_by_lanes(int* x, int* out)
{
    for (unsigned lane = 0; lane < 32; lane++) {
        if (threadIdx.x % 32 == lane) *x = -1;
        separate();
    }
    if (index() == LAST) atomicAdd(x, 1);
    out[index()] = 1;
}

KERNEL stored_by_all_after_a_barrier_of_the_block(int* x, int* out)
{
    *x = -1;
    __syncthreads();
    if (index() == LAST) *x = 5;
    out[index()] = 1;
}

KERNEL stored_by_all_alike_ordered(int* x, int* out)
{
    *x = -1;
    separate();
    if (index() == LAST) *x = -1;
    out[index()] = 1;
}

// The last atomic hides the plain store of its own thread or block from the atomics of other blocks.
KERNEL stored_before_an_atomic_of_the_thread(int* x, int* out)
{
    if (index() == 0) {
        *x = 5;
        separate();
        atomicAdd(x, 1);
    }
    __syncthreads();
    if (index() == LAST) atomicAdd(x, 1);
    out[index()] = 1;
}

KERNEL stored_before_atomics_of_the_block(int* x, int* out)
{
    if (index() == 0) *x = 5;
    __syncthreads();
    if (blockIdx.x == 0) atomicAdd(x, 1);
    __syncthreads();
    if (blockIdx.x == 0) atomicAdd(x, 1);
    if (index() == LAST) atomicAdd(x, 1);
    out[index()] = 1;
}

KERNEL stored_before_atomics_of_block_scope(int* x, int* out)
{
    if (index() == 0) {
        *x = 5;
        separate();
        atomicAdd(x, 1);
    }
    __syncthreads();
    if (index() == LAST) atomicAdd(x, 1);
    if (threadIdx.x == 0) atomicAdd_block(x + 1 + blockIdx.x, 1);
    out[index()] = 1;
}

KERNEL a_word_per_block_ordered(int* x, int* out)
{
    int* word = x + blockIdx.x;
    if (threadIdx.x == 0) *word = 5;
    __syncthreads();
    atomicAdd(word, 1);
    __syncthreads();
    atomicAdd(word, 1);
    out[index()] = 1;
}

KERNEL stored_and_released_before_atomics_ordered(int* x, int* out)
{
    if (index() == 0) {
        *x = 5;
        __threadfence();
        atomicExch(x + 1, -1);
        atomicAdd(x, 1);
    }
    __syncthreads();
    if (index() == LAST) {
        while (atomicAdd(x + 1, 0) != -1) {}
        atomicAdd(x, 1);
    }
    out[index()] = 1;
}

// The blocks store the same value in one instruction.
KERNEL stored_by_all_with_block_scope_ordered(int* x, int* out)
{
    asm volatile("st.relaxed.cta.s32 [%0], -1;" ::"l"(x) : "memory");
    out[index()] = 1;
}

KERNEL stored_with_block_scope(int* x, int* out)
{
    asm volatile("st.relaxed.cta.s32 [%0], %1;" ::"l"(x), "r"(index() == LAST ? 5 : -1) : "memory");
    out[index()] = 1;
}

// A vector has the same first word as the first thread's store.
KERNEL stored_in_part_ordered(int* x, int* out)
{
    if (index() == 0) *x = -1;
    separate();
    if (index() == LAST) *(int2*)x = make_int2(-1, 7);
    if (index() == LAST - 1) ((short*)x)[1] = -1;
    out[index()] = 1;
}

KERNEL stored_in_part(int* x, int* out)
{
    if (index() == 0) *x = -1;
    separate();
    if (index() == LAST) *(long long*)x = 7;
    out[index()] = 1;
}

// The last block has counted last, before one of its threads counts with block scope.
KERNEL counted_by_all_then_in_block(int* x, int* out)
{
    atomicAdd(x, 1);
    if (index() == LAST) atomicAdd_block(x, 1);
    out[index()] = 1;
}
