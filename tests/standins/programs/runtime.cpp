// The runtime's functions, with the registration that nvcc writes for a kernel, a constant and a managed variable.
// The fat binary is the file that FATBIN names. Prints one line per fact.
#include <cuda_runtime_api.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" {
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFatBinaryEnd(void **);
void __cudaUnregisterFatBinary(void **);
char __cudaInitModule(void **);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int, int);
void __cudaRegisterManagedVar(void **, void **, char *, const char *, int, size_t, int, int);
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
cudaError_t __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
cudaError_t __cudaGetKernel(cudaKernel_t *, const void *);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
}

static float factor[1];
static int *launches;
static void **handle;
static struct { int magic, version; const void *data; void *unused; } wrapper;

// What nvcc makes of a call of the kernel, and of `scale<<<grid, block>>>(...)`.
static void scale(float *numbers, int n) {
    static cudaKernel_t kernel;
    __cudaGetKernel(&kernel, (const void *)scale);
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    __cudaPopCallConfiguration(&grid, &block, &shared, &stream);
    void *arguments[] = {&numbers, &n};
    __cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

__attribute__((constructor)) static void register_all() {
    static std::vector<char> image;
    std::ifstream file(std::getenv("FATBIN"), std::ios::binary);
    image.assign(std::istreambuf_iterator<char>(file), {});
    wrapper = {0x466243b1, 1, image.data(), nullptr};
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (const char *)scale, nullptr, "scale", -1, 0, 0, 0, 0, 0);
    __cudaRegisterVar(handle, (char *)factor, nullptr, "factor", 0, sizeof factor, 1, 0);
    __cudaRegisterManagedVar(handle, (void **)&launches, nullptr, "launches", 0, sizeof(int), 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    std::atexit([] { __cudaUnregisterFatBinary(handle); });
}

int main() {
    const int n = 1000;
    float host[n], *device, three = 3;
    for (int i = 0; i < n; i++) host[i] = i;
    cudaMemcpyToSymbol(factor, &three, sizeof three, 0, cudaMemcpyHostToDevice);
    cudaMalloc((void **)&device, sizeof host);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    if (!__cudaPushCallConfiguration(dim3(8), dim3(128), 0, nullptr)) scale(device, n);
    std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    __cudaInitModule(handle);
    std::printf("last: %g, launches: %d\n", host[n - 1], *launches);

    if (!__cudaPushCallConfiguration(dim3(1), dim3(2048), 0, nullptr)) scale(device, n);
    std::printf("too many threads: %s, ", cudaGetErrorName(cudaGetLastError()));
    std::printf("then %s\n", cudaGetErrorName(cudaGetLastError()));
    cudaFuncAttributes attributes;
    cudaFuncGetAttributes(&attributes, (const void *)scale);
    std::printf("threads per block: %d\n", attributes.maxThreadsPerBlock);
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, 0);
    std::printf("capability: %d.%d, warp: %d\n", properties.major, properties.minor, properties.warpSize);
    cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    std::printf("format: %d bits, kind %d\n", format.x, format.f);
    cudaPointerAttributes pointer;
    cudaPointerGetAttributes(&pointer, device);
    std::printf("device memory: %d, host memory: ", pointer.type == cudaMemoryTypeDevice);
    cudaPointerGetAttributes(&pointer, host);
    std::printf("%d\n", pointer.type == cudaMemoryTypeUnregistered);

    cudaArray_t array;
    float rows[6][8], back[6][8] = {};
    for (int i = 0; i < 48; i++) rows[i / 8][i % 8] = i;
    cudaMallocArray(&array, &format, 8, 6, 0);
    cudaMemcpy2DToArray(array, 0, 0, rows, sizeof rows[0], sizeof rows[0], 6, cudaMemcpyHostToDevice);
    cudaMemcpy2DFromArray(back, sizeof back[0], array, 8, 1, 24, 5, cudaMemcpyDeviceToHost);
    std::printf("from the array: %g %g %g\n", back[0][0], back[4][5], back[5][0]);
    cudaFreeArray(array);
    cudaFree(device);

    cudaLogsCallbackHandle callback;
    int failures = 0;
    const auto count = [](void *data, cudaLogLevel level, char *, size_t) { *(int *)data += level == cudaLogLevelError; };
    cudaError_t registered = cudaLogsRegisterCallback(count, &failures, &callback);
    cudaMemset(nullptr, 0, 4);
    cudaError_t unregistered = cudaLogsUnregisterCallback(callback);
    cudaMemset(nullptr, 0, 4);
    std::printf("logged: %d, %s, %s\n", failures, cudaGetErrorName(registered), cudaGetErrorName(unregistered));
    return 0;
}
