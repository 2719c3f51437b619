// Stands for CUDA's header of this name: complex numbers, as pairs, for host and device.
#pragma once

#include <cmath>

#include "cuda_runtime.h"

using cuFloatComplex = float2;
using cuDoubleComplex = double2;
using cuComplex = cuFloatComplex;

#define EMULATOR_COMPLEX(Complex, Real, name, suffix)                                             \
  inline Real cuCreal##suffix(Complex z) { return z.x; }                                          \
  inline Real cuCimag##suffix(Complex z) { return z.y; }                                          \
  inline Complex make_##name(Real x, Real y) { return {x, y}; }                                   \
  inline Complex cuConj##suffix(Complex z) { return {z.x, -z.y}; }                                \
  inline Complex cuCadd##suffix(Complex a, Complex b) { return {a.x + b.x, a.y + b.y}; }          \
  inline Complex cuCsub##suffix(Complex a, Complex b) { return {a.x - b.x, a.y - b.y}; }          \
  inline Complex cuCmul##suffix(Complex a, Complex b) {                                           \
    return {a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x};                                        \
  }                                                                                               \
  inline Complex cuCdiv##suffix(Complex a, Complex b) { /* scaled, so that no square overflows */ \
    const Real scale = 1 / (std::fabs(b.x) + std::fabs(b.y));                                     \
    const Real ax = a.x * scale, ay = a.y * scale, bx = b.x * scale, by = b.y * scale;            \
    const Real inverse = 1 / (bx * bx + by * by);                                                 \
    return {(ax * bx + ay * by) * inverse, (ay * bx - ax * by) * inverse};                        \
  }                                                                                               \
  inline Real cuCabs##suffix(Complex z) { return std::hypot(z.x, z.y); }                          \
  inline Complex cuCfma##suffix(Complex a, Complex b, Complex c) {                                \
    return {a.x * b.x - a.y * b.y + c.x, a.x * b.y + a.y * b.x + c.y};                            \
  }

EMULATOR_BEGIN
EMULATOR_COMPLEX(cuFloatComplex, float, cuFloatComplex, f)
EMULATOR_COMPLEX(cuDoubleComplex, double, cuDoubleComplex, )
inline cuComplex make_cuComplex(float x, float y) { return {x, y}; }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex z) { return {float(z.x), float(z.y)}; }
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex z) { return {z.x, z.y}; }
EMULATOR_END
#undef EMULATOR_COMPLEX
