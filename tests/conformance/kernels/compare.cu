// Comparisons: ordered and unordered (ne is ordered, neu is not), flushed, signed and unsigned, combined with
// a predicate; selection by predicate and by sign.
#include "rows.cuh"

// The predicate and its complement, as one bit each.
#define COMPARE(name, X)                                                                   \
    {                                                                                      \
        unsigned r;                                                                        \
        asm volatile("{ .reg .pred p, q; " name " p|q, %1, %2;"                            \
                     " selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }"                      \
                     : "=r"(r)                                                             \
                     : X(x), X(y));                                                        \
        PUT(r);                                                                            \
    }
#define COMPARE_PLAIN(name, X)                                                             \
    {                                                                                      \
        unsigned r;                                                                        \
        asm volatile("{ .reg .pred p; " name " p, %1, %2; selp.u32 %0, 1, 0, p; }"         \
                     : "=r"(r)                                                             \
                     : X(x), X(y));                                                        \
        PUT(r);                                                                            \
    }

extern "C" __global__ void floats(const float* a, const float* b, unsigned char* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    COMPARE("setp.eq.f32", "f") COMPARE("setp.ne.f32", "f") COMPARE("setp.lt.f32", "f")
    COMPARE("setp.le.f32", "f") COMPARE("setp.gt.f32", "f") COMPARE("setp.ge.f32", "f")
    COMPARE("setp.equ.f32", "f") COMPARE("setp.neu.f32", "f") COMPARE("setp.ltu.f32", "f")
    COMPARE("setp.leu.f32", "f") COMPARE("setp.gtu.f32", "f") COMPARE("setp.geu.f32", "f")
    COMPARE("setp.num.f32", "f") COMPARE("setp.nan.f32", "f") COMPARE("setp.eq.ftz.f32", "f")
    COMPARE("setp.ne.ftz.f32", "f") COMPARE("setp.lt.ftz.f32", "f") COMPARE("setp.geu.ftz.f32", "f")
}

extern "C" __global__ void doubles(const double* a, const double* b, unsigned char* out, int n) {
    LANE
    const double x = a[i], y = b[i];
    COMPARE("setp.eq.f64", "d") COMPARE("setp.ne.f64", "d") COMPARE("setp.lt.f64", "d")
    COMPARE("setp.le.f64", "d") COMPARE("setp.gt.f64", "d") COMPARE("setp.ge.f64", "d")
    COMPARE("setp.equ.f64", "d") COMPARE("setp.neu.f64", "d") COMPARE("setp.ltu.f64", "d")
    COMPARE("setp.leu.f64", "d") COMPARE("setp.gtu.f64", "d") COMPARE("setp.geu.f64", "d")
    COMPARE("setp.num.f64", "d") COMPARE("setp.nan.f64", "d")
}

extern "C" __global__ void halves(const unsigned short* a, const unsigned short* b, unsigned char* out, int n) {
    LANE
    const unsigned short x = a[i], y = b[i];
    COMPARE_PLAIN("setp.eq.f16", "h") COMPARE_PLAIN("setp.ne.f16", "h") COMPARE_PLAIN("setp.lt.f16", "h")
    COMPARE_PLAIN("setp.le.f16", "h") COMPARE_PLAIN("setp.gt.f16", "h") COMPARE_PLAIN("setp.ge.f16", "h")
    COMPARE_PLAIN("setp.equ.f16", "h") COMPARE_PLAIN("setp.neu.f16", "h")
    COMPARE_PLAIN("setp.ltu.f16", "h") COMPARE_PLAIN("setp.leu.f16", "h")
    COMPARE_PLAIN("setp.gtu.f16", "h") COMPARE_PLAIN("setp.geu.f16", "h")
    COMPARE_PLAIN("setp.num.f16", "h") COMPARE_PLAIN("setp.nan.f16", "h")
    COMPARE_PLAIN("setp.lt.ftz.f16", "h") COMPARE_PLAIN("setp.eq.bf16", "h")
    COMPARE_PLAIN("setp.ltu.bf16", "h")
}

extern "C" __global__ void ints32(const int* a, const int* b, unsigned char* out, int n) {
    LANE
    const int x = a[i], y = b[i];
    COMPARE("setp.eq.s32", "r") COMPARE("setp.ne.s32", "r") COMPARE("setp.lt.s32", "r")
    COMPARE("setp.le.s32", "r") COMPARE("setp.gt.s32", "r") COMPARE("setp.ge.s32", "r")
    COMPARE("setp.lo.u32", "r") COMPARE("setp.ls.u32", "r") COMPARE("setp.hi.u32", "r")
    COMPARE("setp.hs.u32", "r") COMPARE("setp.lt.u32", "r") COMPARE("setp.eq.b32", "r")
}

extern "C" __global__ void ints64(const long long* a, const long long* b, unsigned char* out, int n) {
    LANE
    const long long x = a[i], y = b[i];
    COMPARE("setp.eq.s64", "l") COMPARE("setp.ne.s64", "l") COMPARE("setp.lt.s64", "l")
    COMPARE("setp.le.s64", "l") COMPARE("setp.gt.s64", "l") COMPARE("setp.ge.s64", "l")
    COMPARE("setp.lo.u64", "l") COMPARE("setp.ls.u64", "l") COMPARE("setp.hi.u64", "l")
    COMPARE("setp.hs.u64", "l") COMPARE("setp.lt.u64", "l") COMPARE("setp.ne.b64", "l")
}

extern "C" __global__ void ints16(const short* a, const short* b, unsigned char* out, int n) {
    LANE
    const short x = a[i], y = b[i];
    COMPARE("setp.eq.s16", "h") COMPARE("setp.ne.s16", "h") COMPARE("setp.lt.s16", "h")
    COMPARE("setp.le.s16", "h") COMPARE("setp.gt.s16", "h") COMPARE("setp.ge.s16", "h")
    COMPARE("setp.lo.u16", "h") COMPARE("setp.ls.u16", "h") COMPARE("setp.hi.u16", "h")
    COMPARE("setp.hs.u16", "h") COMPARE("setp.lt.u16", "h") COMPARE("setp.eq.b16", "h")
}

#define COMBINE(name)                                                                            \
    {                                                                                            \
        unsigned r;                                                                              \
        asm volatile("{ .reg .pred p, q, s; setp.ne.s32 s, %3, 0; " name " p|q, %1, %2, s;"      \
                     " selp.u32 %0, 1, 0, p; @q add.u32 %0, %0, 2; }"                            \
                     : "=r"(r)                                                                   \
                     : "f"(x), "f"(y), "r"(i & 1));                                              \
        PUT(r);                                                                                  \
    }
#define COMBINE_NOT(name)                                                                        \
    {                                                                                            \
        unsigned r;                                                                              \
        asm volatile("{ .reg .pred p, s; setp.ne.s32 s, %3, 0; " name " p, %1, %2, !s;"          \
                     " selp.u32 %0, 1, 0, p; }"                                                  \
                     : "=r"(r)                                                                   \
                     : "f"(x), "f"(y), "r"(i & 1));                                              \
        PUT(r);                                                                                  \
    }

extern "C" __global__ void combined(const float* a, const float* b, unsigned char* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    COMBINE("setp.lt.and.f32") COMBINE("setp.lt.or.f32") COMBINE("setp.geu.xor.f32")
    COMBINE_NOT("setp.eq.and.f32") COMBINE_NOT("setp.neu.xor.ftz.f32")
}

#define PREDICATES(name)                                                                            \
    {                                                                                               \
        unsigned r;                                                                                 \
        asm volatile("{ .reg .pred p, q; setp.lt.f32 p, %1, %2; setp.ne.s32 q, %3, 0; " name        \
                     " selp.u32 %0, 1, 0, p; }"                                                     \
                     : "=r"(r)                                                                      \
                     : "f"(x), "f"(y), "r"(i & 1));                                                 \
        PUT(r);                                                                                     \
    }

extern "C" __global__ void predicates(const float* a, const float* b, unsigned char* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    PREDICATES("and.pred p, p, q;") PREDICATES("or.pred p, p, q;") PREDICATES("xor.pred p, p, q;")
    PREDICATES("not.pred p, p;") PREDICATES("mov.pred p, q;") PREDICATES("@!q and.pred p, p, q;")
}

// set gives all ones or 1.0 instead of a predicate; slct chooses by the sign of its third operand.
extern "C" __global__ void selections(const float* a, const float* b, unsigned* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    const float z = y;
    BINARY_AS("set.lt.u32.f32", unsigned, "=r", "f", "f")
    BINARY_AS("set.neu.s32.f32", unsigned, "=r", "f", "f")
    {
        float r;
        asm volatile("set.eq.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
        VALUE("set.eq.f32.f32", __float_as_uint(r))
    }
    TERNARY_AS("slct.b32.f32", unsigned, "=r", "f", "f", "f")
    TERNARY_AS("slct.ftz.b32.f32", unsigned, "=r", "f", "f", "f")
    {
        const int z = __float_as_int(y);
        TERNARY_AS("slct.b32.s32", unsigned, "=r", "f", "f", "r")
    }
    {
        unsigned r;
        asm volatile("{ .reg .pred p; setp.gt.f32 p, %1, %2; selp.b32 %0, %1, %2, p; }" : "=r"(r) : "f"(x), "f"(y));
        VALUE("selp.b32", r)
    }
}
