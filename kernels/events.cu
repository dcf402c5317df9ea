// A transform of many numbers, whose launches are timed by events and by the host's clock.
//
//   cool   a step of Newton's law of cooling: each number comes nearer to the ambient temperature by a part of its
//          distance from it
//
// A launch only queues the kernel, as CUB's device-wide functions queue theirs (cub::DeviceTransform::Transform would
// do the same step), and as Thrust's algorithms do with the policy thrust::cuda::par_nosync. With any other policy a
// call of Thrust returns when the device has finished. Before the host reads a clock to time work, or reads a result,
// it has to wait: cudaEventSynchronize, cudaStreamSynchronize or cudaDeviceSynchronize.

extern "C" __global__ void cool(float* temperatures, float ambient, float part, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        temperatures[i] += part * (ambient - temperatures[i]);
}
