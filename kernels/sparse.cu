// The steps of conjugate gradients between the products, with every scalar on the device: so that a whole iteration is
// a graph, and nobody waits for the host.
//
//   advance   alpha = rr / pq;   x += alpha p,   r -= alpha q
//   turn      beta = rr' / rr;   p = r + beta p
//   remember  rr = rr', which also goes into the history
//
// A square of zero says that the solution is reached: nothing changes then, whatever the number of iterations is.

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

// One thread, behind `turn`: the new square becomes the old one. The history has room for `most` of them.
extern "C" __global__ void remember(const double* next, double* rr, double* history, int* iteration, int most)
{
    *rr = *next;
    if (*iteration < most)
        history[*iteration] = *next;
    *iteration += 1;
}
