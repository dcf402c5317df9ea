// Kernels that copy what nobody wrote, which is no mistake, or use it, which is.
// `out` has room for 512 bytes per thread; `n` is 7, `i` the number of the thread.
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

// They use none of it.
KERNEL(silent_a_structure) {
    int i = threadIdx.x;
    Tail t;
    fill(&t, n);
    ((Tail*)out)[i] = t;
}
KERNEL(silent_a_structure_local_to_a_loop) {
    int i = threadIdx.x;
    for (int k = 0; k < n; k++) {
        Tail t;
        fill(&t, k);
        ((Tail*)out)[i + 32 * k] = t;
    }
}
KERNEL(silent_a_structure_by_value) {
    int i = threadIdx.x;
    ((Tail*)out)[i] = made(n);
}
KERNEL(silent_many_bytes_at_once) {
    int i = threadIdx.x;
    struct Large {
        long long a[40];
        short b;
    };
    __shared__ Large s;
    if (i < 20) {
        s.a[i] = i;
        s.a[i + 20] = i;
        s.b = 3;
    }
    __syncthreads();
    if (i == 0) *(Large*)out = s;
}
KERNEL(silent_a_flag) {
    int i = threadIdx.x;
    __shared__ Flag s[32];
    s[i].value = n;
    s[i].set = i & 1;
    __syncthreads();
    ((Flag*)out)[i] = s[i ^ 1];
}
KERNEL(silent_fields_of_bits) {
    int i = threadIdx.x;
    __shared__ Bits s[32];
    s[i].a = n;
    s[i].b = 3;
    s[i].c = 1;
    __syncthreads();
    ((Bits*)out)[i] = s[i ^ 1];
}
KERNEL(silent_a_union) {
    int i = threadIdx.x;
    __shared__ Either s[32];
    s[i].kind = n & 1;
    if (n & 1) s[i].word.narrow = n;
    else s[i].word.wide = n;
    __syncthreads();
    ((Either*)out)[i] = s[i ^ 1];
}
KERNEL(silent_a_part_of_an_array) {
    int i = threadIdx.x;
    int a[16], sum = 0;
    for (int k = 0; k < n; k++) a[k] = k;
    for (int k = 0; k < 16; k++) {
        int v = a[k];
        sum += k < n ? v : 0;
    }
    out[i] = sum;
}
KERNEL(silent_lanes_of_a_vector) {
    int i = threadIdx.x;
    float4 v[4];
    for (int k = 0; k < 4; k++) {
        float4& one = v[(k + n) & 3];
        one.x = k;
        one.y = n;
    }
    float4 one = v[n & 3];
    out[i] = one.x + one.y;
}
KERNEL(silent_a_shuffled_value) {
    int i = threadIdx.x;
    __shared__ int s[32];
    if (i < n) s[i] = i;
    __syncthreads();
    int v = __shfl_down_sync(~0u, s[i], 1);
    out[i] = i < n - 1 ? v : 0;
}
KERNEL(silent_what_is_not_selected) {
    int i = threadIdx.x;
    __shared__ int s[32];
    if (i < n) s[i] = i;
    __syncthreads();
    int v = s[i] * 3;
    out[i] = i < n ? v : -1;
}
KERNEL(silent_carried_by_a_loop) {
    int i = threadIdx.x;
    int last, sum = 0;
    bool some = false;
    for (int k = 0; k < n; k++) {
        if (some) sum += last;
        last = k * n;
        some = true;
    }
    out[i] = sum;
}
KERNEL(silent_through_shared_memory) {
    int i = threadIdx.x;
    __shared__ int s[32], t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i ^ 1] = s[i];
    __syncthreads();
    int v = t[i ^ 1];
    if (i < n) out[i] = v;
}
KERNEL(silent_through_local_memory) {
    int i = threadIdx.x;
    __shared__ int s[32];
    int t[8];
    if (i < n) s[i] = i;
    __syncthreads();
    for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[i];
    int v = t[n & 7];
    if (i < n) out[i] = v;
}
KERNEL(silent_written_over) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i] = s[i];
    t[i] = n;
    out[i] = t[i];
}
KERNEL(silent_written_over_by_an_atomic) {
    int i = threadIdx.x;
    __shared__ int s[32], t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    *(volatile int*)&t[i] = s[i];
    atomicExch(&t[i], n);
    out[i] = t[i];
}
KERNEL(silent_a_structure_through_all_memories) {
    int i = threadIdx.x;
    __shared__ Tail s[32];
    Tail t, local[4];
    fill(&t, n);
    s[i] = t;
    __syncwarp();
    for (int k = 0; k < 4; k++) local[(k + n) & 3] = s[i ^ 1];
    ((Tail*)in)[i] = local[n & 3];
    __syncwarp();
    ((Tail*)out)[i] = ((Tail*)in)[i ^ 1];
}

// They use it.
KERNEL(found_a_member_through_shared_and_global_memory) {
    int i = threadIdx.x;
    __shared__ Members s[32];
    s[i].a = n;
    __syncwarp();
    ((Members*)in)[i] = s[i ^ 1];
    __syncwarp();
    out[i] = ((Members*)in)[i ^ 1].b;
}
KERNEL(found_a_structure_that_nobody_wrote) {
    int i = threadIdx.x;
    __shared__ Tail s[32];
    ((Tail*)out)[i] = s[i ^ 1];
}
KERNEL(found_a_member_that_nobody_wrote) {
    int i = threadIdx.x;
    __shared__ Members s[32];
    s[i].a = n;
    ((Members*)out)[i] = s[i];
}
KERNEL(found_an_element_of_four) {
    int i = threadIdx.x;
    __shared__ Four s[32];
    s[i].v[0] = s[i].v[2] = s[i].v[3] = n;
    __syncwarp();
    ((Four*)out)[i] = s[i];
}
KERNEL(found_elements_copied_by_one_line) {
    int i = threadIdx.x;
    __shared__ int s[128];
    s[4 * i] = s[4 * i + 1] = s[4 * i + 3] = n;
    __syncwarp();
    for (int k = 0; k < 4; k++) out[4 * i + k] = s[4 * i + k];
}
KERNEL(found_through_shared_memory) {
    int i = threadIdx.x;
    __shared__ int s[32], t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i ^ 1] = s[i];
    __syncthreads();
    out[i] = t[i ^ 1];
}
KERNEL(found_through_local_memory) {
    int i = threadIdx.x;
    __shared__ int s[32];
    int t[8];
    if (i < n) s[i] = i;
    __syncthreads();
    for (int k = 0; k < 8; k++) t[(k + n) & 7] = s[i];
    out[i] = t[n & 7];
}
KERNEL(found_a_byte_of_what_was_moved) {
    int i = threadIdx.x;
    __shared__ unsigned char s[128];
    __shared__ volatile unsigned t[32];
    s[4 * i] = s[4 * i + 1] = s[4 * i + 2] = n;
    for (int k = 0; k < 4; k++) ((volatile unsigned char*)t)[4 * i + k] = s[4 * i + k];
    ((unsigned char*)out)[i] = t[i] >> 24;
}
KERNEL(found_computed_before_it_was_moved) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i] = s[i] * 2 + 1;
    out[i] = t[i];
}
KERNEL(found_an_address) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i] = s[i];
    atomicAdd(&out[t[i] & 31], 1);
}
KERNEL(found_a_branch) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    t[i] = s[i];
    if (t[i] > 3) atomicAdd(out, 1);
}
KERNEL(found_generic_addresses) {
    int i = threadIdx.x;
    __shared__ int s[32];
    __shared__ volatile int t[32];
    if (i < n) s[i] = i;
    __syncthreads();
    volatile int* to = i & 1 ? out + i : t + i;
    *to = i & 1 ? 3 : s[i];
    out[i] = *to;
}
