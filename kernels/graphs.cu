// The same small step a hundred times: as a hundred launches, as one graph, and as a loop inside one kernel.
//
//   cool        one step of Newton's law of cooling. It reads and writes every element once
//   cool_often  all steps in one launch. An element stays in a register, so it is read once and written once
//
// The host needs a few microseconds to launch a kernel, however much the kernel has to do. A graph holds many launches
// that the driver has prepared once, and the host starts them with one call. It does not save the device any work:
// a hundred passes over a large array take as long in a graph as in a hundred launches. Only the loop in the kernel
// avoids them.

__device__ float cooled(float temperature, float ambient, float part)
{
    return temperature + part * (ambient - temperature);
}

extern "C" __global__ void cool(float* temperatures, float ambient, float part, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        temperatures[i] = cooled(temperatures[i], ambient, part);
}

extern "C" __global__ void cool_often(float* temperatures, float ambient, float part, int n, int steps)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float temperature = temperatures[i];
        for (int step = 0; step < steps; step++)
            temperature = cooled(temperature, ambient, part);
        temperatures[i] = temperature;
    }
}
