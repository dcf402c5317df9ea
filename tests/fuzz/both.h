// Device functions and their meaning in C++ of the host: NVRTC takes the first halves, the host's compiler the second.
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;

#define FULL 0xffffffffu

#ifdef __CUDACC__
#define FUNCTION __device__
#define INLINE __device__ __forceinline__
#define SEPARATE __device__ __noinline__
#else
#include <cfenv>
#include <cmath>
#include <cstring>
#define FUNCTION static
#define INLINE static inline
#define SEPARATE static __attribute__((noinline))
using std::isfinite; using std::isinf; using std::isnan;
template <class To, class From> static To as(From x) { To r; static_assert(sizeof r == sizeof x, ""); memcpy(&r, &x, sizeof r); return r; }
static i32 __float_as_int(f32 x) { return as<i32>(x); }
static f32 __int_as_float(i32 x) { return as<f32>(x); }
static i64 __double_as_longlong(f64 x) { return as<i64>(x); }
static f64 __longlong_as_double(i64 x) { return as<f64>(x); }
static i32 __popc(u32 x) { return __builtin_popcount(x); }
static i32 __popcll(u64 x) { return __builtin_popcountll(x); }
static i32 __clz(i32 x) { return x ? __builtin_clz(x) : 32; }
static i32 __clzll(i64 x) { return x ? __builtin_clzll(x) : 64; }
static i32 __ffs(i32 x) { return __builtin_ffs(x); }
static i32 __ffsll(i64 x) { return __builtin_ffsll(x); }
static u32 __brev(u32 x) { u32 r = 0; for (int i = 0; i < 32; i++) r |= (x >> i & 1) << (31 - i); return r; }
static u64 __brevll(u64 x) { return (u64)__brev((u32)x) << 32 | __brev((u32)(x >> 32)); }
static i32 __mulhi(i32 x, i32 y) { return (i32)((i64)x * y >> 32); }
static u32 __umulhi(u32 x, u32 y) { return (u32)((u64)x * y >> 32); }
static i64 __mul64hi(i64 x, i64 y) { return (i64)((__int128)x * y >> 64); }
static u64 __umul64hi(u64 x, u64 y) { return (u64)((unsigned __int128)x * y >> 64); }
static i32 product_of_24(i32 x, i32 y) { return (i32)(u32)((i64)((i32)((u32)x << 8) >> 8) * ((i32)((u32)y << 8) >> 8)); }
static u32 __umul24(u32 x, u32 y) { return (x & 0xffffff) * (y & 0xffffff); }
static u32 __sad(i32 x, i32 y, u32 z) { return (u32)(x > y ? (u32)x - (u32)y : (u32)y - (u32)x) + z; }
static u32 __usad(u32 x, u32 y, u32 z) { return (x > y ? x - y : y - x) + z; }
static i32 __hadd(i32 x, i32 y) { return (i32)(((i64)x + y) >> 1); }
static i32 __rhadd(i32 x, i32 y) { return (i32)(((i64)x + y + 1) >> 1); }
static u32 __uhadd(u32 x, u32 y) { return (u32)(((u64)x + y) >> 1); }
static u32 __urhadd(u32 x, u32 y) { return (u32)(((u64)x + y + 1) >> 1); }
static u32 __byte_perm(u32 x, u32 y, u32 s) {
    u64 all = (u64)y << 32 | x;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(all >> 8 * (s >> 4 * i & 7) & 255) << 8 * i;
    return r;
}
static u32 __funnelshift_l(u32 l, u32 h, u32 n) { return (u32)(((u64)h << 32 | l) << (n & 31) >> 32); }
static u32 __funnelshift_r(u32 l, u32 h, u32 n) { return (u32)(((u64)h << 32 | l) >> (n & 31)); }
static u32 __funnelshift_lc(u32 l, u32 h, u32 n) { return n >= 32 ? l : __funnelshift_l(l, h, n); }
static u32 __funnelshift_rc(u32 l, u32 h, u32 n) { return n >= 32 ? h : __funnelshift_r(l, h, n); }
static i32 __dp4a(i32 x, i32 y, i32 z) {
    u32 r = z;
    for (int i = 0; i < 4; i++) r += (u32)((i8)(x >> 8 * i) * (i8)(y >> 8 * i));
    return (i32)r;
}
static u32 __dp4a(u32 x, u32 y, u32 z) {
    for (int i = 0; i < 4; i++) z += (x >> 8 * i & 255) * (y >> 8 * i & 255);
    return z;
}
static u32 __vadd4(u32 x, u32 y) {
    u32 r = 0;
    for (int i = 0; i < 32; i += 8) r |= ((x >> i) + (y >> i) & 255) << i;
    return r;
}
static u32 __vabsdiffu4(u32 x, u32 y) {
    u32 r = 0;
    for (int i = 0; i < 32; i += 8) { i32 d = (i32)(x >> i & 255) - (i32)(y >> i & 255); r |= (u32)(d < 0 ? -d : d) << i; }
    return r;
}
#define EXTREMES(T) \
    static T min(T x, T y) { return x < y ? x : y; } \
    static T max(T x, T y) { return x < y ? y : x; }
EXTREMES(i32) EXTREMES(u32) EXTREMES(i64) EXTREMES(u64)
// Where only the signs of zeros differ, the negative zero is the smaller one; a NaN gives way to a number.
#define FLOAT_EXTREMES(T, less, greater) \
    static T less(T x, T y) { return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? x : y) : x < y ? x : y; } \
    static T greater(T x, T y) { return x != x ? y : y != y ? x : x == y ? (std::signbit(x) ? y : x) : x < y ? y : x; }
FLOAT_EXTREMES(f32, least, greatest) FLOAT_EXTREMES(f64, least, greatest)
// Arithmetic and conversions in another rounding.
#define ROUNDED(mode, expression) volatile int before = fegetround(); fesetround(mode); volatile auto r = expression; \
    fesetround(before); return r;
#define EACH_ROUNDING(DO) DO(rn, FE_TONEAREST) DO(rz, FE_TOWARDZERO) DO(ru, FE_UPWARD) DO(rd, FE_DOWNWARD)
#define ARITHMETIC(word, mode) \
    static f32 __fadd_##word(volatile f32 x, volatile f32 y) { ROUNDED(mode, x + y) } \
    static f32 __fmul_##word(volatile f32 x, volatile f32 y) { ROUNDED(mode, x * y) } \
    static f32 __fdiv_##word(volatile f32 x, volatile f32 y) { ROUNDED(mode, x / y) } \
    static f64 __dadd_##word(volatile f64 x, volatile f64 y) { ROUNDED(mode, x + y) } \
    static f64 __dmul_##word(volatile f64 x, volatile f64 y) { ROUNDED(mode, x * y) } \
    static f32 __double2float_##word(volatile f64 x) { ROUNDED(mode, (f32)x) } \
    static f32 __int2float_##word(volatile i32 x) { ROUNDED(mode, (f32)x) } \
    static f32 __uint2float_##word(volatile u32 x) { ROUNDED(mode, (f32)x) } \
    static f32 __ll2float_##word(volatile i64 x) { ROUNDED(mode, (f32)x) } \
    static f64 __ll2double_##word(volatile i64 x) { ROUNDED(mode, (f64)x) } \
    static i32 __float2int_##word(f32 x) { f64 r = rounded_##word(x); return r != r ? 0 : r < -2147483648.0 ? (i32)0x80000000 : r > 2147483647.0 ? 0x7fffffff : (i32)r; } \
    static u32 __float2uint_##word(f32 x) { f64 r = rounded_##word(x); return !(r > 0) ? 0 : r > 4294967295.0 ? FULL : (u32)r; } \
    static i32 __double2int_##word(f64 x) { f64 r = rounded_##word(x); return r != r ? (i32)0x80000000 : r < -2147483648.0 ? (i32)0x80000000 : r > 2147483647.0 ? 0x7fffffff : (i32)r; }
static f64 rounded_rn(f64 x) { return std::nearbyint(x); }
static f64 rounded_rz(f64 x) { return std::trunc(x); }
static f64 rounded_ru(f64 x) { return std::ceil(x); }
static f64 rounded_rd(f64 x) { return std::floor(x); }
EACH_ROUNDING(ARITHMETIC)
#endif

#ifdef __CUDACC__
// NVRTC takes 0.0 for the least of the constants 0.0 and -0.0, where the instruction gives -0.0: it must not see both.
INLINE f32 least(f32 x, f32 y) { asm("" : "+f"(x)); return fminf(x, y); }
INLINE f64 least(f64 x, f64 y) { asm("" : "+d"(x)); return fmin(x, y); }
INLINE f32 greatest(f32 x, f32 y) { asm("" : "+f"(x)); return fmaxf(x, y); }
INLINE f64 greatest(f64 x, f64 y) { asm("" : "+d"(x)); return fmax(x, y); }
#define ASSEMBLED(T, c, name, opcode, P) \
    INLINE T name(T x, P y, P z) { T r; asm(opcode " %0, %1, %2, %3;" : "=" c(r) : c(x), "r"(y), "r"(z)); return r; }
ASSEMBLED(u32, "r", field_u32, "bfe.u32", u32)
ASSEMBLED(i32, "r", field_i32, "bfe.s32", u32)
ASSEMBLED(u64, "l", field_u64, "bfe.u64", u32)
ASSEMBLED(i64, "l", field_i64, "bfe.s64", u32)
INLINE u32 inserted(u32 x, u32 y, u32 at, u32 n) { u32 r; asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(at), "r"(n)); return r; }
INLINE u64 inserted(u64 x, u64 y, u32 at, u32 n) { u64 r; asm("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(r) : "l"(x), "l"(y), "r"(at), "r"(n)); return r; }
ASSEMBLED(u32, "r", permuted, "prmt.b32", u32)
ASSEMBLED(u32, "r", permuted_f4e, "prmt.b32.f4e", u32)
ASSEMBLED(u32, "r", permuted_b4e, "prmt.b32.b4e", u32)
ASSEMBLED(u32, "r", permuted_rc8, "prmt.b32.rc8", u32)
ASSEMBLED(u32, "r", permuted_ecl, "prmt.b32.ecl", u32)
ASSEMBLED(u32, "r", permuted_ecr, "prmt.b32.ecr", u32)
ASSEMBLED(u32, "r", permuted_rc16, "prmt.b32.rc16", u32)
// NVRTC 13.0 concludes the sign of __mul24 from the factors, as if the product never overflowed 32 bits: it must not see
// that its result is one.
INLINE i32 product_of_24(i32 x, i32 y) { i32 r = __mul24(x, y); asm("" : "+r"(r)); return r; }
INLINE u32 clamped_left(u32 x, u32 n) { u32 r; asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n)); return r; }
INLINE u32 clamped_right(u32 x, u32 n) { u32 r; asm("shr.u32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n)); return r; }
INLINE i32 clamped_right(i32 x, u32 n) { i32 r; asm("shr.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(n)); return r; }
template <int table> INLINE u32 chosen_bits(u32 x, u32 y, u32 z) { u32 r; asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(x), "r"(y), "r"(z), "n"(table)); return r; }
#else
template <class T, class U> static T piece(T x, u32 at, u32 n, bool is_signed) {
    const u32 width = 8 * sizeof(T);
    at &= 255, n &= 255;
    T r = 0;
    u32 top = at + n - 1 < width - 1 ? at + n - 1 : width - 1;
    bool sign = is_signed && n && ((U)x >> top & 1);
    for (u32 i = 0; i < width; i++) r |= (T)((U)(i < n && at + i < width ? (U)x >> (at + i) & 1 : sign) << i);
    return r;
}
static u32 field_u32(u32 x, u32 at, u32 n) { return piece<u32, u32>(x, at, n, false); }
static i32 field_i32(i32 x, u32 at, u32 n) { return piece<i32, u32>(x, at, n, true); }
static u64 field_u64(u64 x, u32 at, u32 n) { return piece<u64, u64>(x, at, n, false); }
static i64 field_i64(i64 x, u32 at, u32 n) { return piece<i64, u64>(x, at, n, true); }
template <class T> static T inserted(T x, T y, u32 at, u32 n) {
    at &= 255, n &= 255;
    for (u32 i = 0; i < n && at + i < 8 * sizeof(T); i++) y = (y & ~((T)1 << (at + i))) | (x >> i & 1) << (at + i);
    return y;
}
static u32 bytes(u32 x, u32 y, const u32 (&places)[4]) {
    u64 all = (u64)y << 32 | x;
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(all >> 8 * (places[i] & 7) & 255) << 8 * i;
    return r;
}
static u32 permuted(u32 x, u32 y, u32 s) {
    u32 r = __byte_perm(x, y, s);
    for (int i = 0; i < 4; i++)
        if (s >> (4 * i + 3) & 1) r = (r & ~(255u << 8 * i)) | (r >> (8 * i + 7) & 1 ? 255u << 8 * i : 0);
    return r;
}
static u32 permuted_f4e(u32 x, u32 y, u32 s) { s &= 3; return bytes(x, y, {s, s + 1, s + 2, s + 3}); }
static u32 permuted_b4e(u32 x, u32 y, u32 s) { s &= 3; return bytes(x, y, {s, s + 7, s + 6, s + 5}); }
static u32 permuted_rc8(u32 x, u32 y, u32 s) { s &= 3; return bytes(x, y, {s, s, s, s}); }
static u32 permuted_ecl(u32 x, u32 y, u32 s) { s &= 3; return bytes(x, y, {s, s < 1 ? 1 : s, s < 2 ? 2 : s, 3}); }
static u32 permuted_ecr(u32 x, u32 y, u32 s) { s &= 3; return bytes(x, y, {0, s < 1 ? s : 1, s < 2 ? s : 2, s}); }
static u32 permuted_rc16(u32 x, u32 y, u32 s) { s = 2 * (s & 1); return bytes(x, y, {s, s + 1, s, s + 1}); }
static u32 clamped_left(u32 x, u32 n) { return n > 31 ? 0 : x << n; }
static u32 clamped_right(u32 x, u32 n) { return n > 31 ? 0 : x >> n; }
static i32 clamped_right(i32 x, u32 n) { return x >> (n > 31 ? 31 : n); }
template <int table> static u32 chosen_bits(u32 x, u32 y, u32 z) {
    u32 r = 0;
    for (int i = 0; i < 32; i++) r |= (u32)(table >> ((x >> i & 1) * 4 + (y >> i & 1) * 2 + (z >> i & 1)) & 1) << i;
    return r;
}
#endif
// ptxas 13.0 mixes up the operands of lop3 where one register stands twice: all three are different values.
template <int table> INLINE u32 of_three(u32 x, u32 y, u32 z) { return chosen_bits<table>(x, y + 1, z ^ 2); }

// What C++ leaves open is decided here: a NaN's bits, divisions that have no quotient, conversions out of range.
INLINE u32 bits(f32 x) { return x != x ? 0x7fc00000u : (u32)__float_as_int(x); }
INLINE u64 bits(f64 x) { return x != x ? 0x7ff8000000000000ull : (u64)__double_as_longlong(x); }
INLINE f32 from_bits(u32 x) { return __int_as_float((i32)x); }
INLINE f64 from_bits(u64 x) { return __longlong_as_double((i64)x); }
INLINE f32 with_sign(f32 x, f32 y) { return copysignf(x, y != y ? 1.0f : y); }
INLINE f64 with_sign(f64 x, f64 y) { return copysign(x, y != y ? 1.0 : y); }
#define DIVISION(T, U, least_of) \
    INLINE T quotient(T x, T y) { return y == 0 ? (T)-1 : least_of && y == (T)-1 ? (T)(0 - (U)x) : x / y; } \
    INLINE T rest(T x, T y) { return y == 0 ? x : least_of && y == (T)-1 ? 0 : x % y; }
DIVISION(i32, u32, 1) DIVISION(i64, u64, 1) DIVISION(u32, u32, 0) DIVISION(u64, u64, 0)
#define TO_INTEGER(T, F, name, low, high) \
    INLINE T name(F x) { return x >= low && x < high ? (T)x : (T)0; }
#define TO_INTEGERS(F) \
    TO_INTEGER(i32, F, to_i32, (F)-2147483648.0, (F)2147483648.0) TO_INTEGER(u32, F, to_u32, (F)0, (F)4294967296.0) \
    TO_INTEGER(i64, F, to_i64, (F)-9223372036854775808.0, (F)9223372036854775808.0) \
    TO_INTEGER(u64, F, to_u64, (F)0, (F)18446744073709551616.0)
TO_INTEGERS(f32) TO_INTEGERS(f64)
INLINE u64 word(f32 x) { return bits(x); }
INLINE u64 word(f64 x) { return bits(x); }
INLINE u64 word(i32 x) { return (u64)(i64)x; }
INLINE u64 word(u32 x) { return x; }
INLINE u64 word(i64 x) { return (u64)x; }
INLINE u64 word(u64 x) { return x; }
INLINE u64 mixed(u64 h, u64 x) { return (h ^ x) * 0x9e3779b97f4a7c15ull >> 7 ^ h << 5; }

#ifndef __CUDACC__
// What the lanes of a warp do together, one array of 32 lanes after the other. `members` take part.
static u32 lowest(u32 x) { return __ffs((i32)x) - 1; }
static u32 highest(u32 x) { return 31 - __clz((i32)x); }
static u32 source_idx(u32 lane, u32 n, u32 width) { return (lane & ~(width - 1)) | (n & (width - 1)); }
static u32 source_up(u32 lane, u32 n, u32 width) { i32 j = (i32)lane - (i32)(n & 31); return j < (i32)(lane & ~(width - 1)) ? lane : j; }
static u32 source_down(u32 lane, u32 n, u32 width) { u32 j = lane + (n & 31); return j > (lane | (width - 1)) ? lane : j; }
static u32 source_xor(u32 lane, u32 n, u32 width) { u32 j = lane ^ (n & 31); return j > (lane | (width - 1)) ? lane : j; }
#define REDUCTION(name, expression) \
    template <class T> static T name(const T* x, u32 members) { \
        T r = x[lowest(members)]; \
        for (u32 i = lowest(members) + 1; i < 32; i++) if (members >> i & 1) { T y = x[i]; r = (T)(expression); } \
        return r; \
    }
REDUCTION(reduced_add, (u32)r + (u32)y) REDUCTION(reduced_min, min(r, y)) REDUCTION(reduced_max, max(r, y))
REDUCTION(reduced_and, r & y) REDUCTION(reduced_or, r | y) REDUCTION(reduced_xor, r ^ y)
template <class T> static u32 ballot(const T* x, u32 members) {
    u32 r = 0;
    for (int i = 0; i < 32; i++) r |= (members >> i & 1 && x[i] ? 1u : 0u) << i;
    return r;
}
template <class T> static u32 matching(const T* x, u32 members, u32 lane) {
    u32 r = 0;
    for (int i = 0; i < 32; i++) r |= (members >> i & 1 && x[i] == x[lane] ? 1u : 0u) << i;
    return r;
}
#else
INLINE u32 lowest(u32 x) { return __ffs((i32)x) - 1; }
INLINE u32 highest(u32 x) { return 31 - __clz((i32)x); }
#endif
