// Kernels whose time is to be compared with that of other tools.
//
//   saxpy      bound by memory: its time is in the bytes
//   chain      bound by the latency of multiply-adds: its time is in the rounds, whatever the caches hold
//   nothing    what starting and ending a kernel takes

extern "C" __global__ void saxpy(float a, const float* x, float* y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

extern "C" __global__ void chain(float* out, float factor, int rounds)
{
    float value = threadIdx.x;
    for (int round = 0; round < rounds; ++round)
        value = fmaf(value, factor, 1.0f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

extern "C" __global__ void nothing()
{
}
