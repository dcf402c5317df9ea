// The 32 threads of a warp execute one instruction at a time. When they disagree on a condition, the warp executes both
// sides one after the other, each with the threads that take it: T(condition) + T(then) + T(else). When all threads of
// the warp agree, it executes only one side. So it matters which threads of a block take the same side.
//
//   choose<One>         every thread applies function 0
//   choose<ByWarp>      one of 8 functions, picked by the index of the warp modulo 8: no warp diverges
//   choose<ByLane>      one of 8 functions, picked by threadIdx.x % 8: each warp executes all 8, with 4 lanes each
//
//   sides<Then>, sides<Else>    every thread takes the same side
//   sides<Even>         threadIdx.x % 2 == 0: neighbouring threads disagree, and every warp diverges
//   sides<First<s>>     threadIdx.x < s: at most one warp per block diverges, and none if s is a multiple of 32
//   sides<EvenRow>      threadIdx.y % 2 == 0, for two-dimensional blocks. Threads are numbered along x first: a row of
//                       32 threads is a warp, and in a block of 16 x 16 threads a warp has two rows
//   sides<FirstRow<s>>  threadIdx.y < s
//
//   select<Even>        each side is one multiply-add: the compiler lets every thread select its factor, or predicates
//                       the instructions, and no warp diverges
//
// Each function repeats the multiply-add x = x * factor + 1 `passes` times, with its own factor. Because of the loops,
// the compiler cannot simply select the factor, as it does in `select`.

__device__ unsigned element()
{
    unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    return blockIdx.x * blockDim.x * blockDim.y + thread;
}

template <int number>
__device__ float apply(float x, int passes)
{
    constexpr float factor = 1.0f - (number + 1) / 1024.0f;
#pragma unroll 32
    for (int pass = 0; pass < passes; pass++)
        x = x * factor + 1.0f;
    return x;
}

struct One {
    static __device__ unsigned number() { return 0; }
};

struct ByWarp {
    static __device__ unsigned number() { return threadIdx.x / 32 % 8; }
};

struct ByLane {
    static __device__ unsigned number() { return threadIdx.x % 8; }
};

template <class Number>
__global__ void choose(const float* in, float* out, unsigned n, int passes)
{
    unsigned i = element();
    if (i >= n)
        return;
    float x = in[i];
    switch (Number::number()) {
    case 0: x = apply<0>(x, passes); break;
    case 1: x = apply<1>(x, passes); break;
    case 2: x = apply<2>(x, passes); break;
    case 3: x = apply<3>(x, passes); break;
    case 4: x = apply<4>(x, passes); break;
    case 5: x = apply<5>(x, passes); break;
    case 6: x = apply<6>(x, passes); break;
    default: x = apply<7>(x, passes); break;
    }
    out[i] = x;
}

struct Then {
    static __device__ bool test() { return true; }
};

struct Else {
    static __device__ bool test() { return false; }
};

struct Even {
    static __device__ bool test() { return threadIdx.x % 2 == 0; }
};

template <int s>
struct First {
    static __device__ bool test() { return threadIdx.x < s; }
};

struct EvenRow {
    static __device__ bool test() { return threadIdx.y % 2 == 0; }
};

template <int s>
struct FirstRow {
    static __device__ bool test() { return threadIdx.y < s; }
};

template <class Condition>
__global__ void sides(const float* in, float* out, unsigned n, int passes)
{
    unsigned i = element();
    if (i >= n)
        return;
    float x = in[i];
    if (Condition::test())
        x = apply<0>(x, passes);
    else
        x = apply<1>(x, passes);
    out[i] = x;
}

template <class Condition>
__global__ void select(const float* in, float* out, unsigned n)
{
    unsigned i = element();
    if (i >= n)
        return;
    float x = in[i];
    if (Condition::test())
        x = apply<0>(x, 1);
    else
        x = apply<1>(x, 1);
    out[i] = x;
}
