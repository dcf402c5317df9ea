// Compute the squared distance from the origin of n points with four coordinates each.

extern "C" __global__ void squares(const float* points, float* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float4 point = reinterpret_cast<const float4*>(points)[i];
    out[i] = point.x * point.x + point.y * point.y + point.z * point.z + point.w * point.w;
}
