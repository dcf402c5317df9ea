// printf: every conversion, widths and precisions, strings, percent signs, the order of lanes and blocks.
// A failed assertion and a trap.

extern "C" __global__ void formats(const int* a) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    const int x = a[1];
    printf("integers %d %i %5d|%-5d|%05d %+d %u %x %X %#x %o\n", x, -x, x, x, x, x, x, x, x, x, x);
    printf("long %ld %lld %llu %llx %hd\n", (long)x << 33, -(long long)x << 40, ~0ull, 1ull << 60, (short)x);
    printf("floats %f %e %g %.3f %10.2f|%-10.1f|%G %a\n", x * 0.5, x * 1e10, x * 1e-7, x / 3.0, x / 7.0, x / 9.0, 1e-20, 1.0);
    printf("special %f %f %f %g\n", __longlong_as_double(0x7ff0000000000000ll), -__longlong_as_double(0x7ff0000000000000ll), 0.0, -0.0);
    printf("text %s %10s|%-6s|%.2s %c %% done\n", "plain", "right", "left", "cut", 'z');
    printf("star %*d|%-*d|\n", 6, x, 6, x);
    printf("no arguments\n");
    printf("result %d\n", printf("two arguments %d %d\n", x, 2));
}

// A line from each lane; the test sorts the lines, since the hardware promises no order between warps.
extern "C" __global__ void lanes(const int* a) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (a[i] % 3 == 0) printf("lane %d of block %d: %d %.2f\n", (int)threadIdx.x, (int)blockIdx.x, a[i], a[i] / 8.0);
    else if (a[i] % 3 == 1) printf("other %d\n", i);
}

extern "C" __global__ void passing_assertion(const int* a) { assert(a[threadIdx.x] != 123456789); }
extern "C" __global__ void failing_assertion(const int* a) { assert(threadIdx.x != 3 || blockIdx.x != 1 || a[0] == 123456789); }
extern "C" __global__ void trapping(const int* a) {
    if (a[0] != 123456789 && threadIdx.x == 5) asm volatile("trap;");
}
