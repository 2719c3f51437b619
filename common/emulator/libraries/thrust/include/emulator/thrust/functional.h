// Thrust's function objects.
#pragma once

#include <functional>

#include "cuda/functional"

namespace thrust {

using ::cuda::maximum;
using ::cuda::minimum;
using std::bit_and;
using std::bit_or;
using std::bit_xor;
using std::divides;
using std::equal_to;
using std::greater;
using std::greater_equal;
using std::less;
using std::less_equal;
using std::logical_and;
using std::logical_not;
using std::logical_or;
using std::minus;
using std::modulus;
using std::multiplies;
using std::negate;
using std::not_equal_to;
using std::plus;

template <typename T = void>
struct identity {
  constexpr const T& operator()(const T& value) const { return value; }
};
template <>
struct identity<void> {
  template <typename T>
  constexpr T operator()(const T& value) const {
    return value;
  }
};
template <typename T = void>
struct square {
  constexpr T operator()(const T& value) const { return value * value; }
};
template <typename T, typename U = T>
struct project1st {
  constexpr T operator()(const T& a, const U&) const { return a; }
};
template <typename T, typename U = T>
struct project2nd {
  constexpr U operator()(const T&, const U& b) const { return b; }
};

// Operations of unnamed arguments, such as 2 * _1 + _2.
namespace placeholders {

template <typename Function>
struct Expression {
  Function function;
  template <typename... Arguments>
  constexpr auto operator()(const Arguments&... arguments) const {
    return function(arguments...);
  }
};
template <typename Function>
constexpr Expression<Function> expression(Function function) {
  return {function};
}
template <typename T>
constexpr bool is_expression = false;
template <typename Function>
constexpr bool is_expression<Expression<Function>> = true;
template <typename T, typename... Arguments>
constexpr auto evaluate(const T& part, const Arguments&... arguments) {
  if constexpr (is_expression<T>)
    return part(arguments...);
  else
    return part;
}

struct First {
  template <typename T, typename... Rest>
  constexpr T operator()(const T& value, const Rest&...) const {
    return value;
  }
};
struct Second {
  template <typename T, typename U, typename... Rest>
  constexpr U operator()(const T&, const U& value, const Rest&...) const {
    return value;
  }
};
inline constexpr Expression<First> _1{};
inline constexpr Expression<Second> _2{};

#define EMULATOR_PLACEHOLDER(op)                                                                       \
  template <typename A, typename B>                                                                    \
  requires(is_expression<A> || is_expression<B>) constexpr auto operator op(const A& a, const B& b) {  \
    return expression([=](const auto&... all) { return evaluate(a, all...) op evaluate(b, all...); }); \
  }
EMULATOR_PLACEHOLDER(+)
EMULATOR_PLACEHOLDER(-)
EMULATOR_PLACEHOLDER(*)
EMULATOR_PLACEHOLDER(/)
EMULATOR_PLACEHOLDER(%)
EMULATOR_PLACEHOLDER(==)
EMULATOR_PLACEHOLDER(!=)
EMULATOR_PLACEHOLDER(<)
EMULATOR_PLACEHOLDER(>)
EMULATOR_PLACEHOLDER(<=)
EMULATOR_PLACEHOLDER(>=)
EMULATOR_PLACEHOLDER(&&)
EMULATOR_PLACEHOLDER(||)
#undef EMULATOR_PLACEHOLDER

}  // namespace placeholders
}  // namespace thrust
