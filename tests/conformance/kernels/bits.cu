// Logic and bits: shifts clamp at the width, funnel shifts wrap or clamp, fields of any position and length,
// counts and searches, byte permutation in all its modes.
#include "rows.cuh"

// Amounts of 0 to 31 and some far beyond: from 16 on a shift gives zeros or copies of the sign.
extern "C" __global__ void logic16(const unsigned short* a, const unsigned short* b, const unsigned* amounts, unsigned short* out, int n) {
    LANE
    const unsigned short x = a[i];
    {
        const unsigned short y = b[i];
        BINARY_AS("and.b16", unsigned short, "=h", "h", "h")
        BINARY_AS("or.b16", unsigned short, "=h", "h", "h")
        BINARY_AS("xor.b16", unsigned short, "=h", "h", "h")
        UNARY_AS("not.b16", unsigned short, "=h", "h")
        UNARY_AS("cnot.b16", unsigned short, "=h", "h")
    }
    const unsigned y = amounts[i];
    BINARY_AS("shl.b16", unsigned short, "=h", "h", "r")
    BINARY_AS("shr.u16", unsigned short, "=h", "h", "r")
    BINARY_AS("shr.s16", unsigned short, "=h", "h", "r")
    BINARY_AS("shr.b16", unsigned short, "=h", "h", "r")
}

// Amounts of 0 to 63 and some far beyond: from 32 on a shift gives zeros or copies of the sign.
extern "C" __global__ void logic32(const unsigned* a, const unsigned* b, const unsigned* amounts, unsigned* out, int n) {
    LANE
    const unsigned x = a[i];
    {
        const unsigned y = b[i];
        BINARY_AS("and.b32", unsigned, "=r", "r", "r")
        BINARY_AS("or.b32", unsigned, "=r", "r", "r")
        BINARY_AS("xor.b32", unsigned, "=r", "r", "r")
        UNARY_AS("not.b32", unsigned, "=r", "r")
        UNARY_AS("cnot.b32", unsigned, "=r", "r")
    }
    const unsigned y = amounts[i];
    BINARY_AS("shl.b32", unsigned, "=r", "r", "r")
    BINARY_AS("shr.u32", unsigned, "=r", "r", "r")
    BINARY_AS("shr.s32", unsigned, "=r", "r", "r")
    BINARY_AS("shr.b32", unsigned, "=r", "r", "r")
}

// Amounts of 0 to 127 and some far beyond: from 64 on a shift gives zeros or copies of the sign.
extern "C" __global__ void logic64(const unsigned long long* a, const unsigned long long* b, const unsigned* amounts, unsigned long long* out, int n) {
    LANE
    const unsigned long long x = a[i];
    {
        const unsigned long long y = b[i];
        BINARY_AS("and.b64", unsigned long long, "=l", "l", "l")
        BINARY_AS("or.b64", unsigned long long, "=l", "l", "l")
        BINARY_AS("xor.b64", unsigned long long, "=l", "l", "l")
        UNARY_AS("not.b64", unsigned long long, "=l", "l")
        UNARY_AS("cnot.b64", unsigned long long, "=l", "l")
    }
    const unsigned y = amounts[i];
    BINARY_AS("shl.b64", unsigned long long, "=l", "l", "r")
    BINARY_AS("shr.u64", unsigned long long, "=l", "l", "r")
    BINARY_AS("shr.s64", unsigned long long, "=l", "l", "r")
    BINARY_AS("shr.b64", unsigned long long, "=l", "l", "r")
}

extern "C" __global__ void funnel(const unsigned* a, const unsigned* b, const unsigned* amounts, unsigned* out,
                                  int n) {
    LANE
    const unsigned x = a[i], y = b[i], z = amounts[i];
    TERNARY_AS("shf.l.wrap.b32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("shf.r.wrap.b32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("shf.l.clamp.b32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("shf.r.clamp.b32", unsigned, "=r", "r", "r", "r")
}

#define LOP3(name, table)                                                                       \
    {                                                                                           \
        unsigned r;                                                                             \
        asm volatile("lop3.b32 %0, %1, %2, %3, " table ";" : "=r"(r) : "r"(x), "r"(y), "r"(z)); \
        PUT(r);                                                                                 \
    }

extern "C" __global__ void logic_of_three(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out,
                                          int n) {
    LANE
    const unsigned x = a[i], y = b[i], z = c[i];
    LOP3("lop3.b32 x & y | z", "0xEA") LOP3("lop3.b32 x ^ y ^ z", "0x96") LOP3("lop3.b32 ~(x | y) & z", "0x02")
    LOP3("lop3.b32 x ? y : z", "0xCA") LOP3("lop3.b32 majority", "0xE8") LOP3("lop3.b32 0x5B", "0x5B")
}

// Positions and lengths are taken from the low eight bits: many of them reach beyond the register.
#define FIELD(name, type, letter)                                                                       \
    {                                                                                                   \
        type r;                                                                                         \
        asm volatile(name " %0, %1, %2, %3;" : "=" letter(r) : letter(x), "r"(position), "r"(length));  \
        PUT(r);                                                                                         \
    }
#define INSERT(name, type, letter)                                                                      \
    {                                                                                                   \
        type r;                                                                                         \
        asm volatile(name " %0, %1, %2, %3, %4;"                                                        \
                     : "=" letter(r)                                                                    \
                     : letter(x), letter(y), "r"(position), "r"(length));                               \
        PUT(r);                                                                                         \
    }

extern "C" __global__ void fields32(const unsigned* a, const unsigned* b, const unsigned* positions,
                                    const unsigned* lengths, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], y = b[i], position = positions[i], length = lengths[i];
    FIELD("bfe.u32", unsigned, "r") FIELD("bfe.s32", unsigned, "r") INSERT("bfi.b32", unsigned, "r")
}

extern "C" __global__ void fields64(const unsigned long long* a, const unsigned long long* b,
                                    const unsigned* positions, const unsigned* lengths, unsigned long long* out,
                                    int n) {
    LANE
    const unsigned long long x = a[i], y = b[i];
    const unsigned position = positions[i], length = lengths[i];
    FIELD("bfe.u64", unsigned long long, "l") FIELD("bfe.s64", unsigned long long, "l")
    INSERT("bfi.b64", unsigned long long, "l")
}

extern "C" __global__ void masks(const unsigned* a, const unsigned* b, unsigned* out, int n) {
    LANE
    const unsigned x = a[i], y = b[i];
    BINARY_AS("bmsk.clamp.b32", unsigned, "=r", "r", "r") BINARY_AS("bmsk.wrap.b32", unsigned, "=r", "r", "r")
    BINARY_AS("szext.clamp.s32", unsigned, "=r", "r", "r") BINARY_AS("szext.wrap.u32", unsigned, "=r", "r", "r")
}

#define COUNT(name, X) UNARY_AS(name, unsigned, "=r", X)

extern "C" __global__ void counts(const unsigned* a, const unsigned long long* b, unsigned* out, int n) {
    LANE
    {
        const unsigned x = a[i];
        COUNT("popc.b32", "r") COUNT("clz.b32", "r") COUNT("brev.b32", "r") COUNT("bfind.u32", "r")
        COUNT("bfind.s32", "r") COUNT("bfind.shiftamt.u32", "r") COUNT("bfind.shiftamt.s32", "r")
    }
    const unsigned long long x = b[i];
    COUNT("popc.b64", "l") COUNT("clz.b64", "l") COUNT("bfind.u64", "l") COUNT("bfind.s64", "l")
    COUNT("bfind.shiftamt.u64", "l")
}

extern "C" __global__ void reversed64(const unsigned long long* a, unsigned long long* out, int n) {
    LANE
    const unsigned long long x = a[i];
    UNARY_AS("brev.b64", unsigned long long, "=l", "l")
}

extern "C" __global__ void permutation(const unsigned* a, const unsigned* b, const unsigned* selectors,
                                       unsigned* out, int n) {
    LANE
    const unsigned x = a[i], y = b[i], z = selectors[i];
    TERNARY_AS("prmt.b32", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.f4e", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.b4e", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.rc8", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.ecl", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.ecr", unsigned, "=r", "r", "r", "r")
    TERNARY_AS("prmt.b32.rc16", unsigned, "=r", "r", "r", "r")
}
