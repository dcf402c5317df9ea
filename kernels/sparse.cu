// The vector operations of the conjugate gradient method. All scalars stay on the device, so that an iteration can be a
// graph and never waits for the host.
//
//   advance   alpha = rr / pq;   x += alpha p,   r -= alpha q
//   turn      beta = rr' / rr;   p = r + beta p
//   remember  rr = rr', and appends it to the history
//
// A squared residual of zero means that the solution is reached: further iterations then change nothing.

extern "C" __global__ void advance(const double* rr, const double* pq, const double* p, const double* q, double* x,
                                   double* r, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double alpha = *pq > 0.0 ? *rr / *pq : 0.0;
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
}

extern "C" __global__ void turn(const double* next, const double* rr, const double* r, double* p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double beta = *rr > 0.0 ? *next / *rr : 0.0;
    p[i] = r[i] + beta * p[i];
}

// Launched with one thread, after `turn`. The history has room for `most` squared residuals.
extern "C" __global__ void remember(const double* next, double* rr, double* history, int* iteration, int most)
{
    *rr = *next;
    if (*iteration < most)
        history[*iteration] = *next;
    *iteration += 1;
}
