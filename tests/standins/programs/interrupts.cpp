// A program that is interrupted: by SIGINT while it waits for the kernel `wait` of the PTX that the first argument names,
// or for nothing ("host"). Its own handler, if any, is set before or after the first call of CUDA, and exits with 42.
#include <cuda.h>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>

static void check(CUresult status) {
    if (status != CUDA_SUCCESS) std::exit(1);
}

static void handle(int) { _exit(42); }

int main(int, char **arguments) {
    std::string handler = arguments[2], place = arguments[3];
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr flag;
    std::stringstream text;
    text << std::ifstream(arguments[1]).rdbuf();
    if (handler == "before") std::signal(SIGINT, handle);
    check(cuInit(0));
    if (handler == "after") std::signal(SIGINT, handle);
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    check(cuModuleLoadData(&module, text.str().c_str()));
    check(cuModuleGetFunction(&kernel, module, "wait"));
    check(cuMemAlloc(&flag, 4));
    check(cuMemsetD32(flag, 0, 1));
    void *parameters[] = {&flag};
    if (place == "kernel") check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr));
    write(1, "ready\n", 6);
    check(cuCtxSynchronize());
    while (place == "host") pause();
    return 0;
}
