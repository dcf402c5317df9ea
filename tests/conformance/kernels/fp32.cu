// Single precision: every rounding mode, flushing of subnormals on inputs and outputs, saturation (which
// makes 0 of NaN), minima and maxima with NaN, sign operations, correctly rounded division and roots.
#include "rows.cuh"

#define UNARY(name) UNARY_AS(name, float, "=f", "f")
#define BINARY(name) BINARY_AS(name, float, "=f", "f", "f")
#define TERNARY(name) TERNARY_AS(name, float, "=f", "f", "f", "f")

extern "C" __global__ void arithmetic(const float* a, const float* b, float* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    BINARY("add.rn.f32") BINARY("add.rz.f32") BINARY("add.rm.f32") BINARY("add.rp.f32")
    BINARY("add.rn.ftz.f32") BINARY("add.rz.ftz.f32") BINARY("add.rm.ftz.f32") BINARY("add.rp.ftz.f32")
    BINARY("sub.rn.f32") BINARY("sub.rz.f32") BINARY("sub.rm.f32") BINARY("sub.rp.f32")
    BINARY("sub.rn.ftz.f32") BINARY("sub.rz.ftz.f32") BINARY("sub.rm.ftz.f32") BINARY("sub.rp.ftz.f32")
    BINARY("mul.rn.f32") BINARY("mul.rz.f32") BINARY("mul.rm.f32") BINARY("mul.rp.f32")
    BINARY("mul.rn.ftz.f32") BINARY("mul.rz.ftz.f32") BINARY("mul.rm.ftz.f32") BINARY("mul.rp.ftz.f32")
    BINARY("add.sat.f32") BINARY("sub.sat.f32") BINARY("mul.sat.f32") BINARY("add.rz.ftz.sat.f32")
    BINARY("mul.rp.ftz.sat.f32")
}

extern "C" __global__ void fused(const float* a, const float* b, const float* c, float* out, int n) {
    LANE
    const float x = a[i], y = b[i], z = c[i];
    TERNARY("fma.rn.f32") TERNARY("fma.rz.f32") TERNARY("fma.rm.f32") TERNARY("fma.rp.f32")
    TERNARY("fma.rn.ftz.f32") TERNARY("fma.rz.ftz.f32") TERNARY("fma.rm.ftz.f32") TERNARY("fma.rp.ftz.f32")
    TERNARY("fma.rn.sat.f32") TERNARY("fma.rz.ftz.sat.f32")
}

extern "C" __global__ void extrema(const float* a, const float* b, float* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    BINARY("min.f32") BINARY("min.xorsign.abs.f32") BINARY("min.NaN.f32") BINARY("min.NaN.xorsign.abs.f32")
    BINARY("min.ftz.f32") BINARY("min.ftz.xorsign.abs.f32") BINARY("min.ftz.NaN.f32")
    BINARY("min.ftz.NaN.xorsign.abs.f32") BINARY("max.f32") BINARY("max.xorsign.abs.f32")
    BINARY("max.NaN.f32") BINARY("max.NaN.xorsign.abs.f32") BINARY("max.ftz.f32")
    BINARY("max.ftz.xorsign.abs.f32") BINARY("max.ftz.NaN.f32") BINARY("max.ftz.NaN.xorsign.abs.f32")
    BINARY("copysign.f32") UNARY("abs.f32") UNARY("abs.ftz.f32") UNARY("neg.f32") UNARY("neg.ftz.f32")
}

extern "C" __global__ void quotients(const float* a, const float* b, float* out, int n) {
    LANE
    const float x = a[i], y = b[i];
    BINARY("div.rn.f32") BINARY("div.rz.f32") BINARY("div.rm.f32") BINARY("div.rp.f32")
    BINARY("div.rn.ftz.f32") BINARY("div.rz.ftz.f32") BINARY("div.rm.ftz.f32") BINARY("div.rp.ftz.f32")
    UNARY("rcp.rn.f32") UNARY("rcp.rz.f32") UNARY("rcp.rm.f32") UNARY("rcp.rp.f32") UNARY("rcp.rn.ftz.f32")
    UNARY("rcp.rz.ftz.f32") UNARY("rcp.rm.ftz.f32") UNARY("rcp.rp.ftz.f32") UNARY("sqrt.rn.f32")
    UNARY("sqrt.rz.f32") UNARY("sqrt.rm.f32") UNARY("sqrt.rp.f32") UNARY("sqrt.rn.ftz.f32")
    UNARY("sqrt.rz.ftz.f32") UNARY("sqrt.rm.ftz.f32") UNARY("sqrt.rp.ftz.f32")
}
