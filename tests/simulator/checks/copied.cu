// Kernels that copy what nobody wrote, which is no mistake, or use it, which is.
// `out` has room for 512 bytes per thread, and `n` is 7.
struct Tail { long long a, c[3]; unsigned short b; };
struct Flag { double value; bool set; };
struct Bits { unsigned a : 3, b : 7; unsigned short c : 5; };
union Word { long long wide; int narrow; };
struct Either { Word word; int kind; };
struct Members { double a; int b; };
struct Four { int v[4]; };
__device__ __noinline__ void fill(Tail* p, int n) { p->a = n; for (int i = 0; i < 3; i++) p->c[i] = i; p->b = n; }
__device__ __noinline__ Tail made(int n) {
    Tail t;
    fill(&t, n);
    return t;
}
#define KERNEL(NAME) extern "C" __global__ void NAME(int* out, int* in, int n)
#define I ((int)threadIdx.x)
// Declare an array in shared memory, of which the first `n` threads write an element each.
#define PARTLY_WRITTEN(S)    \
    __shared__ int S[32];    \
    if (I < n) S[I] = I;     \
    __syncthreads()

// They use none of it.
KERNEL(silent_a_structure) {
    Tail t;
    fill(&t, n);
    ((Tail*)out)[I] = t;
}
KERNEL(silent_a_structure_local_to_a_loop) {
    for (int k = 0; k < n; k++) {
        Tail t;
        fill(&t, k);
        ((Tail*)out)[I + 32 * k] = t;
    }
}
KERNEL(silent_a_structure_by_value) {
    ((Tail*)out)[I] = made(n);
}
KERNEL(silent_many_bytes_at_once) {
    struct Large {
        long long a[40];
        short b;
    };
    __shared__ Large s;
    if (I < 20) {
        s.a[I] = I;
        s.a[I + 20] = I;
        s.b = 3;
    }
    __syncthreads();
    if (I == 0) *(Large*)out = s;
}
KERNEL(silent_a_flag) {
    __shared__ Flag s[32];
    s[I].value = n;
    s[I].set = I & 1;
    __syncthreads();
    ((Flag*)out)[I] = s[I ^ 1];
}
KERNEL(silent_fields_of_bits) {
    __shared__ Bits s[32];
    s[I].a = n;
    s[I].b = 3;
    s[I].c = 1;
    __syncthreads();
    ((Bits*)out)[I] = s[I ^ 1];
}
KERNEL(silent_a_union) {
    __shared__ Either s[32];
    s[I].kind = n & 1;
    if (n & 1) s[I].word.narrow = n;
    else s[I].word.wide = n;
    __syncthreads();
    ((Either*)out)[I] = s[I ^ 1];
}
KERNEL(silent_a_part_of_an_array) {
    int a[16], sum = 0;
    for (int k = 0; k < n; k++) a[k] = k;
    for (int k = 0; k < 16; k++) {
        int v = a[k];
        sum += k < n ? v : 0;
    }
    out[I] = sum;
}
KERNEL(silent_lanes_of_a_vector) {
    float4 v[4];
    for (int k = 0; k < 4; k++) {
        float4& one = v[(k + n) & 3];
        one.x = k;
        one.y = n;
    }
    float4 one = v[n & 3];
    out[I] = one.x + one.y;
}
KERNEL(silent_a_shuffled_value) {
    PARTLY_WRITTEN(s);
    int v = __shfl_down_sync(~0u, s[I], 1);
    out[I] = I < n - 1 ? v : 0;
}
KERNEL(silent_what_is_not_selected) {
    PARTLY_WRITTEN(s);
    int v = s[I] * 3;
    out[I] = I < n ? v : -1;
}
KERNEL(silent_carried_by_a_loop) {
    int last, sum = 0;
    bool some = false;
    for (int k = 0; k < n; k++) {
        if (some) sum += last;
        last = k * n;
        some = true;
    }
    out[I] = sum;
}
KERNEL(silent_through_shared_memory) {
    PARTLY_WRITTEN(s);
    __shared__ int t[32];
    t[I ^ 1] = s[I];
    __syncthreads();
    int v = t[I ^ 1];
    if (I < n) out[I] = v;
}
KERNEL(silent_through_local_memory) {
    PARTLY_WRITTEN(s);
    int t[8];
    for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[I];
    int v = t[n & 7];
    if (I < n) out[I] = v;
}
KERNEL(silent_written_over) {
    PARTLY_WRITTEN(s);
    __shared__ volatile int t[32];
    t[I] = s[I];
    t[I] = n;
    out[I] = t[I];
}
KERNEL(silent_written_over_by_an_atomic) {
    PARTLY_WRITTEN(s);
    __shared__ int t[32];
    *(volatile int*)&t[I] = s[I];
    atomicExch(&t[I], n);
    out[I] = t[I];
}
KERNEL(silent_a_structure_through_all_memories) {
    __shared__ Tail s[32];
    Tail t, local[4];
    fill(&t, n);
    s[I] = t;
    __syncwarp();
    for (int k = 0; k < 4; k++) local[(k + n) & 3] = s[I ^ 1];
    ((Tail*)in)[I] = local[n & 3];
    __syncwarp();
    ((Tail*)out)[I] = ((Tail*)in)[I ^ 1];
}

// They use it.
KERNEL(found_a_member_through_shared_and_global_memory) {
    __shared__ Members s[32];
    s[I].a = n;
    __syncwarp();
    ((Members*)in)[I] = s[I ^ 1];
    __syncwarp();
    out[I] = ((Members*)in)[I ^ 1].b;
}
KERNEL(found_a_structure_that_nobody_wrote) {
    __shared__ Tail s[32];
    ((Tail*)out)[I] = s[I ^ 1];
}
KERNEL(found_a_member_that_nobody_wrote) {
    __shared__ Members s[32];
    s[I].a = n;
    ((Members*)out)[I] = s[I];
}
KERNEL(found_an_element_of_four) {
    __shared__ Four s[32];
    s[I].v[0] = s[I].v[2] = s[I].v[3] = n;
    __syncwarp();
    ((Four*)out)[I] = s[I];
}
KERNEL(found_elements_copied_by_one_line) {
    __shared__ int s[128];
    s[4 * I] = s[4 * I + 1] = s[4 * I + 3] = n;
    __syncwarp();
    for (int k = 0; k < 4; k++) out[4 * I + k] = s[4 * I + k];
}
KERNEL(found_through_shared_memory) {
    PARTLY_WRITTEN(s);
    __shared__ int t[32];
    t[I ^ 1] = s[I];
    __syncthreads();
    out[I] = t[I ^ 1];
}
KERNEL(found_through_local_memory) {
    PARTLY_WRITTEN(s);
    int t[8];
    for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[I];
    out[I] = t[n & 7];
}
KERNEL(found_a_byte_of_what_was_moved) {
    __shared__ unsigned char s[128];
    __shared__ volatile unsigned t[32];
    s[4 * I] = s[4 * I + 1] = s[4 * I + 2] = n;
    for (int k = 0; k < 4; k++) ((volatile unsigned char*)t)[4 * I + k] = s[4 * I + k];
    ((unsigned char*)out)[I] = t[I] >> 24;
}
KERNEL(found_computed_before_it_was_moved) {
    PARTLY_WRITTEN(s);
    __shared__ volatile int t[32];
    t[I] = s[I] * 2 + 1;
    out[I] = t[I];
}
KERNEL(found_an_address) {
    PARTLY_WRITTEN(s);
    __shared__ volatile int t[32];
    t[I] = s[I];
    atomicAdd(&out[t[I] & 31], 1);
}
KERNEL(found_a_branch) {
    PARTLY_WRITTEN(s);
    __shared__ volatile int t[32];
    t[I] = s[I];
    if (t[I] > 3) atomicAdd(out, 1);
}
KERNEL(found_generic_addresses) {
    PARTLY_WRITTEN(s);
    __shared__ volatile int t[32];
    volatile int* to = I & 1 ? out + I : t + I;
    *to = I & 1 ? 3 : s[I];
    out[I] = *to;
}
