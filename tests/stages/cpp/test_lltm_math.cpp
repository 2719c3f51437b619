// The gate functions of csrc/lltm_math.h and their derivatives, held against ATen's own.
#include <ATen/core/Tensor.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tanh_backward.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "lltm_math.h"

namespace {

template <typename scalar_t>
class LltmMath : public ::testing::Test {};

using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LltmMath, Types);

// A few units in the last place: the exponentials of two libraries.
template <typename scalar_t>
constexpr scalar_t kTolerance = 8 * std::numeric_limits<scalar_t>::epsilon();

// Numbers from everywhere: a grid, zeros of both signs, tiny ones, saturating ones, infinities and NaN.
template <typename scalar_t>
std::vector<scalar_t> numbers() {
  using Limits = std::numeric_limits<scalar_t>;
  std::vector<scalar_t> found;
  for (int k = -4000; k <= 4000; ++k) found.push_back(scalar_t(k) / 200);
  for (scalar_t z : {scalar_t(0), Limits::min(), Limits::denorm_min(), Limits::epsilon(), scalar_t(1e-12),
                     scalar_t(1e-4), scalar_t(50), scalar_t(87.3), scalar_t(88.8), scalar_t(104),
                     scalar_t(709.7), scalar_t(745.2), scalar_t(1e4), Limits::max(), Limits::infinity()}) {
    found.push_back(z);
    found.push_back(-z);
  }
  found.push_back(Limits::quiet_NaN());
  return found;
}

// Near zero what matters is the absolute error of a number about one, hence the sum.
template <typename scalar_t>
void expect_equal(scalar_t got, scalar_t wanted, scalar_t z, scalar_t scale) {
  if (std::isnan(wanted)) {
    EXPECT_TRUE(std::isnan(got)) << "at " << z << ": got " << got << ", ATen has NaN";
  } else if (std::isinf(wanted)) {
    EXPECT_EQ(got, wanted) << "at " << z;
  } else {
    EXPECT_LE(std::abs(got - wanted), kTolerance<scalar_t> * (std::abs(wanted) + scale)) << "at " << z;
  }
}

// Each number through `function`, against the tensor of all of them through ATen. `scale` is added to the
// size of what is expected: 0 asks for all digits of small results too.
template <typename scalar_t, typename Function, typename Reference>
void compare(Function function, Reference reference, scalar_t scale = 0) {
  const std::vector<scalar_t> all = numbers<scalar_t>();
  const at::Tensor wanted = reference(at::tensor(all, c10::CppTypeToScalarType<scalar_t>::value));
  ASSERT_EQ(wanted.numel(), int64_t(all.size()));
  for (size_t k = 0; k < all.size(); ++k) {
    expect_equal(function(all[k]), wanted.const_data_ptr<scalar_t>()[k], all[k], scale);
  }
}

TYPED_TEST(LltmMath, SigmoidIsATens) {
  // ATen's vectorised exponential gives zero where the result is below the smallest normal number.
  compare<TypeParam>([](TypeParam z) { return sigmoid(z); },
                     [](const at::Tensor& z) { return at::sigmoid(z); },
                     std::numeric_limits<TypeParam>::min() / std::numeric_limits<TypeParam>::epsilon());
}

TYPED_TEST(LltmMath, EluIsATens) {
  compare<TypeParam>([](TypeParam z) { return elu(z); }, [](const at::Tensor& z) { return at::elu(z); });
}

TYPED_TEST(LltmMath, EluKeepsTheDigitsOfSmallNumbers) {
  for (TypeParam z : {TypeParam(-1e-4), TypeParam(-1e-6), TypeParam(-1e-12)}) {
    const long double exact = std::expm1(static_cast<long double>(z));
    EXPECT_LE(std::abs(elu(z) - exact), 2 * std::numeric_limits<TypeParam>::epsilon() * std::abs(exact)) << z;
  }
}

TYPED_TEST(LltmMath, DerivativeOfSigmoidIsATens) {
  compare<TypeParam>(
      [](TypeParam z) { return d_sigmoid(sigmoid(z)); },
      [](const at::Tensor& z) { return at::sigmoid_backward(at::ones_like(z), at::sigmoid(z)); }, 1);
}

TYPED_TEST(LltmMath, DerivativeOfTanhIsATens) {
  compare<TypeParam>([](TypeParam z) { return d_tanh(std::tanh(z)); },
                     [](const at::Tensor& z) { return at::tanh_backward(at::ones_like(z), at::tanh(z)); }, 1);
}

TYPED_TEST(LltmMath, DerivativeOfEluIsATens) {
  compare<TypeParam>(
      [](TypeParam z) { return d_elu(elu(z)); },
      [](const at::Tensor& z) { return at::elu_backward(at::ones_like(z), 1, 1, 1, true, at::elu(z)); }, 1);
}

// From the output or from the input, the derivative is the same.
TYPED_TEST(LltmMath, DerivativeOfEluIsThatOfItsInput) {
  compare<TypeParam>(
      [](TypeParam z) { return d_elu(elu(z)); },
      [](const at::Tensor& z) { return at::elu_backward(at::ones_like(z), 1, 1, 1, false, z); }, 1);
}

TYPED_TEST(LltmMath, NothingOverflows) {
  using Limits = std::numeric_limits<TypeParam>;
  for (TypeParam z : {TypeParam(1e4), Limits::max(), Limits::infinity()}) {
    EXPECT_EQ(sigmoid(z), 1);
    EXPECT_EQ(sigmoid(-z), 0);
    EXPECT_EQ(d_sigmoid(sigmoid(z)), 0);
    EXPECT_EQ(d_sigmoid(sigmoid(-z)), 0);
    EXPECT_EQ(elu(z), z);
    EXPECT_EQ(elu(-z), -1);
    EXPECT_EQ(d_elu(elu(z)), 1);
    EXPECT_EQ(d_elu(elu(-z)), 0);
    EXPECT_EQ(d_tanh(std::tanh(z)), 0);
  }
}

TYPED_TEST(LltmMath, NaNGoesThrough) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN();
  for (TypeParam got : {sigmoid(nan), d_sigmoid(nan), d_tanh(nan), elu(nan), d_elu(nan)}) {
    EXPECT_TRUE(std::isnan(got));
  }
}

}  // namespace
