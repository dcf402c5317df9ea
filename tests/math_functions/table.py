"""The single- and double-precision functions of CUDA's math API, with their bounds and references.

In a body, `x`, `y`, `z` and `w` are floating-point arguments, `p` is an array of them, and `n` is an integer argument.
A body assigns its result to `result`, or an integer to `whole`. `{f}` is the suffix of single-precision functions. The
bounds are those of the appendix on mathematical functions of the CUDA C++ Programming Guide for CUDA 13.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.simulator.ptx.operations.references import ieee_product, ieee_quotient, ieee_root, ieee_sum

from . import references
from .bounds import EXACT, Bound
from .precise import FARTHEST
from .samples import Arguments

Reference = Callable[[Arguments], Any]


@dataclass(frozen=True)
class Function:
    """A function: CUDA's name without a suffix, the body of a kernel, the bounds of both precisions, and a reference.

    A bound of None means that the function does not exist in that precision.
    """

    name: str
    body: str
    single: Bound | None
    double: Bound | None
    reference: Reference

    def bound(self, kind: Any) -> Bound:
        found = self.single if np.dtype(kind) == np.float32 else self.double
        assert found is not None
        return found


def _row(name: str, body: str, single: float | Bound | None, double: float | Bound | None, of: Reference) -> Function:
    """Return a row; a bound that is a number is in ulps."""
    bounds = (Bound(bound) if isinstance(bound, int | float) else bound for bound in (single, double))
    return Function(name, body, *bounds, of)


def _of(name: str, call: str, single: float | Bound, double: float | Bound, reference: Reference) -> Function:
    """Return a row for a function; `call` is the list of arguments that it is called with."""
    return _row(name, f"result = {name}{{f}}({call});", single, double, reference)


def _unary(name: str, single: float | Bound, double: float | Bound, reference: Any) -> Function:
    """Return a row for a function of x; `reference` takes the values of x."""
    return _of(name, "x", single, double, lambda a: reference(a.x))


def _exactly(name: str, body: str, reference: Reference) -> Function:
    """Return a row for a function that is exact in both precisions."""
    return Function(name, body, EXACT, EXACT, reference)


def _bessel(ulps: float, absolute: float, near: float = 8) -> Bound:
    return Bound(ulps, absolute, lambda a: np.abs(a.x) < near, lambda a: ~(np.abs(a.x) > FARTHEST))


def _far(absolute: float) -> Bound:
    # For arguments near 0 the functions' recurrence overflows, and their result is NaN.
    return Bound(0, absolute, None, lambda a: ~(np.abs(a.x) > FARTHEST) & ~(np.abs(a.x) < 2.0**-6))


def _outside(low: float, high: float, ulps: float) -> Bound:
    return Bound(ulps, known=lambda a: ~((a.x > low) & (a.x < high)))


def _norm(name: str, call: str, columns: str, single: float, double: float) -> Function:
    """Return a row for a norm or its reciprocal; `columns` names the arguments that are the vector's components."""

    def reference(a: Arguments) -> Any:
        size = references.norm(*(getattr(a, column) for column in columns))
        return 1 / size if name[0] == "r" else size

    return _of(name, call, single, double, reference)


APPROXIMATE = [
    _unary("rsqrt", 2, 1, lambda x: 1 / np.sqrt(x)),
    _unary("cbrt", 1, 1, np.cbrt),
    _unary("rcbrt", 1, 1, lambda x: 1 / np.cbrt(x)),
    _norm("hypot", "x, y", "xy", 3, 2),
    _norm("rhypot", "x, y", "xy", 2, 1),
    _norm("norm3d", "x, y, z", "xyz", 3, 2),
    _norm("rnorm3d", "x, y, z", "xyz", 2, 1),
    _norm("norm4d", "x, y, z, w", "xyzw", 3, 2),
    _norm("rnorm4d", "x, y, z, w", "xyzw", 2, 1),
    # The guide no longer gives bounds for these: the error of a sum grows with its length. These are its former bounds.
    _norm("norm", "4, p", "xyzw", 4, 3),
    _norm("rnorm", "4, p", "xyzw", 3, 2),
    *(
        _unary(name, single, double, getattr(np, name))
        for name, single, double in (
            ("exp", 2, 1), ("exp2", 2, 1), ("expm1", 1, 1), ("log", 1, 1), ("log2", 1, 1), ("log10", 2, 1),
            ("log1p", 1, 1), ("sin", 2, 2), ("cos", 2, 2), ("tan", 4, 2), ("sinh", 3, 2), ("cosh", 2, 1),
            ("tanh", 2, 2),
        )
    ),
    _unary("exp10", 2, 1, references.power_of_ten),
    _row("sincos, sine", "{T} c; sincos{f}(x, &result, &c);", 2, 2, lambda a: np.sin(a.x)),
    _row("sincos, cosine", "{T} s; sincos{f}(x, &s, &result);", 2, 2, lambda a: np.cos(a.x)),
    _unary("sinpi", 1, 2, references.sine_of_pi),
    _unary("cospi", 1, 2, references.cosine_of_pi),
    _row("sincospi, sine", "{T} c; sincospi{f}(x, &result, &c);", 1, 2, lambda a: references.sine_of_pi(a.x)),
    _row("sincospi, cosine", "{T} s; sincospi{f}(x, &s, &result);", 1, 2, lambda a: references.cosine_of_pi(a.x)),
    *(
        _unary(name, single, double, getattr(np, f"arc{name[1:]}"))
        for name, single, double in (
            ("asin", 2, 2), ("acos", 2, 2), ("atan", 2, 2), ("asinh", 3, 3), ("acosh", 4, 3), ("atanh", 3, 2)
        )
    ),
    _of("atan2", "x, y", 3, 2, lambda a: np.arctan2(a.x, a.y)),
    _of("pow", "x, y", 4, 2, lambda a: np.power(a.x, a.y)),
    *(
        _of(name, "x", single, double, references.special(name))
        for name, single, double in (
            ("erf", 2, 2), ("erfc", 4, 5), ("erfinv", 2, 5), ("erfcinv", 4, 6), ("erfcx", 4, 4), ("normcdf", 5, 5),
            ("normcdfinv", 5, 8), ("tgamma", 5, 10), ("cyl_bessel_i0", 6, 6), ("cyl_bessel_i1", 6, 6),
            ("lgamma", _outside(-10.001, -2.264, 6), _outside(-23.0001, -2.2637, 4)),
            *((name, _bessel(9, 2.2e-6), _bessel(7, 5e-12)) for name in ("j0", "j1", "y0", "y1")),
        )
    ),
    _row("jn(128, x)", "result = jn{f}(128, x);", _far(2.2e-6), _far(5e-12), references.special("jn")),
    _row(
        "yn(3, x)", "result = yn{f}(3, x);", _bessel(10, 2.2e-6, 3),
        Bound(0, 5e-12, None, lambda a: ~(np.abs(a.x) > FARTHEST) & ~(np.abs(a.x) <= 4.5)), references.special("yn"),
    ),
]  # fmt: skip  # rows of a table


def _maximum(a: Arguments, least: bool) -> Any:
    """Return the elementwise maximum of x and y, or the minimum if `least`; +0 is larger than -0."""
    chosen = (np.fmin if least else np.fmax)(a.x, a.y)
    zeros = (a.x == 0) & (a.y == 0)
    negative = np.signbit(a.x) | np.signbit(a.y) if least else np.signbit(a.x) & np.signbit(a.y)
    return np.where(zeros, np.where(negative, a.x.dtype.type(-0.0), a.x.dtype.type(0)), chosen)


def _away(x: Any) -> Any:
    """Round x to integers, halves away from zero."""
    size = np.abs(x.astype(np.longdouble))
    return np.copysign(np.floor(size + np.longdouble(0.5)), x).astype(x.dtype)


def _whole(values: Any) -> Any:
    """Convert integral values to int64, saturating as the PTX ISA specifies for `cvt`."""
    inside = np.abs(values) < 2.0**63
    integers = np.where(inside, values, 0).astype(np.int64)
    ends = np.where(values > 0, np.int64((1 << 63) - 1), np.int64(-(1 << 63)))
    return np.where(inside, integers, ends)


def _integers(name: str, reference: Any) -> Function:
    return _exactly(name, f"whole = {name}{{f}}(x);", lambda a: (np.zeros_like(a.x), _whole(reference(a.x))))


def _logb(a: Arguments) -> Any:
    finite = np.isfinite(a.x) & (a.x != 0)
    exponent = np.frexp(np.where(finite, a.x, 1))[1] - 1
    return np.where(finite, exponent, np.where(a.x == 0, -np.inf, np.abs(a.x))).astype(a.x.dtype)


def _ilogb(a: Arguments) -> Any:
    exponent, ends = _logb(a), np.where(np.isinf(a.x), (1 << 31) - 1, -(1 << 31))
    return np.zeros_like(a.x), np.where(np.isfinite(exponent), exponent, ends).astype(np.int64)


def _frexp(a: Arguments) -> Any:
    fraction, exponent = np.frexp(a.x)
    return fraction, np.where(np.isfinite(a.x), exponent, 0).astype(np.int64)


def _scaled(a: Arguments) -> Any:
    return np.ldexp(a.x, np.clip(a.n, -10_000, 10_000))


def _classes(a: Arguments) -> Any:
    parts = (np.isnan(a.x), np.isinf(a.x), np.isfinite(a.x), np.signbit(a.x))
    return np.zeros_like(a.x), sum(part.astype(np.int64) << place for place, part in enumerate(parts))


def _difference(a: Arguments) -> Any:
    nan = np.isnan(a.x) | np.isnan(a.y)
    return np.where(a.x > a.y, a.x - a.y, np.where(nan, a.x + a.y, 0)).astype(a.x.dtype)


def _remquo(a: Arguments) -> Any:
    return references.remainder(a.x, a.y), references.quotient_bits(a.x, a.y)


def _rounded(direction: str) -> list[Function]:
    """Return rows for the operations with a rounding direction, each of which is a PTX instruction."""
    rows = []
    for stem, arguments, reference, operands in (
        ("add", "x, y", ieee_sum, lambda a: (a.x, np.ones_like(a.x), a.y)),
        ("sub", "x, y", ieee_sum, lambda a: (a.x, np.ones_like(a.x), -a.y)),
        ("mul", "x, y", ieee_product, lambda a: (a.x, a.y)),
        ("div", "x, y", ieee_quotient, lambda a: (a.x, a.y)),
        ("rcp", "x", ieee_quotient, lambda a: (np.ones_like(a.x), a.x)),
        ("sqrt", "x", ieee_root, lambda a: (a.x,)),
        ("ma", "x, y, z", ieee_sum, lambda a: (a.x, a.y, a.z)),
    ):
        for letter, bounds in (("f", (EXACT, None)), ("d", (None, EXACT))):
            prefix = "fma" + letter.strip("d") if stem == "ma" else letter + stem
            name = f"__{prefix}_{direction}"

            def of(a: Arguments, reference: Any = reference, operands: Any = operands) -> Any:
                return references.each(reference, direction, *operands(a))

            rows.append(Function(name, f"result = {name}({arguments});", *bounds, of))
    return rows


EXACTLY = [
    _exactly("x + y", "result = x + y;", lambda a: a.x + a.y),
    _exactly("x * y", "result = x * y;", lambda a: a.x * a.y),
    _exactly("x / y", "result = x / y;", lambda a: a.x / a.y),
    *(_unary(name, EXACT, EXACT, getattr(np, name)) for name in ("sqrt", "fabs", "trunc", "ceil", "floor", "rint")),
    _exactly("fma", "result = fma{f}(x, y, z);", lambda a: references.each(ieee_sum, "rn", a.x, a.y, a.z)),
    _exactly("fmax", "result = fmax{f}(x, y);", lambda a: _maximum(a, False)),
    _exactly("fmin", "result = fmin{f}(x, y);", lambda a: _maximum(a, True)),
    _exactly("fdim", "result = fdim{f}(x, y);", _difference),
    _exactly("fmod", "result = fmod{f}(x, y);", lambda a: np.fmod(a.x, a.y)),
    _exactly("remainder", "result = remainder{f}(x, y);", lambda a: references.remainder(a.x, a.y)),
    _exactly(
        "remquo", "int q = 0; result = remquo{f}(x, y, &q); whole = isnan(result) || isinf(y) ? 0 : q % 8;", _remquo
    ),
    _exactly("copysign", "result = copysign{f}(x, y);", lambda a: np.copysign(a.x, a.y)),
    _exactly("nextafter", "result = nextafter{f}(x, y);", lambda a: np.nextafter(a.x, a.y)),
    _exactly("frexp", "int e = 0; result = frexp{f}(x, &e); whole = isfinite(x) ? e : 0;", _frexp),
    *(_of(name, "x, n", EXACT, EXACT, _scaled) for name in ("ldexp", "scalbn", "scalbln")),
    _exactly("logb", "result = logb{f}(x);", _logb),
    _exactly("ilogb", "whole = ilogb{f}(x);", _ilogb),
    _exactly("modf, fraction", "{T} integer; result = modf{f}(x, &integer);", lambda a: np.modf(a.x)[0]),
    _exactly("modf, integer", "modf{f}(x, &result);", lambda a: np.modf(a.x)[1]),
    _exactly("nearbyint", "result = nearbyint{f}(x);", lambda a: np.rint(a.x)),
    _exactly("round", "result = round{f}(x);", lambda a: _away(a.x)),
    *(_integers(name, np.rint) for name in ("lrint", "llrint")),
    *(_integers(name, _away) for name in ("lround", "llround")),
    _exactly("isnan, …", "whole = !!isnan(x) | !!isinf(x) << 1 | !!isfinite(x) << 2 | !!signbit(x) << 3;", _classes),
    *(row for direction in ("rn", "rz", "ru", "rd") for row in _rounded(direction)),
    _row("__frsqrt_rn", "result = __frsqrt_rn(x);", 0.5, None, lambda a: 1 / np.sqrt(a.x)),
    _row(
        "__saturatef", "result = __saturatef(x);", EXACT, None,
        lambda a: np.where(a.x > 0, np.minimum(a.x, np.float32(1)), np.float32(0)),
    ),
]  # fmt: skip  # rows of a table


def _within(low: float, high: float, absolute: float, ulps: float) -> Bound:
    """Return a bound that is absolute inside a range and in ulps outside it."""
    return Bound(ulps, absolute, lambda a: ~((a.x >= low) & (a.x <= high)))


def _turn(absolute: float) -> Bound:
    """Return an absolute bound that is documented only for angles from -pi to pi."""
    return Bound(0, absolute, None, lambda a: (a.x >= -np.pi) & (a.x <= np.pi))


def _exponential(factor: float) -> Bound:
    return Bound(lambda a: 2 + np.floor(np.abs(factor * a.x.astype(np.float64))))


def _divisor(a: Arguments) -> Any:
    return (np.abs(a.y) >= 2.0**-126) & (np.abs(a.y) <= 2.0**126)


FAST = [
    _row("__fdividef", "result = __fdividef(x, y);", Bound(2, known=_divisor), None, lambda a: a.x / a.y),
    *(
        _row(name, f"result = {name}(x);", bound, None, lambda a, of=of: of(a.x))
        for name, bound, of in (
            ("__expf", _exponential(1.173), np.exp),
            ("__exp10f", _exponential(2.97), references.power_of_ten),
            ("__logf", _within(0.5, 2, 2.0**-21.41, 3), np.log),
            ("__log2f", _within(0.5, 2, 2.0**-22, 2), np.log2),
            ("__log10f", _within(0.5, 2, 2.0**-24, 3), np.log10),
            ("__sinf", _turn(2.0**-21.41), np.sin),
            ("__cosf", _turn(2.0**-21.19), np.cos),
        )
    ),
    _row("__sincosf, sine", "float c; __sincosf(x, &result, &c);", _turn(2.0**-21.41), None, lambda a: np.sin(a.x)),
    _row("__sincosf, cosine", "float s; __sincosf(x, &s, &result);", _turn(2.0**-21.19), None, lambda a: np.cos(a.x)),
]

_ALL = [*APPROXIMATE, *EXACTLY, *FAST]
SINGLE = [function for function in _ALL if function.single is not None]
DOUBLE = [function for function in _ALL if function.double is not None]
