// Calls: arguments and results of every width, structures by value, recursion with a stack for each lane,
// function pointers that differ from lane to lane, virtual functions, and calls inside divergent code.
#include "rows.cuh"

#define ROW(name, value) PUT(value);
#define NOINLINE __device__ __noinline__

struct Item {
    char key;
    double weight;
    int counts[3];
};

NOINLINE int scaled(int x, short y, signed char z, unsigned char w, long long v) { return x * y + z - w + (int)(v >> 8); }
NOINLINE double mean(double x, float y) { return (x + y) * 0.5; }
NOINLINE Item made(int x) {
    Item item = {(char)x, x * 0.25, {x, x + 1, -x}};
    return item;
}
NOINLINE int used(Item item, int which) { return item.key + (int)(item.weight * 4.0) + item.counts[which]; }
NOINLINE void changed(int* values, int count) {
    for (int k = 0; k < count; ++k) values[k] = values[k] * 2 + k;
}
NOINLINE bool even(unsigned x);
NOINLINE bool odd(unsigned x) { return x == 0 ? false : even(x - 1); }
NOINLINE bool even(unsigned x) { return x == 0 ? true : odd(x - 1); }
NOINLINE unsigned fibonacci(unsigned x) { return x < 2 ? x : fibonacci(x - 1) + fibonacci(x - 2); }
NOINLINE unsigned ackermann(unsigned m, unsigned k) {
    if (m == 0) return k + 1;
    if (k == 0) return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, k - 1));
}
NOINLINE int depth_sum(int depth, int seed) {
    int local[4];
    for (int k = 0; k < 4; ++k) local[k] = seed + k * depth;
    if (depth == 0) return local[seed & 3];
    const int below = depth_sum(depth - 1, local[seed & 3] & 0xffff);
    return below + local[depth & 3];
}

extern "C" __global__ void arguments(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    ROW("integers of every width", scaled(x, (short)(x >> 3), (signed char)x, (unsigned char)x, (long long)x << 20))
    ROW("double and float", (int)mean(i * 1.5, (float)(x & 1023)))
    const Item item = made(x & 0xffff);
    ROW("structure returned", item.counts[i % 3] + item.key)
    ROW("structure passed", used(item, (unsigned)x % 3))
    int values[5] = {x, i, 3, 4, 5};
    changed(values, i % 6);
    ROW("pointer to a local array", values[i % 5])
    int r = 0;
    if (x & 1) r = scaled(r, 1, 2, 3, x);
    else if (x & 2) r = (int)mean(x & 255, 4.0f);
    ROW("calls in divergent branches", r)
}

// Shallow enough for the 1024 bytes of stack that a lane has by default.
extern "C" __global__ void recursion(const unsigned* a, unsigned* out, int n) {
    LANE
    const unsigned x = a[i];
    ROW("fibonacci", fibonacci(x % 9)) ROW("mutual", even(x % 11)) ROW("ackermann", ackermann(x % 3, x / 3 % 4))
    ROW("arrays on the stack", depth_sum(x % 7, x & 0xff))
}

typedef int (*Function)(int, int);
NOINLINE int added(int x, int y) { return x + y; }
NOINLINE int taken(int x, int y) { return x - y; }
NOINLINE int times(int x, int y) { return x * y; }
NOINLINE int mixed(int x, int y) { return (x ^ y) + 1; }
__device__ Function functions[4] = {added, taken, times, mixed};
__constant__ Function constant_functions[2] = {taken, mixed};

struct Shape {
    __device__ virtual int area(int x) const { return x; }
    __device__ virtual ~Shape() {}
};
struct Square : Shape {
    int side;
    __device__ explicit Square(int s) : side(s) {}
    __device__ int area(int x) const override { return side * side + x; }
};
struct Round : Shape {
    int radius;
    __device__ explicit Round(int r) : radius(r) {}
    __device__ int area(int x) const override { return 3 * radius * radius - x; }
};

extern "C" __global__ void pointers(const int* a, int* out, int n) {
    LANE
    const int x = a[i];
    ROW("table, one function a warp", functions[i / 32 % 4](x, i))
    ROW("table, a function for each lane", functions[(unsigned)x % 4](x, i))
    ROW("table in constant memory", constant_functions[i & 1](x, i))
    Function local = x & 4 ? added : mixed;
    if (x & 8) local = times;
    ROW("chosen at run time", local(local(x, 3), i))
    Square square(i % 10);
    Round round(i % 7);
    Shape plain;
    const Shape* shapes[3] = {&square, &round, &plain};
    ROW("virtual function", shapes[(unsigned)x % 3]->area(x & 255))
    auto lambda = [=](int y) { return x * y + i; };
    ROW("lambda", lambda(3) + lambda(i))
}

// An early return out of a called function, from inside loops.
NOINLINE int found(const int* a, int n, int from, int wanted) {
    for (int k = from; k < n; ++k) {
        if ((a[k] & 15) == wanted) return k;
        if (k > from + 20) return -2;
    }
    return -1;
}

extern "C" __global__ void returns(const int* a, int* out, int n) {
    LANE
    ROW("return inside a loop", found(a, n, i, a[i] >> 4 & 15))
}
