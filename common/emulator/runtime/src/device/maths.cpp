// Maths that needs more than a line: rounding in a given direction, and functions that <cmath> lacks.
#include "emulator/maths.h"

namespace emulator {
namespace {

class Rounding {
 public:
  explicit Rounding(int mode) { std::fesetround(mode); }
  ~Rounding() { std::fesetround(before_); }

 private:
  int before_ = std::fegetround();
};

// Volatile, so that nothing is computed before the mode is set or after it is restored.
template <typename Result, typename Compute, typename... Values>
Result rounded(int mode, Compute compute, volatile Values... values) {
  const Rounding rounding(mode);
  volatile Result result = Result(compute(values...));
  return result;
}

constexpr auto plus = [](auto a, auto b) { return a + b; };
constexpr auto multiply = [](auto a, auto b) { return a * b; };
constexpr auto divide = [](auto a, auto b) { return a / b; };
constexpr auto root = [](auto a) { return std::sqrt(a); };
constexpr auto multiply_add = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto same = [](auto a) { return a; };

}  // namespace

float rounded_add(float a, float b, int mode) { return rounded<float>(mode, plus, a, b); }
float rounded_multiply(float a, float b, int mode) { return rounded<float>(mode, multiply, a, b); }
float rounded_divide(float a, float b, int mode) { return rounded<float>(mode, divide, a, b); }
float rounded_root(float a, int mode) { return rounded<float>(mode, root, a); }
float rounded_fma(float a, float b, float c, int mode) { return rounded<float>(mode, multiply_add, a, b, c); }
double rounded_add(double a, double b, int mode) { return rounded<double>(mode, plus, a, b); }
double rounded_multiply(double a, double b, int mode) { return rounded<double>(mode, multiply, a, b); }
double rounded_divide(double a, double b, int mode) { return rounded<double>(mode, divide, a, b); }
double rounded_root(double a, int mode) { return rounded<double>(mode, root, a); }
double rounded_fma(double a, double b, double c, int mode) {
  return rounded<double>(mode, multiply_add, a, b, c);
}
float rounded_float(long double value, int mode) { return rounded<float>(mode, same, value); }
double rounded_double(long double value, int mode) { return rounded<double>(mode, same, value); }

}  // namespace emulator

#if EMULATOR_C_LIBRARY < 241
// The argument is first brought to [-1/4, 1/4], which is exact, and the quarter turns are made up for.
double sinpi(double a) {
  if (!std::isfinite(a)) return std::nan("");
  const double quarters = std::nearbyint(2 * a), rest = M_PI * (a - quarters / 2);
  switch (static_cast<int>(std::fmod(quarters, 4)) & 3) {
    case 0:
      return quarters == 2 * a ? std::copysign(0.0, a) : std::sin(rest);
    case 1:
      return std::cos(rest);
    case 2:
      return quarters == 2 * a ? std::copysign(0.0, a) : -std::sin(rest);
    default:
      return -std::cos(rest);
  }
}
double cospi(double a) {
  if (!std::isfinite(a)) return std::nan("");
  const double quarters = std::nearbyint(2 * a), rest = M_PI * (a - quarters / 2);
  switch (static_cast<int>(std::fmod(quarters, 4)) & 3) {
    case 0:
      return std::cos(rest);
    case 1:
      return -std::sin(rest) + 0.0;
    case 2:
      return -std::cos(rest);
    default:
      return std::sin(rest) + 0.0;
  }
}
#endif

// Newton's method from where the tail of erfc begins to look like exp(-x*x).
double erfcinv(double a) {
  if (!(a >= 0 && a <= 2)) return std::nan("");
  if (a == 0) return INFINITY;
  if (a == 2) return -INFINITY;
  if (a > 1) return -erfcinv(2 - a);
  if (a > 0.5) return erfinv(1 - a);
  double x = std::sqrt(-std::log(a));
  for (int step = 0; step < 60; step++) {
    // In the logarithm, which is nearly a parabola: no step goes too far.
    const double value = std::erfc(x), slope = -M_2_SQRTPI * std::exp(-x * x) / value;
    const double next = x - (std::log(value) - std::log(a)) / slope;
    if (std::fabs(next - x) <= 1e-16 * x) return next;
    x = next;
  }
  return x;
}

double erfinv(double a) {
  if (std::fabs(a) > 1 || std::isnan(a)) return std::nan("");
  if (std::fabs(a) > 0.5) return std::copysign(erfcinv(1 - std::fabs(a)), a);
  double x = a / M_2_SQRTPI;
  for (int step = 0; step < 20; step++) {
    const double next = x - (std::erf(x) - a) / (M_2_SQRTPI * std::exp(-x * x));
    if (std::fabs(next - x) <= 1e-16 * std::fabs(x)) return next;
    x = next;
  }
  return x;
}

double erfcx(double a) {
  if (a < 25) {
    const double square = a * a, lost = std::fma(a, a, -square);
    return std::exp(square) * (1 + lost) * std::erfc(a);
  }
  const double s = 1 / (2 * a * a);  // of the asymptotic series, terms below 1e-16 there
  return M_2_SQRTPI / 2 / a * (1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s)))));
}
