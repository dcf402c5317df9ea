// The work of kernels.cu as loops, in the order that suits a processor's cache.

#include <cmath>

struct Body {
    float x, y, z, w;
};

extern "C" void saxpy(int n, float a, const float* __restrict__ x, float* __restrict__ y)
{
    for (int i = 0; i < n; i++)
        y[i] = a * x[i] + y[i];
}

extern "C" void collatz(int n, int* steps)
{
    for (int i = 0; i < n; i++) {
        int count = 0;
        for (long long v = i + 1; v != 1; count++)
            v = v & 1 ? 3 * v + 1 : v >> 1;
        steps[i] = count;
    }
}

extern "C" void bodies(int n, const Body* __restrict__ all, Body* __restrict__ out)
{
    for (int i = 0; i < n; i++) {
        float x = 0, y = 0, z = 0;
        for (int j = 0; j < n; j++) {
            float dx = all[j].x - all[i].x, dy = all[j].y - all[i].y, dz = all[j].z - all[i].z;
            float r = 1 / std::sqrt(dx * dx + dy * dy + dz * dz + 1e-3f), s = all[j].w * r * r * r;
            x += dx * s;
            y += dy * s;
            z += dz * s;
        }
        out[i] = {x, y, z, 0};
    }
}

extern "C" void transpose(int n, const float* __restrict__ in, float* __restrict__ out)
{
    for (int top = 0; top < n; top += 32)
        for (int left = 0; left < n; left += 32)
            for (int y = top; y < top + 32; y++)
                for (int x = left; x < left + 32; x++)
                    out[y * n + x] = in[x * n + y];
}

extern "C" void matmul(int n, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c)
{
    for (int row = 0; row < n; row++) {
        for (int column = 0; column < n; column++)
            c[row * n + column] = 0;
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++)
                c[row * n + column] += a[row * n + k] * b[k * n + column];
    }
}
