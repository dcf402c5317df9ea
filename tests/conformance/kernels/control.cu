// Control: divergence in every shape, early exits, switches by branch table, loops with break and continue,
// gotos, predicated instructions; one kernel runs over several thousand lanes.
#include "rows.cuh"

#define ROW(name, value) PUT(value);

extern "C" __global__ void branches(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    int r = 0;
    if (x & 1) {
        if (x & 2) r = x * 3;
        else if (x & 4) r = x - 7;
        else r = -x;
    } else {
        r = x / 2;
    }
    ROW("nested if", r)
    switch (x & 15) {
        case 0: r = 5; break;
        case 1: r += 2;
        case 2: r ^= 0x55; break;
        case 3: case 4: r = ~r; break;
        case 5: r -= i; break;
        case 6: r *= 7; break;
        case 7: r = r << 3; break;
        case 9: r = x % 10; break;
        case 11: r |= 256; break;
        default: r = -1;
    }
    ROW("switch with fall-through", r)
    int total = 0;
    for (int k = 0; k < (x & 31); ++k) {
        if (k == 17) break;
        if (k % 3 == x % 3) continue;
        total += k * (x & 7);
        for (int m = k; m > 0; m /= 2) {
            if (m & 8) continue;
            total ^= m;
        }
    }
    ROW("loops with break and continue", total)
    int state = x & 3, steps = 0;
again:
    ++steps;
    if (state == 0) { state = steps % 4; if (steps < 12) goto again; goto done; }
    if (state == 1) { state = 3; goto again; }
    if (state == 2) { state = (x >> 4) & 1; if (steps < 20) goto again; }
    else if (steps < 9) { state = 0; goto again; }
done:
    ROW("goto", steps * 4 + state)
    const bool both = (x > 0 && total > 3) || (x < -100 && i % 2 == 0);
    ROW("short circuit", both ? x : i)
    do { total -= 5 + (i & 3); } while (total > 0);
    ROW("do while", total)
}

// Inline PTX: brx.idx through a table, predicated instructions, uniform branches, labels of a scope.
extern "C" __global__ void instructions(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    int r;
    asm volatile(
        "{\n\t.reg .u32 which;\n\tand.b32 which, %1, 3;\n\t"
        "places: .branchtargets zero, one, two, three;\n\t"
        "brx.idx which, places;\n\t"
        "zero: add.s32 %0, %1, 100;\n\tbra end;\n\t"
        "one: mul.lo.s32 %0, %1, 3;\n\tbra end;\n\t"
        "two: neg.s32 %0, %1;\n\tbra end;\n\t"
        "three: mov.u32 %0, 77;\n\t"
        "end:\n\t}"
        : "=r"(r)
        : "r"(x));
    ROW("brx.idx", r)
    asm volatile(
        "{\n\t.reg .pred p;\n\tsetp.gt.s32 p, %1, 0;\n\tmov.u32 %0, 1;\n\t@p add.s32 %0, %0, %1;\n\t"
        "@!p sub.s32 %0, %0, %2;\n\t@p bra over;\n\tmul.lo.s32 %0, %0, 5;\n\tover:\n\tadd.s32 %0, %0, 1;\n\t}"
        : "=&r"(r)
        : "r"(x), "r"(i));
    ROW("predicated", r)
    asm volatile(
        "{\n\t.reg .pred p;\n\t.reg .u32 k;\n\tmov.u32 k, 0;\n\tmov.u32 %0, 0;\n\t"
        "again:\n\tadd.u32 %0, %0, k;\n\tadd.u32 k, k, 1;\n\tsetp.lt.u32 p, k, 5;\n\t@p bra.uni again;\n\t}"
        : "=r"(r));
    ROW("bra.uni", r)
}

// A lane leaves in the middle of a loop that others go on with; some never enter.
extern "C" __global__ void early_exit(const int* a, int* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 7 == 3) return;
    int x = a[i];
    for (int k = 0; k < 40; ++k) {
        out[i] = x;
        if ((x & 0xff) == k) return;
        if (k > 30 && i % 2) asm volatile("exit;");
        x = (int)((unsigned)x * 1103515245u + 12345u);
    }
    out[n + i] = x;
}

// The number of steps until 3 n + 1 reaches 1: several thousand lanes, half of them idle most of the time.
extern "C" __global__ void collatz(unsigned* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned steps = 0;
    for (unsigned long long x = i + 1; x != 1; ++steps) x = x & 1 ? 3 * x + 1 : x >> 1;
    out[i] = steps;
}

// A 3-D grid of 3-D blocks: every index and size.
extern "C" __global__ void indices(unsigned* out, int n) {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
    if (i >= n) return;
    int row = 0;
    ROW("%tid", threadIdx.x | threadIdx.y << 8 | threadIdx.z << 16)
    ROW("%ctaid", blockIdx.x | blockIdx.y << 8 | blockIdx.z << 16)
    ROW("%ntid", blockDim.x | blockDim.y << 8 | blockDim.z << 16)
    ROW("%nctaid", gridDim.x | gridDim.y << 8 | gridDim.z << 16)
    unsigned r;
    asm("mov.u32 %0, %%laneid;" : "=r"(r));
    ROW("%laneid", r)
    asm("mov.u32 %0, %%lanemask_eq;" : "=r"(r));
    ROW("%lanemask_eq", r)
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(r));
    ROW("%lanemask_lt", r)
    asm("mov.u32 %0, %%lanemask_le;" : "=r"(r));
    ROW("%lanemask_le", r)
    asm("mov.u32 %0, %%lanemask_gt;" : "=r"(r));
    ROW("%lanemask_gt", r)
    asm("mov.u32 %0, %%lanemask_ge;" : "=r"(r));
    ROW("%lanemask_ge", r)
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(r));
    ROW("%dynamic_smem_size", r)
    asm("mov.u32 %0, WARP_SZ;" : "=r"(r));
    ROW("WARP_SZ", r)
    unsigned sm, count;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(count));
    ROW("%smid below %nsmid", sm < count)
    const long long before = clock64();
    __nanosleep(20);
    ROW("%clock64 goes on", clock64() > before)
    unsigned long long earlier, later;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(earlier));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(later));
    ROW("%globaltimer never goes back", later >= earlier)
}
