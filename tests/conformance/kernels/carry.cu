// Carry chains: the flag of add.cc, sub.cc and mad.cc belongs to one lane and lives from one instruction to
// the next, through addc, subc and madc.
#include "rows.cuh"

// Each chain works on 96 or 128 bits in words; every word of its result is a row.
#define ROW(name, word) PUT(word);

extern "C" __global__ void words32(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out, int n) {
    LANE
    const unsigned x0 = a[i], x1 = b[i], x2 = c[i];
    const unsigned y0 = b[(i + 1) % n], y1 = c[(i + 2) % n], y2 = a[(i + 3) % n];
    unsigned r0, r1, r2, r3;
    asm volatile(
        "add.cc.u32 %0, %4, %7;\n\taddc.cc.u32 %1, %5, %8;\n\taddc.cc.u32 %2, %6, %9;\n\taddc.u32 %3, 0, 0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(x0), "r"(x1), "r"(x2), "r"(y0), "r"(y1), "r"(y2));
    ROW("add.cc.u32", r0) ROW("addc.cc.u32", r1) ROW("addc.cc.u32, third word", r2) ROW("addc.u32", r3)
    asm volatile(
        "sub.cc.u32 %0, %4, %7;\n\tsubc.cc.u32 %1, %5, %8;\n\tsubc.cc.u32 %2, %6, %9;\n\tsubc.u32 %3, 0, 0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(x0), "r"(x1), "r"(x2), "r"(y0), "r"(y1), "r"(y2));
    ROW("sub.cc.u32", r0) ROW("subc.cc.u32", r1) ROW("subc.cc.u32, third word", r2) ROW("subc.u32", r3)
    asm volatile(
        "mad.lo.cc.u32 %0, %4, %5, %7;\n\tmadc.hi.cc.u32 %1, %4, %5, %8;\n\t"
        "madc.lo.cc.u32 %2, %6, %5, %9;\n\tmadc.hi.u32 %3, %6, %5, 0;"
        : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3)
        : "r"(x0), "r"(x1), "r"(x2), "r"(y0), "r"(y1), "r"(y2));
    ROW("mad.lo.cc.u32", r0) ROW("madc.hi.cc.u32", r1) ROW("madc.lo.cc.u32", r2) ROW("madc.hi.u32", r3)
    asm volatile(
        "mad.hi.cc.s32 %0, %2, %3, %4;\n\taddc.s32 %1, 5, 7;" : "=r"(r0), "=r"(r1) : "r"(x0), "r"(x1), "r"(x2));
    ROW("mad.hi.cc.s32", r0) ROW("addc.s32", r1)
}

extern "C" __global__ void words64(const unsigned long long* a, const unsigned long long* b,
                                   unsigned long long* out, int n) {
    LANE
    const unsigned long long x0 = a[i], x1 = b[i], y0 = b[(i + 1) % n], y1 = a[(i + 2) % n];
    unsigned long long r0, r1, r2;
    asm volatile("add.cc.u64 %0, %3, %5;\n\taddc.cc.u64 %1, %4, %6;\n\taddc.u64 %2, 0, 0;"
                 : "=l"(r0), "=l"(r1), "=l"(r2)
                 : "l"(x0), "l"(x1), "l"(y0), "l"(y1));
    ROW("add.cc.u64", r0) ROW("addc.cc.u64", r1) ROW("addc.u64", r2)
    asm volatile("sub.cc.u64 %0, %3, %5;\n\tsubc.cc.u64 %1, %4, %6;\n\tsubc.u64 %2, 0, 0;"
                 : "=l"(r0), "=l"(r1), "=l"(r2)
                 : "l"(x0), "l"(x1), "l"(y0), "l"(y1));
    ROW("sub.cc.u64", r0) ROW("subc.cc.u64", r1) ROW("subc.u64", r2)
    asm volatile("mad.lo.cc.u64 %0, %3, %4, %5;\n\tmadc.hi.cc.u64 %1, %3, %4, %6;\n\taddc.u64 %2, 0, 0;"
                 : "=l"(r0), "=l"(r1), "=l"(r2)
                 : "l"(x0), "l"(x1), "l"(y0), "l"(y1));
    ROW("mad.lo.cc.u64", r0) ROW("madc.hi.cc.u64", r1) ROW("addc.u64 after madc", r2)
}

// 128-bit integers of C++: the compiler's own chains.
extern "C" __global__ void int128(const unsigned long long* a, const unsigned long long* b,
                                  unsigned long long* out, int n) {
    LANE
    const unsigned __int128 x = (unsigned __int128)a[i] << 64 | b[i];
    const unsigned __int128 y = (unsigned __int128)b[(i + 1) % n] << 64 | a[(i + 2) % n];
    const unsigned __int128 sum = x + y, difference = x - y, product = x * y;
    ROW("128-bit sum, low", sum) ROW("128-bit sum, high", sum >> 64)
    ROW("128-bit difference, low", difference) ROW("128-bit difference, high", difference >> 64)
    ROW("128-bit product, low", product) ROW("128-bit product, high", product >> 64)
    ROW("128-bit shift", x >> (b[i] & 127)) ROW("128-bit comparison", x < y)
}
