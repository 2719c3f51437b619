// CUDA's functions for one of the 16-bit types, `T`, and for pairs of it, `T2`. The headers cuda_fp16.h and
// cuda_bf16.h include this file, each for its own type; so it has no include guard.
//
// Each result is rounded once, to nearest even. A GPU computes hexp, hlog, hsin and their like less exactly.

#define EMULATOR_ONE(name, expression) \
  inline T name(T a) { return T(expression); }
#define EMULATOR_TWO(name, expression) \
  inline T name(T a, T b) { return T(expression); }
#define EMULATOR_EACH_OF_ONE(name2, name) \
  inline T2 name2(T2 a) { return {name(a.x), name(a.y)}; }
#define EMULATOR_EACH_OF_TWO(name2, name) \
  inline T2 name2(T2 a, T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define EMULATOR_EACH_OF_THREE(name2, name) \
  inline T2 name2(T2 a, T2 b, T2 c) { return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)}; }

// ---- arithmetic

inline bool __hisnan(T a) { return std::isnan(float(a)); }
inline int __hisinf(T a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }
EMULATOR_ONE(__hneg, -a)
EMULATOR_ONE(__habs, std::fabs(float(a)))
EMULATOR_TWO(__hadd, a + b)
EMULATOR_TWO(__hsub, a - b)
EMULATOR_TWO(__hmul, a* b)
EMULATOR_TWO(__hdiv, a / b)
EMULATOR_TWO(__hadd_rn, a + b)
EMULATOR_TWO(__hsub_rn, a - b)
EMULATOR_TWO(__hmul_rn, a* b)
inline T __hfma(T a, T b, T c) {
  return T(emulator::multiply_add_to_odd(double(float(a)), double(float(b)), double(float(c))));
}
// To the range from 0 to 1; NaN becomes 0.
EMULATOR_TWO(__hadd_sat, __saturatef(a + b))
EMULATOR_TWO(__hsub_sat, __saturatef(a - b))
EMULATOR_TWO(__hmul_sat, __saturatef(a* b))
inline T __hfma_sat(T a, T b, T c) { return T(__saturatef(__hfma(a, b, c))); }
inline T __hfma_relu(T a, T b, T c) {
  const T sum = __hfma(a, b, c);
  return __hisnan(sum) || float(sum) > 0 ? sum : T(0.0f);
}
EMULATOR_EACH_OF_ONE(__hneg2, __hneg)
EMULATOR_EACH_OF_ONE(__habs2, __habs)
EMULATOR_EACH_OF_TWO(__hadd2, __hadd)
EMULATOR_EACH_OF_TWO(__hsub2, __hsub)
EMULATOR_EACH_OF_TWO(__hmul2, __hmul)
EMULATOR_EACH_OF_TWO(__h2div, __hdiv)
EMULATOR_EACH_OF_TWO(__hadd2_rn, __hadd)
EMULATOR_EACH_OF_TWO(__hsub2_rn, __hsub)
EMULATOR_EACH_OF_TWO(__hmul2_rn, __hmul)
EMULATOR_EACH_OF_TWO(__hadd2_sat, __hadd_sat)
EMULATOR_EACH_OF_TWO(__hsub2_sat, __hsub_sat)
EMULATOR_EACH_OF_TWO(__hmul2_sat, __hmul_sat)
EMULATOR_EACH_OF_THREE(__hfma2, __hfma)
EMULATOR_EACH_OF_THREE(__hfma2_sat, __hfma_sat)
EMULATOR_EACH_OF_THREE(__hfma2_relu, __hfma_relu)
// a * b + c of complex numbers, whose imaginary part is `y`.
inline T2 __hcmadd(T2 a, T2 b, T2 c) {
  const T real = __hfma(a.x, b.x, c.x), imaginary = __hfma(a.x, b.y, c.y);
  return {__hfma(__hneg(a.y), b.y, real), __hfma(a.y, b.x, imaginary)};
}

// ---- comparisons

// `condition` of two floats. The names with a `u` (unordered) are also true if one of the numbers is NaN.
#define EMULATOR_COMPARISON(op, condition)                                                      \
  inline bool __h##op(T a, T b) {                                                               \
    const float x = a, y = b;                                                                   \
    return !__hisnan(a) && !__hisnan(b) && (condition);                                         \
  }                                                                                             \
  inline bool __h##op##u(T a, T b) { return __hisnan(a) || __hisnan(b) || __h##op(a, b); }      \
  EMULATOR_EACH_OF_TWO(__h##op##2, __h##op)                                                     \
  EMULATOR_EACH_OF_TWO(__h##op##u2, __h##op##u)                                                 \
  inline bool __hb##op##2(T2 a, T2 b) { return __h##op(a.x, b.x) && __h##op(a.y, b.y); }        \
  inline bool __hb##op##u2(T2 a, T2 b) { return __h##op##u(a.x, b.x) && __h##op##u(a.y, b.y); } \
  inline unsigned __h##op##2_mask(T2 a, T2 b) {                                                 \
    return (__h##op(a.x, b.x) ? 0xffffu : 0) | (__h##op(a.y, b.y) ? 0xffff0000u : 0);           \
  }                                                                                             \
  inline unsigned __h##op##u2_mask(T2 a, T2 b) {                                                \
    return (__h##op##u(a.x, b.x) ? 0xffffu : 0) | (__h##op##u(a.y, b.y) ? 0xffff0000u : 0);     \
  }
EMULATOR_COMPARISON(eq, x == y)
EMULATOR_COMPARISON(ne, x != y)
EMULATOR_COMPARISON(lt, x < y)
EMULATOR_COMPARISON(le, x <= y)
EMULATOR_COMPARISON(gt, x > y)
EMULATOR_COMPARISON(ge, x >= y)
#undef EMULATOR_COMPARISON

// -0 is less than +0 here. The functions without `_nan` return the other number if one is NaN.
inline T __hmax_nan(T a, T b) {
  if (__hisnan(a) || __hisnan(b)) return T(NAN);
  return float(a) > float(b) || (float(a) == float(b) && b.bits >> 15) ? a : b;
}
inline T __hmin_nan(T a, T b) {
  if (__hisnan(a) || __hisnan(b)) return T(NAN);
  return float(a) < float(b) || (float(a) == float(b) && a.bits >> 15) ? a : b;
}
inline T __hmax(T a, T b) { return __hisnan(a) ? b : __hisnan(b) ? a : __hmax_nan(a, b); }
inline T __hmin(T a, T b) { return __hisnan(a) ? b : __hisnan(b) ? a : __hmin_nan(a, b); }
EMULATOR_EACH_OF_TWO(__hmax2, __hmax)
EMULATOR_EACH_OF_TWO(__hmin2, __hmin)
EMULATOR_EACH_OF_TWO(__hmax2_nan, __hmax_nan)
EMULATOR_EACH_OF_TWO(__hmin2_nan, __hmin_nan)
EMULATOR_EACH_OF_ONE(__hisnan2, __hisnan)

// ---- mathematics: of `v`, the number as a double

#define EMULATOR_MATHS(function, expression) \
  inline T h##function(T a) {                \
    const double v = double(float(a));       \
    return T(expression);                    \
  }                                          \
  EMULATOR_EACH_OF_ONE(h2##function, h##function)
EMULATOR_MATHS(exp, std::exp(v))
EMULATOR_MATHS(exp2, std::exp2(v))
EMULATOR_MATHS(exp10, std::pow(10.0, v))
EMULATOR_MATHS(log, std::log(v))
EMULATOR_MATHS(log2, std::log2(v))
EMULATOR_MATHS(log10, std::log10(v))
EMULATOR_MATHS(sqrt, std::sqrt(v))
EMULATOR_MATHS(rsqrt, 1 / std::sqrt(v))
EMULATOR_MATHS(rcp, 1 / v)
EMULATOR_MATHS(sin, std::sin(v))
EMULATOR_MATHS(cos, std::cos(v))
EMULATOR_MATHS(tanh, std::tanh(v))
EMULATOR_MATHS(tanh_approx, std::tanh(v))
EMULATOR_MATHS(floor, std::floor(v))
EMULATOR_MATHS(ceil, std::ceil(v))
EMULATOR_MATHS(trunc, std::trunc(v))
EMULATOR_MATHS(rint, std::nearbyint(v))
#undef EMULATOR_MATHS

// ---- halves of a pair, atomics, warps

inline float __low2float(T2 a) { return float(a.x); }
inline float __high2float(T2 a) { return float(a.y); }
inline T2 __lowhigh2highlow(T2 a) { return {a.y, a.x}; }

EMULATOR_ATOMIC(atomicAdd, T, __hadd(old, value))
EMULATOR_ATOMIC(atomicAdd, T2, __hadd2(old, value))
EMULATOR_SHUFFLES(T)
EMULATOR_SHUFFLES(T2)

#undef EMULATOR_EACH_OF_THREE
#undef EMULATOR_EACH_OF_TWO
#undef EMULATOR_EACH_OF_ONE
#undef EMULATOR_TWO
#undef EMULATOR_ONE
