// Compute the squared distance from the origin of n points with four coordinates each.
//
// The result is right, but each load of a warp uses a quarter of the bytes that it moves.

extern "C" __global__ void squares(const float* points, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    volatile const float* point = points + 4 * i;  // volatile, so that the compiler does not join the loads
    float sum = 0.0f;
    for (int k = 0; k < 4; k++) {
        float x = point[k];
        sum += x * x;
    }
    out[i] = sum;
}
