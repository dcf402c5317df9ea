// Integer arithmetic: wrapping, high halves, widening products, truncating division, saturation, extrema.
#include "rows.cuh"

extern "C" __global__ void signed32(const int* a, const int* b, const int* c, int* out, int n) {
    LANE
    const int x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.s32", int, "=r", "r", "r")
    BINARY_AS("sub.s32", int, "=r", "r", "r")
    BINARY_AS("mul.lo.s32", int, "=r", "r", "r")
    BINARY_AS("mul.hi.s32", int, "=r", "r", "r")
    BINARY_AS("min.s32", int, "=r", "r", "r")
    BINARY_AS("max.s32", int, "=r", "r", "r")
    BINARY_AS("add.sat.s32", int, "=r", "r", "r")
    BINARY_AS("sub.sat.s32", int, "=r", "r", "r")
    BINARY_AS("mul24.lo.s32", int, "=r", "r", "r")
    BINARY_AS("mul24.hi.s32", int, "=r", "r", "r")
    UNARY_AS("abs.s32", int, "=r", "r")
    UNARY_AS("neg.s32", int, "=r", "r")
    TERNARY_AS("sad.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("mad.lo.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("mad.hi.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("mad.hi.sat.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("mad24.lo.s32", int, "=r", "r", "r", "r")
    BINARY_AS("min.relu.s32", int, "=r", "r", "r")
    BINARY_AS("max.relu.s32", int, "=r", "r", "r")
}

extern "C" __global__ void unsigned32(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.u32", unsigned, "=r", "r", "r")
    BINARY_AS("sub.u32", unsigned, "=r", "r", "r")
    BINARY_AS("mul.lo.u32", unsigned, "=r", "r", "r")
    BINARY_AS("mul.hi.u32", unsigned, "=r", "r", "r")
    BINARY_AS("min.u32", unsigned, "=r", "r", "r")
    BINARY_AS("max.u32", unsigned, "=r", "r", "r")
    BINARY_AS("mul24.lo.u32", unsigned, "=r", "r", "r")
    BINARY_AS("mul24.hi.u32", unsigned, "=r", "r", "r")
    TERNARY_AS("sad.u32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("mad.lo.u32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("mad.hi.u32", unsigned, "=r", "r", "r", "r")
}

extern "C" __global__ void signed64(const long long* a, const long long* b, const long long* c, long long* out, int n) {
    LANE
    const long long x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.s64", long long, "=l", "l", "l")
    BINARY_AS("sub.s64", long long, "=l", "l", "l")
    BINARY_AS("mul.lo.s64", long long, "=l", "l", "l")
    BINARY_AS("mul.hi.s64", long long, "=l", "l", "l")
    BINARY_AS("min.s64", long long, "=l", "l", "l")
    BINARY_AS("max.s64", long long, "=l", "l", "l")
    UNARY_AS("abs.s64", long long, "=l", "l")
    UNARY_AS("neg.s64", long long, "=l", "l")
    TERNARY_AS("sad.s64", long long, "=l", "l", "l", "l")
    TERNARY_AS("mad.lo.s64", long long, "=l", "l", "l", "l")
    TERNARY_AS("mad.hi.s64", long long, "=l", "l", "l", "l")
}

extern "C" __global__ void unsigned64(const unsigned long long* a, const unsigned long long* b, const unsigned long long* c, unsigned long long* out, int n) {
    LANE
    const unsigned long long x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("sub.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("mul.lo.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("mul.hi.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("min.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("max.u64", unsigned long long, "=l", "l", "l")
    TERNARY_AS("sad.u64", unsigned long long, "=l", "l", "l", "l")
    TERNARY_AS("mad.lo.u64", unsigned long long, "=l", "l", "l", "l")
    TERNARY_AS("mad.hi.u64", unsigned long long, "=l", "l", "l", "l")
}

extern "C" __global__ void signed16(const short* a, const short* b, const short* c, short* out, int n) {
    LANE
    const short x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.s16", short, "=h", "h", "h")
    BINARY_AS("sub.s16", short, "=h", "h", "h")
    BINARY_AS("mul.lo.s16", short, "=h", "h", "h")
    BINARY_AS("mul.hi.s16", short, "=h", "h", "h")
    BINARY_AS("min.s16", short, "=h", "h", "h")
    BINARY_AS("max.s16", short, "=h", "h", "h")
    UNARY_AS("abs.s16", short, "=h", "h")
    UNARY_AS("neg.s16", short, "=h", "h")
    TERNARY_AS("sad.s16", short, "=h", "h", "h", "h")
    TERNARY_AS("mad.lo.s16", short, "=h", "h", "h", "h")
    TERNARY_AS("mad.hi.s16", short, "=h", "h", "h", "h")
}

extern "C" __global__ void unsigned16(const unsigned short* a, const unsigned short* b, const unsigned short* c, unsigned short* out, int n) {
    LANE
    const unsigned short x = a[i], y = b[i], z = c[i];
    BINARY_AS("add.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("sub.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("mul.lo.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("mul.hi.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("min.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("max.u16", unsigned short, "=h", "h", "h")
    TERNARY_AS("sad.u16", unsigned short, "=h", "h", "h", "h")
    TERNARY_AS("mad.lo.u16", unsigned short, "=h", "h", "h", "h")
    TERNARY_AS("mad.hi.u16", unsigned short, "=h", "h", "h", "h")
}

// Division truncates towards zero and the remainder takes the dividend's sign. Zero divisors and the one
// overflowing quotient have no defined result: both are replaced by divisors that have.
#define DIVISION(type)                                            \
    LANE                                                          \
    const type x = a[i];                                          \
    const type y = b[i] == 0 || b[i] == (type)(-1) ? (type)7 : b[i];

extern "C" __global__ void signed32_division(const int* a, const int* b, int* out, int n) {
    DIVISION(int)
    BINARY_AS("div.s32", int, "=r", "r", "r")
    BINARY_AS("rem.s32", int, "=r", "r", "r")
}

extern "C" __global__ void unsigned32_division(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    DIVISION(unsigned)
    BINARY_AS("div.u32", unsigned, "=r", "r", "r")
    BINARY_AS("rem.u32", unsigned, "=r", "r", "r")
}

extern "C" __global__ void signed64_division(const long long* a, const long long* b, long long* out, int n) {
    DIVISION(long long)
    BINARY_AS("div.s64", long long, "=l", "l", "l")
    BINARY_AS("rem.s64", long long, "=l", "l", "l")
}

extern "C" __global__ void unsigned64_division(const unsigned long long* a, const unsigned long long* b, unsigned long long* out, int n) {
    DIVISION(unsigned long long)
    BINARY_AS("div.u64", unsigned long long, "=l", "l", "l")
    BINARY_AS("rem.u64", unsigned long long, "=l", "l", "l")
}

extern "C" __global__ void signed16_division(const short* a, const short* b, short* out, int n) {
    DIVISION(short)
    BINARY_AS("div.s16", short, "=h", "h", "h")
    BINARY_AS("rem.s16", short, "=h", "h", "h")
}

extern "C" __global__ void unsigned16_division(const unsigned short* a, const unsigned short* b, unsigned short* out, int n) {
    DIVISION(unsigned short)
    BINARY_AS("div.u16", unsigned short, "=h", "h", "h")
    BINARY_AS("rem.u16", unsigned short, "=h", "h", "h")
}

extern "C" __global__ void wide32(const int* a, const int* b, const long long* c, long long* out, int n) {
    LANE
    const int x = a[i], y = b[i];
    const long long z = c[i];
    BINARY_AS("mul.wide.s32", long long, "=l", "r", "r")
    BINARY_AS("mul.wide.u32", long long, "=l", "r", "r")
    TERNARY_AS("mad.wide.s32", long long, "=l", "r", "r", "l")
    TERNARY_AS("mad.wide.u32", long long, "=l", "r", "r", "l")
}

extern "C" __global__ void wide16(const short* a, const short* b, const int* c, int* out, int n) {
    LANE
    const short x = a[i], y = b[i];
    const int z = c[i];
    BINARY_AS("mul.wide.s16", int, "=r", "h", "h")
    BINARY_AS("mul.wide.u16", int, "=r", "h", "h")
    TERNARY_AS("mad.wide.s16", int, "=r", "h", "h", "r")
    TERNARY_AS("mad.wide.u16", int, "=r", "h", "h", "r")
}

extern "C" __global__ void dot_products(const int* a, const int* b, const int* c, int* out, int n) {
    LANE
    const int x = a[i], y = b[i], z = c[i];
    TERNARY_AS("dp4a.s32.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("dp4a.u32.u32", int, "=r", "r", "r", "r")
    TERNARY_AS("dp4a.s32.u32", int, "=r", "r", "r", "r")
    TERNARY_AS("dp4a.u32.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("dp2a.lo.s32.s32", int, "=r", "r", "r", "r")
    TERNARY_AS("dp2a.hi.u32.s32", int, "=r", "r", "r", "r")
}
