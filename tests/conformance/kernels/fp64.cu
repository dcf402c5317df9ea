// Double precision: every rounding mode, minima and maxima with NaN, sign operations, division and roots.
#include "rows.cuh"

#define UNARY(name) UNARY_AS(name, double, "=d", "d")
#define BINARY(name) BINARY_AS(name, double, "=d", "d", "d")
#define TERNARY(name) TERNARY_AS(name, double, "=d", "d", "d", "d")

extern "C" __global__ void arithmetic(const double* a, const double* b, double* out, int n) {
    LANE
    const double x = a[i], y = b[i];
    BINARY("add.rn.f64") BINARY("add.rz.f64") BINARY("add.rm.f64") BINARY("add.rp.f64")
    BINARY("sub.rn.f64") BINARY("sub.rz.f64") BINARY("sub.rm.f64") BINARY("sub.rp.f64")
    BINARY("mul.rn.f64") BINARY("mul.rz.f64") BINARY("mul.rm.f64") BINARY("mul.rp.f64")
}

extern "C" __global__ void fused(const double* a, const double* b, const double* c, double* out, int n) {
    LANE
    const double x = a[i], y = b[i], z = c[i];
    TERNARY("fma.rn.f64") TERNARY("fma.rz.f64") TERNARY("fma.rm.f64") TERNARY("fma.rp.f64")
}

extern "C" __global__ void extrema(const double* a, const double* b, double* out, int n) {
    LANE
    const double x = a[i], y = b[i];
    BINARY("min.f64") BINARY("max.f64") BINARY("copysign.f64") UNARY("abs.f64") UNARY("neg.f64")
}

extern "C" __global__ void quotients(const double* a, const double* b, double* out, int n) {
    LANE
    const double x = a[i], y = b[i];
    BINARY("div.rn.f64") BINARY("div.rz.f64") BINARY("div.rm.f64") BINARY("div.rp.f64")
    UNARY("rcp.rn.f64") UNARY("rcp.rz.f64") UNARY("rcp.rm.f64") UNARY("rcp.rp.f64") UNARY("sqrt.rn.f64")
    UNARY("sqrt.rz.f64") UNARY("sqrt.rm.f64") UNARY("sqrt.rp.f64")
}
