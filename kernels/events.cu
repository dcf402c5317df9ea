// A transform of many elements, whose launches are timed with events and with the host clock.
//
//   cool   one step of Newton's law of cooling: each temperature moves toward the ambient one by a fraction of the
//          difference
//
// A launch only queues the kernel. So do CUB's device-wide functions (cub::DeviceTransform::Transform could do the same
// step) and, with the policy thrust::cuda::par_nosync, Thrust's algorithms. With any other policy, a call to Thrust
// returns when the device has finished. Before the host reads a result, or a clock to time the work, it must wait with
// cudaEventSynchronize, cudaStreamSynchronize or cudaDeviceSynchronize.

extern "C" __global__ void cool(float* temperatures, float ambient, float part, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        temperatures[i] += part * (ambient - temperatures[i]);
}
