// The driver's functions: launches the kernel in the file of PTX that the first argument names, for as many numbers as
// the second argument says, as often as the third says, or once. The exit status is 3.
// Without arguments, it asks for a private table.
#include <cuda.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

static void check(CUresult status, const char *call) {
    if (status == CUDA_SUCCESS) return;
    const char *name;
    cuGetErrorName(status, &name);
    std::printf("%s: %s\n", call, name);
    std::exit(1);
}
#define CHECK(call) check(call, #call)

int main(int count, char **arguments) {
    if (count == 1) {  // as the static runtime does
        const void *table;
        CUuuid identity = {};
        std::printf("status %d\n", cuGetExportTable(&table, &identity));
        return 0;
    }
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr numbers;
    int n = std::atoi(arguments[2]), blocks = (n + 31) / 32, launches = count > 3 ? std::atoi(arguments[3]) : 1;
    std::stringstream text;
    text << std::ifstream(arguments[1]).rdbuf();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, text.str().c_str()));
    CHECK(cuModuleGetFunction(&kernel, module, "squares"));
    CHECK(cuMemAlloc(&numbers, n * sizeof(float)));
    std::printf("before the kernel\n");
    void *parameters[] = {&numbers, &n};
    for (int i = 0; i < launches; i++) {
        CHECK(cuLaunchKernel(kernel, blocks, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr));
        CHECK(cuCtxSynchronize());
    }
    std::printf("after the kernel\n");
    float last;
    CHECK(cuMemcpyDtoH(&last, numbers + (n - 1) * sizeof(float), sizeof last));
    std::printf("%g\n", last);
    return 3;
}
