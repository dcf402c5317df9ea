// Calls of the driver in loops. Each function returns the seconds of `count` calls, or minus the driver's status.

#include <stddef.h>
#include <time.h>
#include <dlfcn.h>
typedef unsigned long long address;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static void *find(const char *name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
#define LOOP(call) \
    double start = now(); \
    for (int i = 0; i < count; i++) { int status = call; if (status) return -status; } \
    return now() - start;
double launch(void *f, float a, address x, address y, address z, unsigned n, void *stream, int count) {
    int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        find("cuLaunchKernel");
    void *arguments[] = {&a, &x, &y, &z, &n};
    LOOP(fn(f, 4, 1, 1, 256, 1, 1, 0, stream, arguments, NULL))
}
double record(void *event, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuEventRecord");
    LOOP(fn(event, stream))
}
double fill(address x, size_t n, void *stream, int count) {
    int (*fn)(address, unsigned, size_t, void *) = find("cuMemsetD32Async");
    LOOP(fn(x, 0, n, stream))
}
double upload(address x, void *host, size_t bytes, void *stream, int count) {
    int (*fn)(address, void *, size_t, void *) = find("cuMemcpyHtoDAsync_v2");
    LOOP(fn(x, host, bytes, stream))
}
double download(void *host, address x, size_t bytes, void *stream, int count) {
    int (*fn)(void *, address, size_t, void *) = find("cuMemcpyDtoHAsync_v2");
    LOOP(fn(host, x, bytes, stream))
}
double copy(address y, address x, size_t bytes, void *stream, int count) {
    int (*fn)(address, address, size_t, void *) = find("cuMemcpyDtoDAsync_v2");
    LOOP(fn(y, x, bytes, stream))
}
double allocate(size_t bytes, void *stream, int count) {
    int (*make)(address *, size_t, void *) = find("cuMemAllocAsync");
    int (*drop)(address, void *) = find("cuMemFreeAsync");
    address p;
    LOOP(make(&p, bytes, stream) || drop(p, stream))
}
double graph(void *executable, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuGraphLaunch");
    LOOP(fn(executable, stream))
}
// With the wait for the device, which both functions below have.
double graph_done(void *executable, void *stream, int count) {
    int (*fn)(void *, void *) = find("cuGraphLaunch"), (*wait)(void *) = find("cuStreamSynchronize");
    LOOP(fn(executable, stream) || wait(stream))
}
static int cool(int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                          void **, void **),
                void *f, unsigned blocks, unsigned block, void **arguments, int steps, void *stream) {
    for (int i = 0; i < steps; i++) {
        int status = fn(f, blocks, 1, 1, block, 1, 1, 0, stream, arguments, NULL);
        if (status) return status;
    }
    return 0;
}
double launches_done(void *f, unsigned blocks, unsigned block, address x, float ambient, float part, int n, int steps,
                     void *stream, int count) {
    int (*fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        find("cuLaunchKernel");
    int (*wait)(void *) = find("cuStreamSynchronize");
    void *arguments[] = {&x, &ambient, &part, &n};
    LOOP(cool(fn, f, blocks, block, arguments, steps, stream) || wait(stream))
}
