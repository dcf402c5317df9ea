// The kernels of kernels.cu in OpenCL C.

kernel void saxpy(int n, float a, global const float* restrict x, global float* restrict y)
{
    int i = get_global_id(0);
    if (i < n)
        y[i] = a * x[i] + y[i];
}

kernel void collatz(int n, global int* steps)
{
    int i = get_global_id(0);
    if (i >= n)
        return;
    int count = 0;
    for (long v = i + 1; v != 1; count++)
        v = v & 1 ? 3 * v + 1 : v >> 1;
    steps[i] = count;
}

kernel void bodies(int n, global const float4* all, global float4* out)
{
    int i = get_global_id(0);
    float4 own = all[i];
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < n; j++) {
        float4 other = all[j];
        float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
        float r = rsqrt(dx * dx + dy * dy + dz * dz + 1e-3f), s = other.w * r * r * r;
        x += dx * s;
        y += dy * s;
        z += dz * s;
    }
    out[i] = (float4)(x, y, z, 0);
}

kernel void transpose(int n, global const float* in, global float* out)
{
    local float tile[32][33];
    int tx = get_local_id(0), ty = get_local_id(1);
    int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
    for (int j = 0; j < 32; j += 8)
        tile[ty + j][tx] = in[(y + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    x = get_group_id(1) * 32 + tx;
    y = get_group_id(0) * 32 + ty;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[tx][ty + j];
}

kernel void matmul(int n, global const float* a, global const float* b, global float* c)
{
    local float left[16][16], right[16][16];
    int tx = get_local_id(0), ty = get_local_id(1), row = get_global_id(1), column = get_global_id(0);
    float sum = 0;
    for (int t = 0; t < n; t += 16) {
        left[ty][tx] = a[row * n + t + tx];
        right[ty][tx] = b[(t + ty) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 16; k++)
            sum += left[ty][k] * right[k][tx];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
