// The functions of the device runtime that Numba's grid barrier calls. A library of the toolkit also defines them, but
// only as machine code.

#include <cooperative_groups.h>

// The result identifies the group. The grid is the only group that Numba asks for.
extern "C" __device__ unsigned long long cudaCGGetIntrinsicHandle(cudaCGScope scope)
{
    return scope;
}

// Wait for all threads of the grid, which must be launched cooperatively.
extern "C" __device__ cudaError_t cudaCGSynchronize(unsigned long long handle, unsigned int flags)
{
    cooperative_groups::this_grid().sync();
    return cudaSuccess;
}
